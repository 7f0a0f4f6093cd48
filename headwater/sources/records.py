"""Streams that Spark itself reads, record by record: what they have in common.

A record source gives a streaming DataFrame, and a reader that makes chunks of its Arrow batches on the workers. Their
rows are united with those of the file sources before the stateful step (`headwater.spark.spark_runner`). Offsets are
Spark's: a batch that is run again reads the same records.

To the feed such a stream looks like one without items, so that the feed can say when it ends.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from headwater.sources.feed import Chunk
from headwater.sources.source import Found, Source, Span
from headwater.terms.model import BadElement, Element

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from headwater.terms.scanning.pattern_tables import Patterns
    from headwater.terms.scanning.scanned_columns import Scanned


class RecordReader(Protocol):
    """Makes chunks of records. It can be sent to workers."""

    def chunks(self, stream: str, batches: Iterator[pa.RecordBatch]) -> Iterator[Chunk]:
        """The chunks of all that one task reads."""


class _NoItems:
    """What the feed knows of a stream that it does not read."""

    def check(self) -> None:
        return

    def listing(self) -> list[Found]:
        return []

    def is_whole(self, item: Found) -> bool:
        return True

    def complete(self, item: Found) -> int:
        return item.size

    def read(self, span: Span) -> Iterator[Element | BadElement]:
        return iter(())

    def columns(self, span: Span, patterns: Patterns | None) -> Scanned | None:
        return None

    def text_at(self, name: str, position: tuple[int, ...]) -> str | None:
        return None

    def line_numbers(self, name: str, positions: Sequence[tuple[int, ...]]) -> list[int | None]:
        return [None] * len(positions)


class RecordSource(_NoItems, ABC):
    """A stream that Spark reads. `skew` is how far apart, in event time, its partitions may be; None for one order."""

    skew: int | None = None

    @abstractmethod
    def records(self, spark: SparkSession) -> DataFrame:
        """The records as a streaming DataFrame."""

    @abstractmethod
    def reader(self) -> RecordReader:
        """What makes chunks of them."""


def skews(sources: Mapping[str, Source]) -> tuple[tuple[str, int], ...]:
    """How far apart the partitions of the streams that have some may be."""
    found = ((stream, source.skew) for stream, source in sources.items() if isinstance(source, RecordSource))
    return tuple(sorted((stream, skew) for stream, skew in found if skew is not None))


@dataclass(frozen=True, slots=True)
class Elsewhere(_NoItems):
    """The place of a record source in the feed. With `ending`, the feed has something new to say: that it ended."""

    ending: int = 0

    def listing(self) -> list[Found]:
        # An item of another size is news; one that shrinks counts for nothing when a batch is cut by bytes.
        return [Found("end", -self.ending)] if self.ending else []


def elsewhere(*, ends: bool) -> Elsewhere:
    """The place of a record source in the feed of one run."""
    return Elsewhere(time.time_ns() if ends else 0)


def chunk_of(stream: str, number: int, source: str, found: Iterable[Element | BadElement]) -> Chunk:
    """A chunk of what was found in records."""
    elements: list[Element] = []
    bad: list[BadElement] = []
    for one in found:
        if isinstance(one, Element):
            elements.append(one)
        else:
            bad.append(one)
    return Chunk(stream, number, source, tuple(elements), tuple(bad))
