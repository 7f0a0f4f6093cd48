"""Expected results: read from the formats in which the W3C suites keep them, and compared with an answer.

Solutions are compared as multisets up to the renaming of blank nodes; as sequences where the query orders them.
A graph is compared up to isomorphism. Two literals agree when they are the same term or, of one numeric or boolean
datatype, have the same value: the suites do not fix how a computed number is written (`2.0` or `2.00`).
"""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from io import StringIO
from pathlib import Path
from typing import TypeAlias

from pyoxigraph import (
    CanonicalizationAlgorithm,
    Dataset,
    QueryBoolean,
    QueryResultsFormat,
)

from headwater.terms.checking.checked_parsing import parse_results
from headwater.terms.model import RDF, XSD, BlankNode, Literal, NamedNode, Quad, Row, Term, Triple
from headwater.terms.rdf_documents import read_quads
from headwater.terms.writing import bindings_to_json, write_csv, write_tsv, write_xml

RS = "http://www.w3.org/2001/sw/DataAccess/tests/result-set#"
_FORMATS = {".srx": QueryResultsFormat.XML, ".srj": QueryResultsFormat.JSON, ".tsv": QueryResultsFormat.TSV}
_WRITERS: dict[str, Callable[[Sequence[str], Iterable[Row]], str]] = {
    ".srx": write_xml,
    ".srj": lambda variables, rows: json.dumps(bindings_to_json(variables, rows)),
    ".tsv": write_tsv,
    ".csv": write_csv,
}
_INTEGERS = frozenset(
    XSD + name
    for name in (
        "integer", "long", "int", "short", "byte", "unsignedLong", "unsignedInt", "unsignedShort", "unsignedByte",
        "nonNegativeInteger", "positiveInteger", "nonPositiveInteger", "negativeInteger", "decimal",
    )
)  # fmt: skip
_FLOATS = frozenset({XSD + "double", XSD + "float"})


@dataclass(frozen=True, slots=True)
class Solutions:
    """A table: rows of terms in the order of `variables`. `in_order` says that the file numbers its rows."""

    variables: tuple[str, ...]
    rows: tuple[Row, ...]
    in_order: bool = False


Expected: TypeAlias = Solutions | bool | tuple[Triple, ...]
"""A table, a verdict or a graph."""


def read_expected(path: Path) -> Expected:
    """The result that a file of the suites holds."""
    if path.suffix in _WRITERS:
        return parse_result(path.read_bytes().decode("utf-8"), path.suffix)
    quads = list(read_quads(path))
    described = _described_result(quads)
    return tuple(quad.triple for quad in quads) if described is None else described


def through_writer(found: Solutions, suffix: str) -> Solutions:
    """The table written in the format of a file and read back: what the file says of it."""
    if suffix not in _WRITERS:
        return found
    read = parse_result(_WRITERS[suffix](found.variables, found.rows), suffix)
    assert isinstance(read, Solutions)
    return read


def parse_result(text: str, suffix: str) -> Solutions | bool:
    """The result that a text holds, in the format of files with such a name."""
    if suffix == ".csv":
        head, *lines = list(csv.reader(StringIO(text, newline="")))
        return Solutions(tuple(head), tuple(tuple(_csv_term(cell) for cell in line) for line in lines))
    found = parse_results(text, _FORMATS[suffix])
    if isinstance(found, QueryBoolean):
        return bool(found)
    names = tuple(variable.value for variable in found.variables)
    return Solutions(names, tuple(tuple(solution[name] for name in names) for solution in found))


def _csv_term(cell: str) -> Term | None:
    if cell == "":
        return None
    return BlankNode(cell[2:]) if cell.startswith("_:") else Literal(cell)


def _described_result(quads: list[Quad]) -> Solutions | bool | None:
    """A result set written as RDF (the DAWG vocabulary); None where the graph is itself the result."""
    # Not a store: it would write numbers in its own way.
    facts: dict[tuple[Term, str], list[Term]] = {}
    for quad in quads:
        facts.setdefault((quad.subject, quad.predicate.value), []).append(quad.object)

    def values(subject: Term, name: str) -> list[Term]:
        return facts.get((subject, RS + name), [])

    result_set = NamedNode(RS + "ResultSet")
    whole = next((s for (s, p), found in facts.items() if p == RDF + "type" and result_set in found), None)
    if whole is None:
        return None
    verdict = values(whole, "boolean")
    if verdict:
        return isinstance(verdict[0], Literal) and verdict[0].value == "true"
    names = tuple(sorted(_text(name) for name in values(whole, "resultVariable")))
    numbered: list[tuple[int, Row]] = []
    in_order = False
    for solution in values(whole, "solution"):
        bound = {
            _text(values(binding, "variable")[0]): values(binding, "value")[0]
            for binding in values(solution, "binding")
        }
        index = values(solution, "index")
        in_order |= bool(index)
        numbered.append((int(_text(index[0])) if index else 0, tuple(bound.get(name) for name in names)))
    rows = [row for _, row in sorted(numbered, key=lambda pair: pair[0])]
    return Solutions(names, tuple(rows), in_order)


def _text(term: Term) -> str:
    assert isinstance(term, Literal)
    return term.value


def same_graph(left: Iterable[Triple], right: Iterable[Triple]) -> bool:
    """Whether two graphs are isomorphic."""
    return _canonical(left) == _canonical(right)


def _canonical(triples: Iterable[Triple]) -> Dataset:
    dataset = Dataset(Quad(t.subject, t.predicate, t.object) for t in triples)
    dataset.canonicalize(CanonicalizationAlgorithm.UNSTABLE)
    return dataset


def same_solutions(expected: Solutions, found: Solutions, *, ordered: bool = False, lax: bool = False) -> bool:
    """Whether two tables agree; `ordered` compares sequences, `lax` ignores how often a row comes."""
    if set(expected.variables) != set(found.variables):
        return False
    places = [found.variables.index(name) for name in expected.variables]
    theirs = [_comparable(row) for row in expected.rows]
    ours = [_comparable([row[place] for place in places]) for row in found.rows]
    if lax:
        theirs, ours = list(dict.fromkeys(theirs)), list(dict.fromkeys(ours))
    if len(theirs) != len(ours):
        return False
    if ordered:
        return _match_sequence(theirs, ours)
    # Rows without blank nodes can only meet their like; what remains is paired by trying.
    plain = Counter(row for row in theirs if not _has_blank(row))
    if plain != Counter(row for row in ours if not _has_blank(row)):
        return False
    return _match([row for row in theirs if _has_blank(row)], Counter(row for row in ours if _has_blank(row)), {}, {})


Cell: TypeAlias = Hashable
"""A blank node, or something that equals its like whatever the way of writing."""


def _comparable(row: Sequence[Term | None]) -> tuple[Cell, ...]:
    return tuple(comparable(term) for term in row)


def comparable(term: Term | None) -> Cell:
    if not isinstance(term, Literal):
        return term
    datatype, text = term.datatype.value, term.value
    try:
        if datatype in _INTEGERS:
            return datatype, Decimal(text).normalize()
        if datatype in _FLOATS and float(text) == float(text):
            return datatype, float(text)
    except (ValueError, InvalidOperation):
        return term
    if datatype == XSD + "boolean":
        return datatype, {"1": "true", "0": "false"}.get(text, text)
    return term


def _has_blank(row: tuple[Cell, ...]) -> bool:
    return any(isinstance(cell, BlankNode) for cell in row)


def _extend_renaming(
    theirs: tuple[Cell, ...], ours: tuple[Cell, ...], forth: dict[Cell, Cell], back: dict[Cell, Cell]
) -> tuple[dict[Cell, Cell], dict[Cell, Cell]] | None:
    """The renaming of blank nodes, both ways, extended such that two rows become one; None where none does."""
    forth, back = dict(forth), dict(back)
    for left, right in zip(theirs, ours, strict=True):
        if isinstance(left, BlankNode) and isinstance(right, BlankNode):
            if forth.setdefault(left, right) != right or back.setdefault(right, left) != left:
                return None
        elif left != right:
            return None
    return forth, back


def _match_sequence(theirs: list[tuple[Cell, ...]], ours: list[tuple[Cell, ...]]) -> bool:
    forth: dict[Cell, Cell] = {}
    back: dict[Cell, Cell] = {}
    for left, right in zip(theirs, ours, strict=True):
        names = _extend_renaming(left, right, forth, back)
        if names is None:
            return False
        forth, back = names
    return True


def _match(
    theirs: list[tuple[Cell, ...]],
    ours: Counter[tuple[Cell, ...]],
    forth: dict[Cell, Cell],
    back: dict[Cell, Cell],
) -> bool:
    """Backtracking over the ways to pair rows with blank nodes."""
    if not theirs:
        return True
    first, rest = theirs[0], theirs[1:]
    for candidate in [row for row, count in ours.items() if count]:
        names = _extend_renaming(first, candidate, forth, back)
        if names is None:
            continue
        ours[candidate] -= 1
        if _match(rest, ours, *names):
            return True
        ours[candidate] += 1
    return False
