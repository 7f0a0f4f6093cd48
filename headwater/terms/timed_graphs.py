"""Named graphs that carry their time: N-Quads, TriG and JSON-LD with `prov:generatedAtTime`.

```
<http://ex/g1> prov:generatedAtTime "2014-08-01T07:50:00Z"^^xsd:dateTime .
<http://ex/g1> { <http://ex/s1> <http://ex/value> 21 . }
```

Each named graph is one element. Its time stands in the default graph, as above, or inside the graph itself,
with the graph's name as the subject; only then it is part of the element. A time without a graph is an
element without triples. A graph without a time, with an unreadable one or with two different ones is a
`BadElement`, and so are, together for each subject, the other triples of the default graph.

The time may stand before or behind the graph, so a document is read to its end before the first element is
given. JSON-LD lines are documents of one line each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace

from pyoxigraph import DefaultGraph, RdfFormat

from headwater.terms.model import XSD, BadElement, BlankNode, Element, Literal, NamedNode, Quad, Term, Triple
from headwater.terms.rdf_documents import RdfSyntaxError, read_quads
from headwater.terms.statements import graph_label, graph_term, parse_statements
from headwater.terms.text_lines import LineNumbers, Lines, LongLine, line_to_text, lines_before, offset_lines
from headwater.terms.timestamps import format_time, parse_time

GENERATED_AT_TIME = NamedNode("http://www.w3.org/ns/prov#generatedAtTime")


def graph_time(name: NamedNode | BlankNode, time: int) -> Triple:
    """The statement that gives the time of a graph."""
    return Triple(name, GENERATED_AT_TIME, Literal(format_time(time), datatype=NamedNode(XSD + "dateTime")))


def missing_graph_time(element: Element) -> tuple[Triple, ...]:
    """The statement that gives the time of an element's graph; none where it has no name, or says its time itself."""
    if element.graph is None:
        return ()
    name = graph_term(element.graph)
    has_time = any(one.subject == name and one.predicate == GENERATED_AT_TIME for one in element.triples)
    return () if has_time else (graph_time(name, element.time),)


@dataclass(slots=True)
class _Graph:
    """The quads of one graph name: in that graph, and with it as the subject in the default graph."""

    position: int
    is_named: bool = False
    triples: list[Triple] = field(default_factory=list)
    times: list[Term] = field(default_factory=list)
    strays: list[Triple] = field(default_factory=list)


def read_timed_nquads(
    lines: Lines, source: str, first_position: int = 0, first_line: int | Callable[[], int] = 1
) -> Iterator[Element | BadElement]:
    """The elements of an N-Quads text; positions are byte offsets of lines. Blank nodes keep their labels."""
    numbers = LineNumbers(first_line)
    numbered = [
        line
        for line in offset_lines(lines, first_position)
        if line[2].strip() and not line[2].lstrip().startswith(b"#")
    ]
    bad: list[BadElement] = []
    quads: list[tuple[int, Quad]] = []
    for (position, count, text), quad in zip(numbered, parse_statements([line[2] for line in numbered]), strict=True):
        if isinstance(quad, str):
            bad.append(BadElement(quad, line_to_text(text), source, (position,), numbers.number(count)))
        else:
            quads.append((position, quad))
    found: list[Element | BadElement] = [*timed_graphs(quads, source), *bad]
    found.sort(key=lambda element: element.position)
    return iter(found)


def read_timed_trig(data: bytes, source: str, format: RdfFormat = RdfFormat.TRIG) -> Iterator[Element | BadElement]:
    """The elements of a TriG document (or one of another format with named graphs); positions count quads.

    Where the document has a syntax error, the graphs before it are elements, except the one that the error
    cut short; what follows cannot be read and is reported as one `BadElement`.
    """
    quads: list[Quad] = []
    try:
        quads.extend(read_quads(data, format=format, scope=source, name=source))
    except RdfSyntaxError as error:
        yield from timed_graphs(enumerate(_whole_graphs(quads)), source)
        last = graph_label(quads[-1].graph_name) if quads else None
        cut = f"; the graph {last} is cut short" if last else ""
        rest = b"\n".join(data.split(b"\n")[(error.line or 1) - 1 :])
        reason = f"{error.reason}{cut}; the document was not read on from here"
        yield BadElement(reason, line_to_text(rest), source, (len(quads),), error.line)
        return
    yield from timed_graphs(enumerate(quads), source)


def _whole_graphs(quads: list[Quad]) -> Iterator[Quad]:
    """Of a document that breaks off: the complete graphs, and their times in the default graph."""
    whole = {quad.graph_name for quad in quads if not isinstance(quad.graph_name, DefaultGraph)}
    if quads:
        whole.discard(quads[-1].graph_name)
    for quad in quads:
        if quad.graph_name in whole or (
            isinstance(quad.graph_name, DefaultGraph) and (quad.subject in whole or quad.predicate != GENERATED_AT_TIME)
        ):
            yield quad


def read_jsonld_lines(
    lines: Lines,
    source: str,
    first_position: int = 0,
    first_line: int | Callable[[], int] = 1,
    *,
    end: int | None = None,
) -> Iterator[Element | BadElement]:
    """The elements of one JSON-LD document per line; positions are the line's byte offset and a count."""
    numbers = LineNumbers(first_line)
    for position, count, text in lines_before(offset_lines(lines, first_position), end):
        if not text.strip():
            continue
        if isinstance(text, LongLine):
            yield BadElement(text.reason, line_to_text(text), source, (position, 0), numbers.number(count))
            continue
        try:
            quads = list(read_quads(text, format=RdfFormat.JSON_LD, scope=f"{source}#{position}"))
        except RdfSyntaxError as error:
            yield BadElement(error.reason, line_to_text(text), source, (position, 0), numbers.number(count))
            continue
        for element in timed_graphs(enumerate(quads), source, (position,)):
            if isinstance(element, BadElement):
                yield replace(element, line=numbers.number(count))
            else:
                yield element


def timed_graphs(
    quads: Iterable[tuple[int, Quad]], source: str, prefix: tuple[int, ...] = ()
) -> Iterator[Element | BadElement]:
    """The elements among quads with positions, each at the position of the first quad that names it."""
    graphs: dict[NamedNode | BlankNode | Triple, _Graph] = {}
    for position, quad in quads:
        graph_name = quad.graph_name
        is_time = quad.predicate == GENERATED_AT_TIME
        if isinstance(graph_name, DefaultGraph):
            graph = graphs.setdefault(quad.subject, _Graph(position))
            if is_time:
                graph.times.append(quad.object)
            else:
                graph.strays.append(quad.triple)
            continue
        graph = graphs.setdefault(graph_name, _Graph(position))
        graph.is_named = True
        graph.triples.append(quad.triple)
        if is_time and quad.subject == graph_name:
            graph.times.append(quad.object)
    for name, graph in graphs.items():
        yield from _elements_of(name, graph, source, (*prefix, graph.position))


def _elements_of(
    name: NamedNode | BlankNode | Triple,
    graph: _Graph,
    source: str,
    position: tuple[int, ...],
) -> Iterator[Element | BadElement]:
    """The element of a named graph, a bad one if it has no time; triples about it in the default graph are bad, too."""
    if graph.is_named or (graph.times and not graph.strays):
        time = _time_of(name, graph.times)
        if isinstance(time, int):
            label = None if isinstance(name, Triple) else graph_label(name)
            yield Element(time, tuple(graph.triples), label, position)
        else:
            yield BadElement(time, _text_of(graph.triples), source, position)
    if graph.strays:
        reason = f"triples about {name} in the default graph: a stream element is a named graph with a time"
        lost = graph.strays
        if not graph.is_named:
            lost = [*lost, *(Triple(name, GENERATED_AT_TIME, time) for time in graph.times)]
        yield BadElement(reason, _text_of(lost), source, position)


def _time_of(name: Term, terms: list[Term]) -> int | str:
    if not terms:
        return f'the graph {name} has no time: say <graph> {GENERATED_AT_TIME} "…"^^xsd:dateTime'
    try:
        times = sorted({parse_time(term) for term in terms})
    except ValueError as error:
        return f"the time of the graph {name}: {error}"
    if len(times) > 1:
        return f"the graph {name} has several times: {', '.join(map(format_time, times))}"
    return times[0]


def _text_of(triples: Iterable[Triple]) -> str:
    return "\n".join(f"{triple} ." for triple in triples)
