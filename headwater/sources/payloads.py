"""Decoding the bytes of one message: RDF in some syntax, timed N-Quads, or a row with a template.

    Decoder.of("turtle")                          the triples of the message, at the time of the message
    Decoder.of("trig")                            its graphs, each at its prov:generatedAtTime where it has one
    Decoder.of("jsonld", time="http://ex/at")     at the value of a property in the data
    Decoder.of("json", template="car.template")   a JSON object and a template that says what it means

The time of a message (that of a Kafka record, or of arrival) is the time of its elements unless the data give one:

| `time` | RDF | rows with a template |
|---|---|---|
| not given | `prov:generatedAtTime` of named graphs, else the message's | the template's `@time`, else the message's |
| `record` | the message's | the message's |
| `prov` | `prov:generatedAtTime`, which must be there | |
| an IRI | the value of that property, one in each graph | |
| `{column}…` | | what stands behind `@time` in a template, such as `{ts} as seconds` |

Each named graph of a message is an element, and so is its default graph. Blank nodes belong to their message. What
cannot be read is a `BadElement`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from hashlib import blake2b
from pathlib import Path

from pyoxigraph import DefaultGraph, RdfFormat

from headwater.errors import SettingError
from headwater.terms.model import BadElement, BlankNode, Element, Literal, NamedNode, Quad, Triple
from headwater.terms.rdf_documents import RdfSyntaxError, read_quads
from headwater.terms.row_files import cells_by_column, parse_json_row, rows_of_json
from headwater.terms.statements import graph_label
from headwater.terms.template import RowTemplate, read_template
from headwater.terms.text_lines import line_to_text
from headwater.terms.timed_graphs import GENERATED_AT_TIME, timed_graphs
from headwater.terms.timestamps import parse_time
from headwater.terms.tnq import read_tnq


class PayloadFormat(StrEnum):
    """The forms of a message."""

    TNQ = "tnq"
    N_TRIPLES = "ntriples"
    N_QUADS = "nquads"
    TURTLE = "turtle"
    TRIG = "trig"
    JSON_LD = "jsonld"
    JSON = "json"
    CSV = "csv"
    TEXT = "text"


_RDF = {
    PayloadFormat.N_TRIPLES: RdfFormat.N_TRIPLES,
    PayloadFormat.N_QUADS: RdfFormat.N_QUADS,
    PayloadFormat.TURTLE: RdfFormat.TURTLE,
    PayloadFormat.TRIG: RdfFormat.TRIG,
    PayloadFormat.JSON_LD: RdfFormat.JSON_LD,
}
_ROWS = (PayloadFormat.JSON, PayloadFormat.CSV, PayloadFormat.TEXT)

RECORD = "record"
PROV = "prov"
TIME_CELL = "_time"
"""The cell of a row that holds the time of the message, in microseconds."""
TEXT_CELL = "value"
"""The cell of a message of plain text that holds the text."""
_RECORD_RULE = f"{{{TIME_CELL}}} as microseconds"
_TIME_LINE = re.compile(r"^@time\b.*$", re.MULTILINE)
_LAST_TIME_LINE = re.compile(r"^@time\s+(.*?)\s*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class ReceivedMessage:
    """Bytes, and what is known of them: when (microseconds), where (source and position), and cells for templates."""

    payload: bytes | None
    time: int
    source: str
    position: tuple[int, ...]
    cells: Mapping[str, str]

    @property
    def scope(self) -> str:
        """What sets the blank nodes of this message apart from those of others."""
        return f"{self.source}#{'.'.join(map(str, self.position))}"

    def bad(self, reason: str) -> BadElement:
        return BadElement(reason, line_to_text(self.payload or b""), self.source, self.position)


@dataclass(frozen=True, slots=True)
class Decoder:
    """Makes elements of messages. It can be sent to workers."""

    format: PayloadFormat
    template: RowTemplate | None = None
    time: str | None = None

    @classmethod
    def of(
        cls, format: str | None = None, *, template: RowTemplate | str | Path | None = None, time: str | None = None
    ) -> Decoder:
        """A decoder; a `SettingError` that says what to write where the parts do not fit together.

        Without a format, it is JSON where there is a template and N-Quads where there is none.
        """
        name = format or (PayloadFormat.JSON if template is not None else PayloadFormat.N_QUADS)
        if name not in list(PayloadFormat):
            raise SettingError(f"{name!r} is no format of messages: use one of {', '.join(PayloadFormat)}")
        chosen = PayloadFormat(name)
        if chosen not in _ROWS:
            if template is not None:
                raise SettingError(f"a template is for {', '.join(_ROWS)}, not for {chosen}")
            if chosen is PayloadFormat.TNQ and time is not None:
                raise SettingError("timed N-Quads (tnq) say their time themselves: leave out time=…")
            _check_time(time)
            return cls(chosen, None, time)
        if template is None:
            raise SettingError(f"{chosen} messages need a template that says which triples a row means")
        compiled = with_time_rule(template, time)
        if compiled.lists and chosen is not PayloadFormat.JSON:
            raise SettingError(f"the template says @each, which is for members of JSON rows, not for {chosen}")
        if chosen is PayloadFormat.CSV and compiled.columns is None:
            raise SettingError("messages have no header line: the template needs a line @columns with their names")
        return cls(chosen, compiled)

    @property
    def keeps_message_times(self) -> bool | None:
        """Whether elements get the time of their message; None where that depends on what is in it."""
        if self.template is not None:
            return _LAST_TIME_LINE.findall(self.template.text)[-1:] == [_RECORD_RULE]
        if self.format is PayloadFormat.TNQ or self.time not in (None, RECORD):
            return False
        # Only named graphs may say when they were generated.
        has_graphs = self.format in (PayloadFormat.N_QUADS, PayloadFormat.TRIG, PayloadFormat.JSON_LD)
        return None if has_graphs and self.time is None else True

    def decode(self, message: ReceivedMessage) -> list[Element | BadElement]:
        """The elements of a message, in its order, each at the message's position and its own index behind it."""
        if message.payload is None:
            return [message.bad("the message has no value")]
        try:
            elements = list(self._decode_payload(message, message.payload))
        except RdfSyntaxError as error:
            return [message.bad(error.reason)]
        except UnicodeDecodeError:
            return [message.bad("the message is not UTF-8 text")]
        except (ValueError, RecursionError) as error:
            return [message.bad(str(error))]
        return [_at(one, (*message.position, index)) for index, one in enumerate(elements)]

    def _decode_payload(self, message: ReceivedMessage, payload: bytes) -> Iterable[Element | BadElement]:
        if self.format is PayloadFormat.TNQ:
            return read_tnq(payload, message.source)
        if self.template is not None:
            return self._elements_of_rows(payload, self.template, message)
        quads = list(read_quads(payload, format=_RDF[self.format], scope=message.scope))
        return _elements_of_graphs(quads, message, self.time)

    def _elements_of_rows(
        self, payload: bytes, template: RowTemplate, message: ReceivedMessage
    ) -> Iterator[Element | BadElement]:
        """The elements of the rows of a message; with several rows, a bad one does not spoil the others."""
        for index, cells in enumerate(self._rows(payload, template)):
            try:
                element = self.element(cells, message, index)
            except ValueError as error:
                if not template.lists:
                    raise
                yield message.bad(str(error))
                continue
            if element is not None:
                yield element

    def _rows(self, payload: bytes, template: RowTemplate) -> Iterable[dict[str, str]]:
        text = payload.decode()
        if self.format is PayloadFormat.JSON:
            return rows_of_json(parse_json_row(text), template)
        if self.format is PayloadFormat.CSV:
            return [cells_by_column(text.rstrip("\r\n"), template.columns or (), template)]
        return [{TEXT_CELL: text.strip()}]

    def element(self, cells: Mapping[str, str], message: ReceivedMessage, index: int = 0) -> Element | None:
        """The element that a row means; None where the template leaves it out, a `ValueError` where it is bad."""
        if self.template is None:
            raise ValueError("a row needs a template")
        row = {**cells, **message.cells, TIME_CELL: str(message.time)}
        prefix = _blank_prefix(message, index) if self.template.has_blank_nodes else ""
        return self.template.element(row, 0, message.position, prefix)


def _blank_prefix(message: ReceivedMessage, index: int) -> str:
    """What the labels of the blank nodes of a row begin with, and those of no other row."""
    prefix = "b" + blake2b(message.scope.encode(errors="surrogatepass"), digest_size=8).hexdigest() + "r"
    return f"{prefix}{index}e" if index else prefix


def _at(one: Element | BadElement, position: tuple[int, ...]) -> Element | BadElement:
    """The same element at a position."""
    if isinstance(one, Element):
        # `replace` would take several times as long, for each message.
        return Element(one.time, one.triples, one.graph, position)
    return replace(one, position=position)


def with_time_rule(template: RowTemplate | str | Path, time: str | None) -> RowTemplate:
    """A template with the given rule for the time, or with the time of the message where it has none.

    A `str` with a line break is the template itself, another one its path.
    """
    text, name = _template_text(template)
    if time is None:
        rule = None if _TIME_LINE.search(text) else _RECORD_RULE
    elif time == RECORD:
        rule = _RECORD_RULE
    elif "{" in time:
        rule = time
    else:
        raise SettingError(
            f"time={time!r} is no time of a row: use {RECORD!r}, or a column in braces such as '{{ts}} as seconds'"
        )
    return RowTemplate(text if rule is None else f"{_TIME_LINE.sub('', text)}\n@time {rule}\n", name)


def _template_text(template: RowTemplate | str | Path) -> tuple[str, str]:
    if isinstance(template, RowTemplate):
        return template.text, template.name
    if isinstance(template, str) and "\n" in template:
        return template, "<template>"
    return read_template(template), str(template)


def _check_time(time: str | None) -> None:
    if time is None or time in (RECORD, PROV):
        return
    try:
        NamedNode(time)
    except ValueError:
        raise SettingError(
            f"time={time!r} is no time of RDF: use {RECORD!r}, {PROV!r} or the IRI of a property"
        ) from None


def _elements_of_graphs(
    quads: list[Quad], message: ReceivedMessage, time: str | None
) -> Iterator[Element | BadElement]:
    """An element for each graph of a message; `time` chooses where its timestamp comes from."""
    has_names = any(not isinstance(quad.graph_name, DefaultGraph) for quad in quads)
    if has_names and (time == PROV or (time is None and any(q.predicate == GENERATED_AT_TIME for q in quads))):
        yield from timed_graphs(enumerate(quads), message.source)
        return
    graphs: dict[NamedNode | BlankNode | DefaultGraph, list[Triple]] = {}
    for quad in quads:
        graphs.setdefault(quad.graph_name, []).append(quad.triple)
    predicate = None if time in (None, RECORD) else GENERATED_AT_TIME if time == PROV else NamedNode(str(time))
    for name, triples in (graphs or {DefaultGraph(): []}).items():
        when = message.time if predicate is None else _time_in(predicate, triples)
        if isinstance(when, str):
            yield BadElement(when, "\n".join(f"{triple} ." for triple in triples), message.source)
        else:
            yield Element(when, tuple(triples), graph_label(name))


def _time_in(predicate: NamedNode, triples: list[Triple]) -> int | str:
    """The time that a property gives; a `str` is the reason why it gives none."""
    values = {triple.object for triple in triples if triple.predicate == predicate}
    if len(values) != 1:
        return f"{len(values)} values of {predicate}, which gives the time; expected one"
    value = values.pop()
    try:
        return parse_time(value if isinstance(value, Literal) else str(value))
    except ValueError as error:
        return f"{predicate}: {error}"
