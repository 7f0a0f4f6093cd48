"""The windows of the queries that are evaluated, as named graphs beside the linked data.

    headwater:/queries/cars/windows/http://city/gates     what the window over that stream held at the newest answer

The name has that of the query and that of the window, so two queries that name a window the same have two graphs. What
a window held is read again from where its stream is kept, when a request sees the graph, and stays until the next
answer.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from pyoxigraph import RdfFormat

from headwater.algebra.plan import QueryPlan
from headwater.engine.query_handle import Query
from headwater.errors import StateError
from headwater.language.stream_clauses import RegistrationKind
from headwater.server.answers.log_files import LogReader, log_folder
from headwater.server.protocol.data_service import GraphReader
from headwater.server.protocol.store_mirror import ExtraGraphs
from headwater.sources.files import FileSource, MemorySource
from headwater.sources.posting.posted import PostedSource
from headwater.sources.receivers import ReceivedSource, spool_folder
from headwater.sources.source import ItemRange, Source
from headwater.terms.checking.checked_parsing import parse_quads
from headwater.terms.model import Element, NamedNode, Triple
from headwater.terms.names import DEFAULT_BASE, iri_to_name, name_to_iri

_FIRST_BYTES, _MOST_BYTES = 256 << 10, 16 << 20


@dataclass(frozen=True, slots=True)
class ShownWindow:
    """A window of a query, the `place`-th one: its stream, and which instants it held at the newest answer."""

    query: str
    place: int
    stream: str
    low: int
    high: int


def window_graph_names(plan: QueryPlan) -> list[NamedNode]:
    """The graphs of the windows of a query, in their order."""
    base = f"{DEFAULT_BASE}queries/{quote(plan.name, safe='')}/windows/"
    names: list[str] = []
    for source in plan.windows:
        name = base + quote(iri_to_name(source.label), safe="/:@!$&'()*+,;=-._~")
        count = sum(one == name or one.startswith(f"{name}#") for one in names)
        # Two windows over one stream have one label.
        names.append(name if not count else f"{name}#{count + 1}")
    return [NamedNode(one) for one in names]


class WindowGraphs:
    """Finds the graphs of windows: `queries` gives those that are evaluated, `source_of` where a stream is kept."""

    def __init__(
        self,
        state: Path,
        delay: int,
        queries: Callable[[], Sequence[Query]],
        source_of: Callable[[str], object],
    ) -> None:
        self._state = state
        self._delay = delay
        self._queries = queries
        self._source_of = source_of
        self._read: dict[ShownWindow, frozenset[Triple]] = {}

    def __call__(self) -> ExtraGraphs:
        """The graphs by name; each is read when it is looked up."""
        return _ReadWhenAsked(self, self._windows())

    def may_see(self, graph: NamedNode, reader: GraphReader) -> bool:
        """Whether a reader may see the graph of a window: it takes the right for its query and for its stream."""
        for query in self._queries():
            for name, source in zip(window_graph_names(query.plan), query.plan.windows, strict=True):
                if name == graph:
                    return reader.may_read(query.name, source.stream.value)
        return True

    def _windows(self) -> dict[NamedNode, ShownWindow]:
        found: dict[NamedNode, ShownWindow] = {}
        for query in self._queries():
            last = LogReader(log_folder(self._state / "answers", query.name)).last_record()
            spans = [] if last is None else json.loads(last[0].lines[-1]).get("inputs", [])
            names = window_graph_names(query.plan)
            for place, (name, source) in enumerate(zip(names, query.plan.windows, strict=True)):
                span = spans[place] if place < len(spans) else {"from_us": 0, "before_us": 0}
                found[name] = ShownWindow(query.name, place, source.stream.value, span["from_us"], span["before_us"])
        return found

    def read(self, window: ShownWindow, known: Collection[ShownWindow]) -> frozenset[Triple]:
        """What a window holds; `known` are all that there are now."""
        if window not in self._read:
            triples = self._answered(window) if window.low < window.high else frozenset[Triple]()
            self._read = {one: held for one, held in self._read.items() if one in known}
            self._read[window] = triples
        return self._read[window]

    def _answered(self, window: ShownWindow) -> frozenset[Triple]:
        producer = next((one for one in self._queries() if _makes(one.plan, window.stream)), None)
        if producer is not None:
            return self._made_by(producer.name, window)
        source = self._readable(window.stream)
        if source is None:
            return frozenset()
        elements = _elements_since(source, window, self._delay)
        return frozenset(triple for one in elements for triple in one.triples)

    def _made_by(self, producer: str, window: ShownWindow) -> frozenset[Triple]:
        """The triples that another query put into its stream, from the log of its answers."""
        triples: set[Triple] = set()
        for record, _ in LogReader(log_folder(self._state / "answers", producer)).read_after(None):
            for line in record.lines:
                answer = json.loads(line)
                if "graph" in answer and window.low <= answer["time_us"] < window.high:
                    quads = parse_quads(answer["graph"].encode("utf-8", "surrogatepass"), RdfFormat.N_TRIPLES)
                    triples.update(quad.triple for quad in quads)
        return frozenset(triples)

    def _readable(self, stream: str) -> Source | None:
        """The files in which a stream is kept; None where it passes by."""
        source = self._source_of(stream)
        if isinstance(source, PostedSource):
            return FileSource((str(source.folder / "*.tnq"),))
        if isinstance(source, ReceivedSource):
            return FileSource((str(spool_folder(self._state / "checkpoint", stream) / "*.tnq"),))
        return source if isinstance(source, FileSource | MemorySource) else None


class _ReadWhenAsked(Mapping[NamedNode, Collection[Triple]]):
    """The graphs of windows by name."""

    def __init__(self, graphs: WindowGraphs, windows: Mapping[NamedNode, ShownWindow]) -> None:
        self._graphs = graphs
        self._windows = windows
        self._known = frozenset(windows.values())

    def __getitem__(self, name: NamedNode) -> Collection[Triple]:
        return self._graphs.read(self._windows[name], self._known)

    def __iter__(self) -> Iterator[NamedNode]:
        return iter(self._windows)

    def __len__(self) -> int:
        return len(self._windows)


def _makes(plan: QueryPlan, stream: str) -> bool:
    made = plan.registration
    return made is not None and made.kind is RegistrationKind.STREAM and name_to_iri(made.name).value == stream


def _elements_since(source: Source, window: ShownWindow, delay: int) -> list[Element]:
    """The elements of a window, from the end of its stream backwards as far as it reaches."""
    size = _FIRST_BYTES
    while True:
        ranges, is_all = _tail(source, size)
        read = [one for part in ranges for one in source.read(part) if isinstance(one, Element)]
        if is_all or (read and min(one.time for one in read[:100]) < window.low - delay):
            return [one for one in read if window.low <= one.time < window.high]
        if size >= _MOST_BYTES:
            name = iri_to_name(window.stream)
            raise StateError(
                f"the window of {window.query} over {name} reaches beyond the last {_MOST_BYTES >> 20} MB of the "
                "stream: ask for it with a query that is registered"
            )
        size = min(4 * size, _MOST_BYTES)


def _tail(source: Source, size: int) -> tuple[list[ItemRange], bool]:
    """The last bytes of a source in the order in which they are read, and whether these are all."""
    ranges: list[ItemRange] = []
    for item in reversed(source.list_items()):
        if size <= 0:
            return ranges[::-1], False
        is_whole = source.needs_whole_read(item)
        end = item.size if is_whole else source.complete_size(item)
        start = 0 if is_whole else max(0, end - size)
        ranges.append(ItemRange(item.name, start, end, is_whole=is_whole))
        size -= end - start
        if start:
            return ranges[::-1], False
    return ranges[::-1], True
