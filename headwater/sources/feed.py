"""The sources of a run, read batch by batch: how far the next batch goes, and the elements in it.

Both runners drive this: the in-process runner in a loop, Spark through its data source. A batch is what lies between
two offsets. Which elements it holds depends on the offsets alone, so a batch can be read again after a failure, and
as several read tasks by several workers.

A *finite* feed (`finish` was called) reads the items that there were at that moment and, if it `drains`, ends each
stream with the last of them. Otherwise a feed gives what there is so far, complete lines only.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headwater.datasets.version_watch import VersionWatch
from headwater.sources.files import MemorySource
from headwater.sources.following.file_identity import identify
from headwater.sources.following.followed_items import FollowedItems
from headwater.sources.following.stream_watch import StreamWatch
from headwater.sources.offsets import ItemOffset, Offset, StreamOffset
from headwater.sources.source import ArrivalSource, ItemRange, Source, SourceItem
from headwater.sources.spool import SpoolSource, ended_streams, release_read_items
from headwater.sources.stream_patterns import ALL_TRIPLES, WantedPatterns, compile_patterns
from headwater.terms.element_columns import NO_GRAPHS, ElementColumns
from headwater.terms.ids.inline_layout import NO_TERM
from headwater.terms.ids.term_key import ProcessKey
from headwater.terms.model import BadElement, Element
from headwater.windows.heartbeat import Heartbeat

if TYPE_CHECKING:
    from headwater.terms.scanning.pattern_tables import ScanPatterns
    from headwater.terms.scanning.scanned_columns import ScannedColumns

_CHUNK_ELEMENTS = 4096
_CHUNK_BYTES = 16 << 20
"""As much is scanned at once: arrays of this size are quickly made, and one is on its way while the next is filled."""


@dataclass(frozen=True, slots=True)
class ReadTask:
    """What one worker reads of a batch: a range of the item with this index.

    Without a range it is a heartbeat or the end of the stream. A task without a stream marks the beginning of the run
    or, with a version, a new version of the data sets.
    """

    stream: str | None = None
    item_index: int = 0
    item_range: ItemRange | None = None
    version: tuple[int, ...] | None = None
    heartbeat: Heartbeat | None = None


@dataclass(frozen=True, slots=True)
class Chunk:
    """Elements of one stream, good and bad, that were read together from one item; or a version of the data sets."""

    stream: str | None
    item_index: int = 0
    source: str = ""
    elements: tuple[Element, ...] | ElementColumns = ()
    bad: tuple[BadElement, ...] = ()
    has_ended: bool = False
    version: tuple[int, ...] | None = None
    heartbeat: Heartbeat | None = None


class _Unread(NamedTuple):
    """What an item has that was not read: where it ends now, and how many bytes that are, at least one."""

    item: SourceItem
    end: int
    size: int
    is_whole: bool = False


class Feed:
    """Reads sources by their streams' IRIs, and watches the folders of data sets.

    The streams in `live` have heartbeats, which `watch` gives.
    """

    def __init__(
        self,
        sources: Mapping[str, Source],
        *,
        drain: bool = True,
        wanted: WantedPatterns = ALL_TRIPLES,
        datasets: Sequence[str] = (),
        live: Collection[str] = (),
        watch: StreamWatch | None = None,
        is_told: bool = True,
    ) -> None:
        """`is_told` says that receivers announce to this process what they put into spools."""
        self._is_told = is_told
        self._live = frozenset(live)
        self._watch = watch or StreamWatch()
        self._datasets = [VersionWatch(folder) for folder in datasets]
        self._sources = dict(sources)
        self._drain = drain
        self._wanted = wanted
        self._patterns: dict[str, ScanPatterns | None] = {}
        self._final_items: dict[str, list[SourceItem]] | None = None
        self._key = ProcessKey()
        """Goes with the feed to the workers that read for it."""
        self._followed: dict[str, FollowedItems] = {}
        self._listed: dict[str, list[SourceItem]] = {}
        """By stream, the items when they were looked at last."""

    def check(self) -> None:
        """Raise `SourceError` for a source that has nothing to read."""
        for source in self._sources.values():
            source.check()

    def finish(self) -> None:
        """Read what there is now, and nothing that comes later."""
        self._final_items = {stream: source.list_items() for stream, source in self._sources.items()}

    def next_offset(self, start: Offset, limit: int | None = None) -> Offset:
        """How far the next batch goes, with at most about `limit` bytes; the same offset where nothing is new."""
        settled = self._ask_settled(start)
        # Looked at first: what stands in a spool then is all that it will ever hold.
        ended = ended_streams(self._sources)
        listed = self._listed = {stream: self._list_items(stream) for stream in self._sources}
        followed = {stream: self._follow(stream, start.of(stream).items, listed[stream]) for stream in self._sources}
        unread = {stream: self._find_unread(stream, *followed[stream]) for stream in self._sources}
        sizes = {stream: sum(one.size for one in unread[stream].values()) for stream in self._sources}
        total = max(1, sum(sizes.values()))
        streams: dict[str, StreamOffset] = {}
        for stream, before in ((stream, start.of(stream)) for stream in self._sources):
            # In proportion to what is left, so that the streams of a query come to their ends together.
            share = sizes[stream] if limit is None else min(sizes[stream], max(1, limit * sizes[stream] // total))
            offsets, source = followed[stream][0], self._sources[stream]
            after = _advance(offsets, unread[stream], share, source, is_final=self._final_items is not None)
            is_last = (self._final_items is not None and self._drain) or stream in ended
            ends = is_last and share >= sizes[stream]
            heartbeat = before.heartbeat
            if stream in settled and all(after[index].end == one.end for index, one in unread[stream].items()):
                heartbeat = self._watch.beat(stream, settled[stream])
            streams[stream] = StreamOffset(after, ends or (before.has_ended and after == before.items), heartbeat)
        # Streams without a source now keep what is known of them for a later run.
        end = Offset({**start.streams, **streams}, has_begun=True, version=self.newest_version())
        return start if end == start else end

    @property
    def is_polled(self) -> bool:
        """Whether something may come of which nobody tells."""
        return self._final_items is None and any(map(self._must_poll, self._sources.values()))

    def has_changed(self) -> bool:
        """Whether the items are others, or have changed, since the last look at those that nobody tells of."""
        return any(
            source.list_items() != self._listed.get(stream)
            for stream, source in self._sources.items()
            if self._must_poll(source)
        )

    def _must_poll(self, source: Source) -> bool:
        return not isinstance(source, (MemorySource, SpoolSource) if self._is_told else MemorySource)

    def _ask_settled(self, start: Offset) -> dict[str, int | None]:
        """What has settled of each live stream, before its items are listed; a finite feed has no live streams."""
        settled: dict[str, int | None] = {}
        for stream in self._live & self._sources.keys() if self._final_items is None else ():
            self._watch.begin(stream, start.of(stream).heartbeat)
            source = self._sources[stream]
            settled[stream] = source.settled_before() if isinstance(source, ArrivalSource) else None
        return settled

    def newest_version(self) -> tuple[int, ...]:
        """The newest versions of the data sets."""
        return tuple(one.newest_version() for one in self._datasets)

    def _list_items(self, stream: str) -> list[SourceItem]:
        return self._sources[stream].list_items() if self._final_items is None else self._final_items[stream]

    def _follow(
        self, stream: str, offsets: Sequence[ItemOffset], items: Sequence[SourceItem]
    ) -> tuple[tuple[ItemOffset, ...], dict[int, SourceItem]]:
        """The offsets of a stream, new items among them, and where each item is now."""
        if stream not in self._followed:
            self._followed[stream] = FollowedItems(self._sources[stream])
        return self._followed[stream].follow(offsets, items, is_final=self._final_items is not None)

    def _find_unread(
        self, stream: str, offsets: Sequence[ItemOffset], items: Mapping[int, SourceItem]
    ) -> dict[int, _Unread]:
        """Which items of a stream, by index, have more to read than their offsets say, and up to where."""
        source = self._sources[stream]
        reads_all = self._final_items is not None and self._drain
        unread: dict[int, _Unread] = {}
        for index, item in items.items():
            offset = offsets[index]
            if item.size == offset.end:
                continue
            if source.needs_whole_read(item):
                unread[index] = _Unread(item, item.size, max(1, item.size - offset.end), is_whole=True)
            elif item.size < offset.end:
                unread[index] = _Unread(item, item.size, 1)
            elif (end := item.size if reads_all else source.complete_size(item)) > offset.end:
                unread[index] = _Unread(item, end, end - offset.end)
        return unread

    def read_tasks(self, start: Offset, end: Offset, size: int | None = None) -> list[ReadTask]:
        """The batch between two offsets, in tasks of at most about `size` bytes."""
        tasks: list[ReadTask] = [] if start.has_begun else [ReadTask()]
        if end.version != start.version:
            tasks.append(ReadTask(version=end.version))
        for stream, offset in end.streams.items():
            before = start.of(stream)
            # A batch that was planned when a stream still had readers may be read when it has none.
            if offset == before or stream not in self._sources:
                continue
            for index, new in enumerate(offset.items):
                old = before.items[index] if index < len(before.items) else ItemOffset(new.name)
                if new.is_gone and not old.is_gone and not (old.is_at_end or old.is_whole):
                    gone = ItemRange(new.name, old.end, old.end, is_gone=True)
                    tasks.append(ReadTask(stream, index, gone))
                elif new.end != old.end:
                    tasks.extend(ReadTask(stream, index, item_range) for item_range in _ranges_between(old, new, size))
            if offset.has_ended:
                tasks.append(ReadTask(stream))
            elif offset.heartbeat != before.heartbeat:
                tasks.append(ReadTask(stream, heartbeat=offset.heartbeat))
        return tasks

    def read(self, task: ReadTask) -> Iterator[Chunk]:
        """The elements of a task, in chunks."""
        if task.stream is None or task.item_range is None:
            has_ended = task.stream is not None and task.heartbeat is None
            yield Chunk(task.stream, has_ended=has_ended, version=task.version, heartbeat=task.heartbeat)
            return
        for item_range in task.item_range.split(_CHUNK_BYTES):
            yield from self._read_range(task.stream, task.item_index, item_range)

    def _read_range(self, stream: str, index: int, item_range: ItemRange) -> Iterator[Chunk]:
        """The elements of a range, scanned as one chunk of columns where the source can do that."""
        source, patterns = self._sources[stream], self._patterns_of(stream)
        scanned = source.scan(item_range, patterns)
        if scanned is not None:
            yield Chunk(stream, index, item_range.name, *columns_of_scan(scanned, index, is_whole=patterns is None))
            return
        elements: list[Element] = []
        bad: list[BadElement] = []
        for one in source.read(item_range):
            with_index = replace(one, position=(index, *one.position))
            if isinstance(with_index, Element):
                elements.append(with_index)
            else:
                bad.append(with_index)
            if len(elements) + len(bad) >= _CHUNK_ELEMENTS:
                yield Chunk(stream, index, item_range.name, tuple(elements), tuple(bad))
                elements, bad = [], []
        if elements or bad:
            yield Chunk(stream, index, item_range.name, tuple(elements), tuple(bad))

    def commit(self, end: Offset) -> None:
        """Let sources give up what was read up to here: its batch was committed, and is not run again."""
        release_read_items(self._sources, end)

    def _patterns_of(self, stream: str) -> ScanPatterns | None:
        if stream not in self._patterns:
            self._patterns[stream] = compile_patterns(self._wanted.of(stream))
        return self._patterns[stream]

    def text_at(self, stream: str, name: str, position: tuple[int, ...]) -> str | None:
        """The statements of an element by its position; None where the source has it no more."""
        source = self._sources.get(stream)
        return None if source is None else source.text_at(name, position[1:])

    def line_numbers(self, stream: str, name: str, positions: list[tuple[int, ...]]) -> list[int | None]:
        """The lines of an item at which elements with these positions begin; None where lines have no numbers."""
        source = self._sources.get(stream)
        if source is None:
            return [None] * len(positions)
        return source.line_numbers(name, [position[1:] for position in positions])


def columns_of_scan(
    scanned: ScannedColumns, item_index: int, *, is_whole: bool
) -> tuple[ElementColumns, tuple[BadElement, ...]]:
    """What was scanned of an item, elements and bad lines, with their positions in the stream."""
    positions = np.stack([np.full_like(scanned.element_positions, item_index), scanned.element_positions], axis=1)
    has_graphs = scanned.has_graph_texts and bool((scanned.element_graphs != NO_TERM).any())
    columns = ElementColumns(
        scanned.element_times,
        scanned.element_rows,
        scanned.triples,
        positions,
        scanned.text_tables(),
        is_whole=is_whole,
        checks=scanned.checks,
        graphs=scanned.element_graphs if has_graphs else NO_GRAPHS,
    )
    return columns, tuple(replace(one, position=(item_index, *one.position)) for one in scanned.bad)


def _advance(
    offsets: Iterable[ItemOffset], unread: Mapping[int, _Unread], share: int, source: Source, *, is_final: bool
) -> tuple[ItemOffset, ...]:
    """The offsets after reading a share of the unread bytes, the first items first."""
    advanced: list[ItemOffset] = []
    for index, offset in enumerate(offsets):
        rest = unread.get(index)
        if rest is None or share <= 0:
            advanced.append(offset)
            continue
        if rest.is_whole or rest.size <= share or rest.end < offset.end:
            after = ItemOffset(offset.name, rest.end, is_at_end=not rest.is_whole, is_whole=rest.is_whole)
        else:
            cut = source.find_batch_end(rest.item, offset.end + share, rest.end)
            after = ItemOffset(offset.name, cut, is_at_end=cut == rest.end)
        share -= rest.size
        item = rest.item
        after = replace(after, identity=identify(item.path, after.end, item.inode) if item.path else "")
        # A file that was replaced just now is found under its other name when items are listed again.
        is_known = bool(after.identity or not item.path)
        advanced.append(after if is_known or is_final else offset)
    return tuple(advanced)


def _ranges_between(old: ItemOffset, new: ItemOffset, size: int | None) -> Iterator[ItemRange]:
    """What lies between two offsets of an item; one range where it is read as a whole, or was truncated."""
    limit = new.end if new.is_at_end else None
    between = ItemRange(
        new.name,
        old.end,
        new.end,
        is_whole=new.is_whole,
        is_after_end=old.is_at_end,
        limit=limit,
        identity=new.identity,
    )
    return between.split(size or abs(new.end - old.end))
