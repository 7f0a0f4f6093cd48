"""Streams that Spark itself reads, record by record: what they have in common.

A record source gives a streaming DataFrame, and a reader that makes chunks of its Arrow batches on the workers. Their
rows are united with those of the file sources before the stateful step (`headwater.spark.spark_runner`). Offsets are
Spark's: a batch that is run again reads the same records.

In the feed such a stream has no items (`ReadBySpark`): the feed only brings its end.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Protocol

from headwater.sources.feed import Chunk
from headwater.sources.source import ItemRange, Source, SourceItem
from headwater.terms.model import BadElement, Element

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from headwater.terms.scanning.pattern_tables import ScanPatterns
    from headwater.terms.scanning.scanned_columns import ScannedColumns


class RecordReader(Protocol):
    """Makes chunks of records. It can be sent to workers."""

    def chunks(self, stream: str, batches: Iterator[pa.RecordBatch]) -> Iterator[Chunk]:
        """The chunks of all that one task reads."""


class _NoItems:
    """A source without items, as the feed sees a stream that it does not read."""

    def check(self) -> None:
        return

    def list_items(self) -> list[SourceItem]:
        return []

    def items_beside(self, name: str) -> list[SourceItem]:
        return []

    def needs_whole_read(self, item: SourceItem) -> bool:
        return True

    def complete_size(self, item: SourceItem) -> int:
        return item.size

    def find_batch_end(self, item: SourceItem, wanted: int, end: int) -> int:
        return wanted

    def read(self, item_range: ItemRange) -> Iterator[Element | BadElement]:
        return iter(())

    def scan(self, item_range: ItemRange, patterns: ScanPatterns | None) -> ScannedColumns | None:
        return None

    def text_at(self, name: str, position: tuple[int, ...]) -> str | None:
        return None

    def line_numbers(self, name: str, positions: Sequence[tuple[int, ...]]) -> list[int | None]:
        return [None] * len(positions)


class RecordSource(_NoItems, ABC):
    """A stream that Spark reads. `skew` is how far apart, in event time, its partitions may be; None for one order."""

    skew: int | None = None
    has_own_plan: ClassVar[bool] = False
    """Whether the records are the result of a plan of the user's, and not of a plain read."""

    @property
    def usual_idle(self) -> int | None:
        """After how much silence the stream is not waited for, where nobody says it; None: it always is."""
        return None

    @abstractmethod
    def records(self, spark: SparkSession) -> DataFrame:
        """The records as a streaming DataFrame."""

    @abstractmethod
    def reader(self) -> RecordReader:
        """What makes chunks of them."""


def skews_of(sources: Mapping[str, Source]) -> tuple[tuple[str, int], ...]:
    """How far apart the partitions of the streams that have some may be."""
    found = ((stream, source.skew) for stream, source in sources.items() if isinstance(source, RecordSource))
    return tuple(sorted((stream, skew) for stream, skew in found if skew is not None))


@dataclass(frozen=True, slots=True)
class ReadBySpark(_NoItems):
    """The place of a record source in the feed of one run: no items; `end_id`, where set, brings the end."""

    end_id: int = 0

    @classmethod
    def in_run(cls, *, has_end: bool) -> ReadBySpark:
        """Such a place, with an end that no other run has."""
        return cls(time.time_ns() if has_end else 0)

    def list_items(self) -> list[SourceItem]:
        # An item of another size makes a batch; one that shrinks counts for nothing when a batch is limited by bytes.
        return [SourceItem("end", -self.end_id)] if self.end_id else []


def chunk_of(stream: str, item_index: int, source: str, decoded: Iterable[Element | BadElement]) -> Chunk:
    """A chunk of the elements, good and bad, that were decoded from records."""
    elements: list[Element] = []
    bad: list[BadElement] = []
    for one in decoded:
        if isinstance(one, Element):
            elements.append(one)
        else:
            bad.append(one)
    return Chunk(stream, item_index, source, tuple(elements), tuple(bad))
