"""The sources of a run, read batch by batch: which part comes next, and the elements in it.

Both runners drive this: the in-process runner in a loop, Spark through its data source. A batch is what lies between
two offsets. Which elements it holds depends on the offsets alone, so a batch can be read again after a failure, and
in pieces by several workers.

A *finite* feed (`finish` was called) knows what there was when it was asked, reads that and, if it `drains`, says of
each stream that it has ended. Otherwise a feed gives what there is so far, complete lines only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headwater.datasets.version_watch import VersionWatch
from headwater.sources.offsets import Mark, Offset, StreamOffset
from headwater.sources.source import Found, Source, Span
from headwater.sources.spool import forget_read
from headwater.sources.wanted_streams import EVERYTHING, Wanted, compiled
from headwater.terms.element_columns import ElementColumns
from headwater.terms.model import BadElement, Element

if TYPE_CHECKING:
    from headwater.terms.scanning.pattern_tables import Patterns
    from headwater.terms.scanning.scanned_columns import Scanned

_CHUNK_ELEMENTS = 4096
_CHUNK_BYTES = 16 << 20
"""As much is scanned at once: arrays of this size are quickly made, and one is on its way while the next is filled."""


@dataclass(frozen=True, slots=True)
class Piece:
    """What one worker reads: a span of the item with this number, or, with no span, the end of the stream.

    A piece without a stream only says that the run has begun, or which version of the data sets counts from now on.
    """

    stream: str | None = None
    number: int = 0
    span: Span | None = None
    version: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class Chunk:
    """Some elements of one stream, good and bad, and the item that they stood in; or a version of the data sets."""

    stream: str | None
    number: int = 0
    source: str = ""
    elements: tuple[Element, ...] | ElementColumns = ()
    bad: tuple[BadElement, ...] = ()
    ended: bool = False
    version: tuple[int, ...] | None = None


class _Ahead(NamedTuple):
    """What an item has that was not read: where it ends now, and how many bytes that are, at least one."""

    end: int
    left: int
    whole: bool = False


class Feed:
    """Reads sources by their streams' IRIs, and watches the folders of data sets."""

    def __init__(
        self,
        sources: Mapping[str, Source],
        *,
        drain: bool = True,
        wanted: Wanted = EVERYTHING,
        datasets: Sequence[str] = (),
    ) -> None:
        self._datasets = [VersionWatch(folder) for folder in datasets]
        self._sources = dict(sources)
        self._drain = drain
        self._wanted = wanted
        self._patterns: dict[str, Patterns | None] = {}
        self._target: dict[str, list[Found]] | None = None

    def check(self) -> None:
        """Raise `SourceError` for a source that has nothing to read."""
        for source in self._sources.values():
            source.check()

    def finish(self) -> None:
        """Read what there is now, and nothing that comes later."""
        self._target = {stream: source.listing() for stream, source in self._sources.items()}

    def next(self, start: Offset, limit: int | None = None) -> Offset:
        """How far the next batch goes, with at most about `limit` bytes; the same offset where nothing is new."""
        listings = {stream: self._listing(stream) for stream in self._sources}
        marks = {stream: _with_new_items(start.of(stream).marks, found) for stream, found in listings.items()}
        ahead = {stream: self._ahead(stream, marks[stream], found) for stream, found in listings.items()}
        left = {stream: sum(part.left for part in parts.values()) for stream, parts in ahead.items()}
        total = max(1, sum(left.values()))
        streams: dict[str, StreamOffset] = {}
        for stream, before in ((stream, start.of(stream)) for stream in self._sources):
            # In proportion to what is left, so that the streams of a query come to their ends together.
            share = left[stream] if limit is None else min(left[stream], max(1, limit * left[stream] // total))
            moved = _moved(marks[stream], ahead[stream], share)
            ends = self._target is not None and self._drain and share >= left[stream]
            streams[stream] = StreamOffset(moved, ends or (before.ended and moved == before.marks))
        # Streams without a source now keep what is known of them for a later run.
        end = Offset({**start.streams, **streams}, begun=True, version=self.newest_version())
        return start if end == start else end

    def newest_version(self) -> tuple[int, ...]:
        """The newest versions of the data sets."""
        return tuple(one.newest_version() for one in self._datasets)

    def _listing(self, stream: str) -> list[Found]:
        return self._sources[stream].listing() if self._target is None else self._target[stream]

    def _ahead(self, stream: str, marks: Iterable[Mark], listing: Iterable[Found]) -> dict[str, _Ahead]:
        source = self._sources[stream]
        found = {item.name: item for item in listing}
        everything = self._target is not None and self._drain
        ahead: dict[str, _Ahead] = {}
        for mark in marks:
            item = found.get(mark.name)
            if item is None or item.size == mark.end:
                continue
            if source.is_whole(item):
                ahead[mark.name] = _Ahead(item.size, max(1, item.size - mark.end), whole=True)
            elif item.size < mark.end:
                ahead[mark.name] = _Ahead(item.size, 1)
            elif (end := item.size if everything else source.complete(item)) > mark.end:
                ahead[mark.name] = _Ahead(end, end - mark.end)
        return ahead

    def pieces(self, start: Offset, end: Offset, size: int | None = None) -> list[Piece]:
        """The batch between two offsets, in pieces of at most about `size` bytes."""
        pieces: list[Piece] = [] if start.begun else [Piece()]
        if end.version != start.version:
            pieces.append(Piece(version=end.version))
        for stream, offset in end.streams.items():
            before = start.of(stream)
            # A batch that was planned when a stream still had readers may be read when it has none.
            if offset == before or stream not in self._sources:
                continue
            for number, mark in enumerate(offset.marks):
                old = before.marks[number] if number < len(before.marks) else Mark(mark.name)
                if mark.end != old.end:
                    pieces.extend(Piece(stream, number, span) for span in _spans(old, mark, size))
            if offset.ended:
                pieces.append(Piece(stream))
        return pieces

    def read(self, piece: Piece) -> Iterator[Chunk]:
        """The elements of a piece, in chunks."""
        if piece.stream is None or piece.span is None:
            yield Chunk(piece.stream, ended=piece.stream is not None, version=piece.version)
            return
        for part in piece.span.parts(_CHUNK_BYTES):
            yield from self._chunks(piece.stream, piece.number, part)

    def _chunks(self, stream: str, number: int, span: Span) -> Iterator[Chunk]:
        """The elements of a span, scanned as one chunk of columns where the source can be."""
        source, patterns = self._sources[stream], self._patterns_of(stream)
        scanned = source.columns(span, patterns)
        if scanned is not None:
            yield Chunk(stream, number, span.name, *_placed(scanned, number, is_whole=patterns is None))
            return
        elements: list[Element] = []
        bad: list[BadElement] = []
        for found in source.read(span):
            placed = replace(found, position=(number, *found.position))
            if isinstance(placed, Element):
                elements.append(placed)
            else:
                bad.append(placed)
            if len(elements) + len(bad) >= _CHUNK_ELEMENTS:
                yield Chunk(stream, number, span.name, tuple(elements), tuple(bad))
                elements, bad = [], []
        if elements or bad:
            yield Chunk(stream, number, span.name, tuple(elements), tuple(bad))

    def commit(self, end: Offset) -> None:
        """What was read up to here is safe: nobody will ask for it again."""
        forget_read(self._sources, end)

    def _patterns_of(self, stream: str) -> Patterns | None:
        if stream not in self._patterns:
            self._patterns[stream] = compiled(self._wanted.of(stream))
        return self._patterns[stream]

    def text_at(self, stream: str, name: str, position: tuple[int, ...]) -> str | None:
        """The statements of an element by its position, where the source can still say them."""
        source = self._sources.get(stream)
        return None if source is None else source.text_at(name, position[1:])

    def line_numbers(self, stream: str, name: str, positions: list[tuple[int, ...]]) -> list[int | None]:
        """The lines of an item at which elements with these positions began, where lines have numbers."""
        source = self._sources.get(stream)
        if source is None:
            return [None] * len(positions)
        return source.line_numbers(name, [position[1:] for position in positions])


def _placed(scanned: Scanned, number: int, *, is_whole: bool) -> tuple[ElementColumns, tuple[BadElement, ...]]:
    """What was scanned of the item with this number, elements and bad lines, with their positions in the stream."""
    positions = np.stack([np.full_like(scanned.element_positions, number), scanned.element_positions], axis=1)
    texts = scanned.texts()
    columns = ElementColumns(
        scanned.element_times,
        scanned.element_rows,
        scanned.triples,
        positions,
        (texts,) if len(texts) else (),
        is_whole=is_whole,
    )
    return columns, tuple(replace(one, position=(number, *one.position)) for one in scanned.bad)


def _with_new_items(marks: tuple[Mark, ...], listing: Iterable[Found]) -> tuple[Mark, ...]:
    known = {mark.name for mark in marks}
    return (*marks, *(Mark(item.name) for item in listing if item.name not in known))


def _moved(marks: Iterable[Mark], ahead: Mapping[str, _Ahead], share: int) -> tuple[Mark, ...]:
    """The marks after reading a share of the bytes ahead, the first items first."""
    moved: list[Mark] = []
    for mark in marks:
        part = ahead.get(mark.name)
        if part is None or share <= 0:
            moved.append(mark)
            continue
        if part.whole or part.left <= share or part.end < mark.end:
            moved.append(Mark(mark.name, part.end, at_end=not part.whole, whole=part.whole))
        else:
            moved.append(Mark(mark.name, mark.end + share))
        share -= part.left
    return tuple(moved)


def _spans(old: Mark, new: Mark, size: int | None) -> Iterator[Span]:
    """What lies between two marks of an item; one span where it is read as a whole, or was cut."""
    limit = new.end if new.at_end else None
    between = Span(new.name, old.end, new.end, whole=new.whole, after_end=old.at_end, limit=limit)
    return between.parts(size or abs(new.end - old.end))
