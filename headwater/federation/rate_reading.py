"""Reads change rates, `RATES` of a SERVICE clause, from a graph of the linked data, an RDF file or a CSV file.

RDF has a statement for each entity:

    <http://example.org/anna> <urn:headwater:changesPerHour> 12 .

or `changesPerSecond`, `changesPerMinute`, `changesPerDay`; other statements are ignored. CSV has one column for each
variable of the key that rates are by, and one of `per_second`, `per_minute`, `per_hour` and `per_day`:

    user,per_hour
    http://example.org/anna,12

A cell is an IRI, a text, or any term as in N-Triples (`<…>`, `"…"^^<…>`).
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable

from pyoxigraph import RdfFormat

from headwater.algebra.nodes import Service
from headwater.algebra.plan import QueryPlan
from headwater.algebra.scope import nodes_of
from headwater.errors import SettingError
from headwater.execution.static_data import StaticData
from headwater.federation.view.given_rates import GivenRates
from headwater.language.iris import is_absolute
from headwater.language.service_options import RatesSource
from headwater.terms.checking.checked_parsing import parse_quads
from headwater.terms.model import BlankNode, Literal, NamedNode, Quad, Row, Term
from headwater.terms.rdf_documents import BROKEN_COMPRESSION, file_ending, open_bytes, read_quads
from headwater.terms.stored_forms import restore_term
from headwater.values.numeric import number_of

VOCABULARY = "urn:headwater:"
SECONDS = {"second": 1, "minute": 60, "hour": 3600, "day": 86_400}
_PROPERTIES = {f"{VOCABULARY}changesPer{unit.capitalize()}": seconds for unit, seconds in SECONDS.items()}
_COLUMNS = {f"per_{unit}": seconds for unit, seconds in SECONDS.items()}
_EXAMPLE = f"<http://example.org/anna> <{VOCABULARY}changesPerHour> 12"

Places = dict[Row, tuple[float, str]]
"""By entity its rate and where it is given."""


def rate_sources_of(plans: Iterable[QueryPlan]) -> list[RatesSource]:
    """The files and graphs that the SERVICE clauses of plans take rates from, each once."""
    services = (node for plan in plans for node in nodes_of(plan.root) if isinstance(node, Service))
    return list(dict.fromkeys(node.options.rates for node in services if node.options and node.options.rates))


def read_rates_file(path: str) -> GivenRates:
    """The rates of a CSV or RDF file; a `SettingError` or `RdfSyntaxError` says what is wrong with it."""
    try:
        if file_ending(path) == ".csv":
            return _read_csv(path)
        return _read_statements(path, read_quads(path))
    except FileNotFoundError:
        hint = f"; a graph is named as an IRI, <{path}>" if is_absolute(path) else ""
        raise SettingError(f"there is no file {path} with change rates{hint}") from None
    except OSError as error:
        raise SettingError(f"the change rates in {path} cannot be read: {error.strerror or error}") from None
    except (UnicodeDecodeError, csv.Error, *BROKEN_COMPRESSION) as error:
        raise SettingError(f"the change rates in {path} cannot be read: {error}") from None


def read_rates_graph(graph: NamedNode, static: StaticData) -> GivenRates:
    """The rates of a graph of the linked data."""
    name = f"the graph <{graph.value}>"
    if graph not in set(static.named_graphs()):
        raise SettingError(
            f"the linked data has no graph <{graph.value}> with change rates; a file is named as a text, "
            f'RATES "{graph.value.rpartition("/")[2] or "rates.csv"}"'
        )
    return _read_statements(name, static.quads_for_pattern(None, None, None, graph))


def _read_statements(source: str, quads: Iterable[Quad]) -> GivenRates:
    found: Places = {}
    for quad in quads:
        property_name = quad.predicate.value
        seconds = _PROPERTIES.get(property_name)
        if seconds is None:
            if property_name.startswith(f"{VOCABULARY}change"):
                raise SettingError(f"{source} has <{property_name}>, which is none of {', '.join(_PROPERTIES)}")
            continue
        if not isinstance(quad.subject, NamedNode):
            raise SettingError(f"{source} gives a rate for {quad.subject}: only IRIs can be found in the keys")
        value = restore_term(quad.object)
        shown = f"{quad.subject} <{property_name}> {value}"
        _add(found, (quad.subject,), _number_of(value, source, shown) / seconds, shown, source)
    if not found:
        raise SettingError(f"{source} gives no change rates: it needs statements such as {_EXAMPLE}")
    return GivenRates(source, None, {key: rate for key, (rate, _) in found.items()})


def _number_of(term: Term, source: str, shown: str) -> float:
    number = number_of(term)
    if number is None:
        raise SettingError(f"{source}: a change rate is a number, not {term} (in {shown})")
    return _check_rate(float(number.value), source, f"(in {shown})")


def _check_rate(rate: float, source: str, place: str) -> float:
    if not (rate > 0.0 and math.isfinite(rate)):
        raise SettingError(
            f"{source}: a change rate is above zero, not {rate:g} {place}; "
            "what never changes has a very small one, such as 1e-9"
        )
    return rate


def _parse_rate(text: str, source: str, place: str) -> float:
    try:
        rate = float(text)
    except ValueError:
        raise SettingError(f"{source}: a change rate is a number, not {text!r} {place}") from None
    return _check_rate(rate, source, place)


def _add(found: Places, key: Row, rate: float, place: str, source: str) -> None:
    known = found.setdefault(key, (rate, place))
    if known[0] != rate:
        raise SettingError(f"{source} gives two rates for {' '.join(map(str, key))}: {known[1]} and {place}")


def _read_csv(path: str) -> GivenRates:
    with open_bytes(path) as stream, io.TextIOWrapper(stream, "utf-8-sig", newline="") as text:
        lines = csv.reader(text, strict=True)
        header = [name.strip().removeprefix("?") for name in next(lines, [])]
        units = [name for name in header if name in _COLUMNS]
        if len(units) != 1 or len(header) < 2 or len(set(header)) < len(header):
            raise SettingError(
                f"{path} needs a header with a column for each variable of the key and one of {', '.join(_COLUMNS)}, "
                f"such as user,per_hour; it has {','.join(header) or 'none'}"
            )
        found: Places = {}
        for line in lines:
            if any(cell.strip() for cell in line):
                _read_csv_line(found, path, header, units[0], line, lines.line_num)
    if not found:
        raise SettingError(f"{path} gives no change rates: it has no line below its header")
    variables = tuple(name for name in header if name not in _COLUMNS)
    return GivenRates(path, variables, {key: rate for key, (rate, _) in found.items()})


def _read_csv_line(found: Places, path: str, header: list[str], unit: str, line: list[str], number: int) -> None:
    place = f"in line {number}"
    if len(line) != len(header):
        raise SettingError(f"{path} has {len(line)} cells {place}, and {len(header)} in its header")
    cells = dict(zip(header, map(str.strip, line), strict=True))
    rate = _parse_rate(cells.pop(unit), path, place) / _COLUMNS[unit]
    _add(found, tuple(_read_term(cell, path, place) for cell in cells.values()), rate, place, path)


def _read_term(cell: str, path: str, place: str) -> Term:
    """A term from its N-Triples text, an IRI, or else a text."""
    term: Term
    try:
        if cell.startswith(("<", '"')):
            (quad,) = parse_quads(f"<t:t> <t:t> {cell} .".encode(), RdfFormat.N_TRIPLES)
            term = quad.object
        else:
            term = NamedNode(cell) if is_absolute(cell) else Literal(cell)
    except (ValueError, SyntaxError) as error:
        raise SettingError(f"{path}: {cell} is no term {place}: {error}") from None
    if not cell or isinstance(term, BlankNode):
        raise SettingError(f"{path} has no entity {place}")
    return term
