"""Answers on their way to the topic of answers: as records, or in parts that are merged first.

One shard makes the records of its answers. Several give parts of answers, which go to one more worker: it merges those
of a query at a tick when every shard has come past the tick, so that a key has one content.

    shard 0   totals: answer at 10, come to 11 ─┐
    shard 1   totals: answer at 10, come to 10 ─┴▶ nothing yet; with "come to 11" of shard 1: the record totals|10|0

Every shard reads all records of a batch, so at its end all have come equally far, and nothing is left unmerged.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from headwater.execution.answer_batch import AnswerBatch, merge_answers
from headwater.execution.answer_bytes import pack_answers, unpack_answers
from headwater.execution.answers import Answer
from headwater.running.evaluation import BatchOutcome
from headwater.running.program_description import ProgramDescription
from headwater.running.shipping import Shipped
from headwater.sharding.answer_merging import AnswerMerger
from headwater.sinks.kafka_sink import AnswerRecords
from headwater.spark.realtime.shard_worker import REAL
from headwater.terms.ids.term_key import ProcessKey

if TYPE_CHECKING:
    import pyarrow as pa

RECORD_SCHEMA = "topic string, partition int, key binary, value binary, headers array<struct<key:string,value:binary>>"
PART_SCHEMA = "shard int, query string, payload binary, watermark long, suspended boolean"


def _record_form() -> Any:
    import pyarrow as pa

    header = pa.struct([("key", pa.string()), ("value", pa.binary())])
    names = [("topic", pa.string()), ("partition", pa.int32()), ("key", pa.binary()), ("value", pa.binary())]
    return pa.schema([*names, ("headers", pa.list_(header))])


@dataclass(frozen=True)
class RecordRows:
    """The answers of one shard as records; `topics` are those of the sinks, each with its number of partitions.

    All answers of a query go to one partition, where they keep their order.
    """

    topics: Sequence[tuple[AnswerRecords, int]]

    def rows(self, outcome: BatchOutcome, shard: int, batch: int) -> pa.RecordBatch | None:
        """The records of the answers of a step."""
        return self.records(outcome.answers, batch)

    def records(self, answers: Iterable[Answer], batch: int) -> pa.RecordBatch | None:
        """The records of answers; None where there are none."""
        import pyarrow as pa

        rows = [
            (made.topic, zlib.crc32(answer.query.encode()) % partitions, *record)
            for answer in answers
            for made, partitions in self.topics
            for record in made.of(answer, batch)
        ]
        if not rows:
            return None
        form = _record_form()
        return pa.RecordBatch.from_pylist([dict(zip(form.names, row, strict=True)) for row in rows], schema=form)


@dataclass(frozen=True)
class PartRows:
    """What one of several shards gives: parts of answers, and how far each query has come."""

    def rows(self, outcome: BatchOutcome, shard: int, batch: int) -> pa.RecordBatch | None:
        """The parts of the answers of a step."""
        import pyarrow as pa

        rows: list[tuple[object, ...]] = [
            (shard, query, pack_answers(part), None, None)
            for query, answers in outcome.answers.by_query().items()
            for part in answers.parts
        ]
        for name, one in outcome.measure.queries.items():
            rows.append((shard, name, None, one.watermark, one.suspended is not None))
        if not rows:
            return None
        kinds = (pa.int32(), pa.string(), pa.binary(), pa.int64(), pa.bool_())
        names = [field.split()[0] for field in PART_SCHEMA.split(", ")]
        form = pa.schema(list(zip(names, kinds, strict=True)))
        return pa.RecordBatch.from_pylist([dict(zip(names, row, strict=True)) for row in rows], schema=form)


@dataclass
class _QueryParts:
    """The parts of one query's answers that wait for other shards."""

    waiting: list[Answer] = field(default_factory=list)
    watermarks: dict[int, int] = field(default_factory=dict)
    is_suspended: bool = False

    def take_ready(self, shards: int) -> list[Answer]:
        """The parts of the ticks that every shard has passed."""
        if len(self.watermarks) < shards:
            return []
        mark = min(self.watermarks.values())
        ready = [one for one in self.waiting if one.time < mark]
        if ready:
            self.waiting = [one for one in self.waiting if one.time >= mark]
        return ready


class PartMerger:
    """Merges the parts of the shards' answers, query by query."""

    def __init__(self, description: ProgramDescription) -> None:
        assert description.sharding is not None
        self._shards = len(description.sharding.keys)
        self._order = {query.plan.name: place for place, query in enumerate(description.queries)}
        self._merger = AnswerMerger(description.queries, description.sharding)
        self._queries: dict[str, _QueryParts] = {name: _QueryParts() for name in self._order}

    def take(self, rows: Iterable[dict[str, Any]]) -> AnswerBatch:
        """Take rows of shards; gives the answers that are whole now, in the order of time and registration."""
        notices: list[Answer] = []
        touched: dict[str, None] = {}
        for row in rows:
            query = self._queries[row["query"]]
            touched[row["query"]] = None
            if row["payload"] is not None:
                for answer in unpack_answers(row["payload"]):
                    if answer.suspended is not None and not query.is_suspended:
                        notices.append(answer)
                    query.is_suspended |= answer.suspended is not None
                    query.waiting.append(answer)
            else:
                query.is_suspended |= row["suspended"]
                if row["watermark"] is not None:
                    query.watermarks[row["shard"]] = row["watermark"]
        merged = [AnswerBatch([[one]]) for one in notices]
        for name in touched:
            parts = self._queries[name]
            ready = parts.take_ready(self._shards)
            if parts.is_suspended:
                # The other shards have parts of answers, which nobody needs.
                parts.waiting = []
            elif ready:
                merged.append(self._merger.merge(AnswerBatch([ready])))
        return merge_answers(merged, self._order)

    @property
    def waiting(self) -> int:
        """How many parts wait for other shards."""
        return sum(len(one.waiting) for one in self._queries.values())


@dataclass(frozen=True)
class MergeWorker:
    """Merges the parts of one long batch, as the function of `mapInArrow`."""

    description: Shipped[ProgramDescription]
    records: RecordRows
    key: ProcessKey = field(default_factory=ProcessKey)
    """Goes with it to the workers."""

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        batch = int(context.getLocalProperty("streaming.sql.batchId") or 0)
        merger = PartMerger(self.description.unpack())
        for arrow in batches:
            rows = self.records.records(merger.take(arrow.filter(arrow.column(REAL)).to_pylist()), batch)
            if rows is not None:
                yield rows
        if merger.waiting:
            raise RuntimeError(f"{merger.waiting} parts of answers are left at the end of batch {batch}")
