"""The elements that a stream brought last, read once more from where its source keeps them.

Nothing is kept in memory for it: the last bytes of the source are read when somebody looks.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from headwater.server.page.page_access import PageElement
from headwater.sources.files import FileSource, MemorySource
from headwater.sources.posting.posted import PostedSource
from headwater.sources.source import ItemRange, Source
from headwater.terms.model import Element, Literal, NamedNode, Triple

TAIL_BYTES = 256 << 10
"""How many bytes at the end of a source are read."""
_LONGEST_TRIPLES = 2_000


def can_read_again(source: object) -> bool:
    """Whether the elements of a source can be read a second time."""
    return isinstance(source, FileSource | MemorySource | PostedSource)


def readable_source(source: object) -> FileSource | MemorySource | None:
    """The source, or the files in which what came is kept; None where it cannot be read again."""
    if isinstance(source, PostedSource):
        return FileSource((str(source.folder / "*.tnq"),))
    return source if isinstance(source, FileSource | MemorySource) else None


def read_recent(source: object, most: int, tail_bytes: int = TAIL_BYTES) -> list[Element]:
    """At most so many of the newest elements of a source, in their order; none where it cannot be read again."""
    readable = readable_source(source)
    if readable is None:
        return []
    newest: deque[Element] = deque(maxlen=most)
    for one in _tail_ranges(readable, tail_bytes):
        newest.extend(element for element in readable.read(one) if isinstance(element, Element))
    return list(newest)


def _tail_ranges(source: Source, tail_bytes: int) -> list[ItemRange]:
    """The last bytes of a source, in the order in which they are read."""
    ranges: list[ItemRange] = []
    for item in reversed(source.list_items()):
        if tail_bytes <= 0:
            break
        is_whole = source.needs_whole_read(item)
        end = item.size if is_whole else source.complete_size(item)
        start = 0 if is_whole else max(0, end - tail_bytes)
        ranges.append(ItemRange(item.name, start, end, is_whole=is_whole))
        tail_bytes -= end - start
    return ranges[::-1]


def shorten_iri(iri: str, prefixes: Iterable[tuple[str, str]]) -> str:
    """An IRI with the prefix that fits best, or in angle brackets."""
    best = max(
        (one for one in prefixes if one[1] and iri.startswith(one[1])), key=lambda one: len(one[1]), default=None
    )
    if best is not None and not set(iri[len(best[1]) :]) & set("/#?:"):
        return f"{best[0]}:{iri[len(best[1]) :]}"
    return f"<{iri}>"


def element_text(element: Element, prefixes: Iterable[tuple[str, str]] = ()) -> PageElement:
    """An element for people."""
    known = tuple(prefixes)
    lines = [f"{_triple_text(triple, known)} ." for triple in element.triples]
    text = "\n".join(lines)
    if len(text) > _LONGEST_TRIPLES:
        text = f"{text[:_LONGEST_TRIPLES]} …"
    graph = element.graph or ""
    return PageElement(element.time, text, graph if graph.startswith("_:") or not graph else shorten_iri(graph, known))


def _triple_text(triple: Triple, prefixes: tuple[tuple[str, str], ...]) -> str:
    return " ".join(_term_text(term, prefixes) for term in (triple.subject, triple.predicate, triple.object))


def _term_text(term: object, prefixes: tuple[tuple[str, str], ...]) -> str:
    if isinstance(term, NamedNode):
        return shorten_iri(term.value, prefixes)
    if isinstance(term, Literal) and not term.language:
        datatype = term.datatype.value.rpartition("#")[2]
        if datatype in ("integer", "decimal", "double", "boolean"):
            return term.value
    return str(term)
