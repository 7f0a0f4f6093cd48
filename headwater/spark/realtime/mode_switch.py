"""A checkpoint of micro-batches becomes one of real-time mode, and the other way round.

    headwater.json   says whose state counts: it changes last
    spark            offsets, commits and state of micro-batches
    realtime         offsets, commits and snapshots of real-time mode

The state goes over as it was behind the last batch that Spark has committed. It is written into the folder of the other
mode as what its first batch begins with, forced to disk; then `headwater.json` names the other mode, and the folder of
the first one is removed. A switch that was killed before that is done again, and one that was killed after it is done.
"""

from __future__ import annotations

import json
import logging
import uuid
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from headwater.execution.window_log import LogSegment
from headwater.running.checkpoints import (
    REALTIME_STATE,
    SPARK_STATE,
    CheckpointError,
    CheckpointRecord,
    report_checkpoint_damage,
)
from headwater.running.evaluation import BatchOutcome
from headwater.running.program_description import ProgramDescription
from headwater.running.state_handover import ReadPartitions, own_triples_of, to_batch_state, to_ordered_state
from headwater.running.workload import Workload
from headwater.sources.kafka import KafkaReader, KafkaSource
from headwater.sources.kafka_jars import ensure_kafka
from headwater.sources.offsets import Offset
from headwater.sources.source import SourceError
from headwater.spark.realtime.checkpoint_plan import SPARK_LOGS, CheckpointPlan
from headwater.spark.realtime.kafka_admin import can_ask_broker, count_partitions
from headwater.spark.realtime.realtime_runner import kafka_sources, plan_checkpoint
from headwater.spark.realtime.shard_snapshots import WINDOWS, ShardSnapshots
from headwater.spark.spark_handover import Handover, read_handed_over, write_shard, write_starts
from headwater.spark.spark_logs import (
    TopicOffsets,
    check_commits,
    last_commit,
    read_shard_state,
    read_source_lines,
    read_topic_offsets,
)
from headwater.terms.durable_files import remove_files
from headwater.terms.names import iri_to_name

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

logger = logging.getLogger(__name__)

_FROM_THE_BEGINNING = -2
"""How Spark's connector names the first offset of a partition: one that is new has nothing that was read."""


def switch_to_real_time(
    spark: SparkSession, folder: Path, known: CheckpointRecord, now: CheckpointRecord, workload: Workload
) -> CheckpointRecord:
    """Have real-time mode go on where micro-batches are; gives the record of the checkpoint.

    `now` says how the run is called. The batch that was planned last must be committed.
    """
    with _replacing(folder, SPARK_STATE, REALTIME_STATE):
        plan = plan_checkpoint(spark, workload)
        starts = _read_starts(folder / SPARK_STATE, kafka_sources(workload), plan)
        if starts is not None:
            unread = _read_unread(folder / SPARK_STATE, starts).to_json()
            _write_snapshots(spark, folder, workload, replace(plan, starts=starts, unread=unread))
        return _write_record(folder, known, now)


def _read_starts(
    logs: Path, sources: Mapping[str, KafkaSource], plan: CheckpointPlan
) -> dict[str, TopicOffsets] | None:
    """By stream, how far micro-batches have read all partitions of its topics; None where they have done nothing."""
    last, handover = last_commit(logs), Handover.read(logs)
    if last >= 0:
        # The first source has what Spark does not read itself.
        found = dict(zip(sources, read_topic_offsets(logs, last, len(sources), first=1), strict=True))
    elif handover is not None:
        found = dict(handover.starts)
    else:
        return None
    _check_topics(logs.parent, found, sources)
    return _with_all_partitions(found, plan.topics)


def _check_topics(folder: Path, starts: Mapping[str, TopicOffsets], sources: Mapping[str, KafkaSource]) -> None:
    """Refuse to go on with other topics than those that were read: where the new ones begin is not known."""
    for stream, source in sources.items():
        if missing := sorted(starts.get(stream, {}).keys() - set(source.topics)):
            raise CheckpointError(
                f"the checkpoint {folder} has read the stream {iri_to_name(stream)} from the topic "
                f"{', '.join(missing)}, and this run reads it from {', '.join(source.topics)}: read the old topic, "
                "too, or use another folder and begin anew"
            )


def _with_all_partitions(
    starts: Mapping[str, TopicOffsets], counts: Mapping[str, Mapping[str, int]]
) -> dict[str, TopicOffsets]:
    """The offsets with those of partitions that were added to the topics: Spark asks for all."""
    found: dict[str, TopicOffsets] = {}
    for stream, topics in starts.items():
        new = {
            topic: dict.fromkeys(map(str, range(count)), _FROM_THE_BEGINNING)
            for topic, count in counts.get(stream, {}).items()
        }
        found[stream] = {topic: {**new.get(topic, {}), **topics.get(topic, {})} for topic in {**new, **topics}}
    return found


def _read_unread(logs: Path, read: Collection[str]) -> Offset:
    """How far micro-batches have read other streams than those that real-time mode reads."""
    last, handover = last_commit(logs), Handover.read(logs)
    if last < 0:
        return Offset() if handover is None else handover.unread
    with report_checkpoint_damage(logs):
        offset = Offset.from_json(json.loads(read_source_lines(logs, last)[0])).without_heartbeats()
    return Offset({stream: one for stream, one in offset.streams.items() if stream not in read})


def _write_snapshots(spark: SparkSession, folder: Path, workload: Workload, plan: CheckpointPlan) -> None:
    """Write the snapshots that the first batch of real-time mode begins with, and then its plan."""
    run, read = uuid.uuid4().hex[:12], _read_partitions(kafka_sources(workload), plan.starts)
    for shard, key in enumerate(_keys_of(workload.description)):
        program, segments = _read_batch_state(spark, folder / SPARK_STATE, key)
        state = to_ordered_state(program, read)
        if state.version is not None and len(state.version) == len(plan.version):
            plan = replace(plan, version=state.version)
        content = [state.program, state.orders, BatchOutcome().to_plain()]
        ShardSnapshots(folder / REALTIME_STATE / f"shard-{shard}").write_whole(run, -1, content, segments)
    replace(plan, runs=((run, -1),)).write(folder / REALTIME_STATE)


def _read_batch_state(spark: SparkSession, logs: Path, key: int) -> tuple[bytes, list[LogSegment]]:
    """The state of a shard in micro-batches, also where they have only been handed it over."""
    last, handover = last_commit(logs), Handover.read(logs)
    if last >= 0:
        return read_shard_state(spark, logs, last, key)
    assert handover is not None
    return read_handed_over(handover.folder, key)


def _read_partitions(
    sources: Mapping[str, KafkaSource], starts: Mapping[str, TopicOffsets]
) -> dict[str, ReadPartitions]:
    """How far the partitions of each stream were read, by the numbers that begin the positions of elements."""
    found: dict[str, ReadPartitions] = {}
    for stream, source in sources.items():
        reader = source.reader()
        assert isinstance(reader, KafkaReader)
        found[stream] = ReadPartitions(
            {
                reader.item_index(topic, int(partition)): max(offset, 0)
                for topic, partitions in starts[stream].items()
                for partition, offset in partitions.items()
            }
        )
    return found


def switch_to_micro_batches(
    spark: SparkSession, folder: Path, known: CheckpointRecord, now: CheckpointRecord, workload: Workload
) -> CheckpointRecord:
    """Have micro-batches go on where real-time mode is; gives the record of the checkpoint."""
    with _replacing(folder, REALTIME_STATE, SPARK_STATE):
        before = folder / REALTIME_STATE
        check_commits(before / SPARK_LOGS)
        plan, last = CheckpointPlan.read(before), last_commit(before / SPARK_LOGS)
        if plan is not None and plan.has_state(last):
            description, starts, sources = workload.description, plan.starts, kafka_sources(workload)
            if last >= 0:
                found = read_topic_offsets(before / SPARK_LOGS, last, len(sources), first=0)
                starts = dict(zip(sources, found, strict=True))
            _check_topics(folder, starts, sources)
            for shard, key in enumerate(_keys_of(description)):
                snapshots = ShardSnapshots(before / f"shard-{shard}")
                (program, orders, _), logs = snapshots.read(plan.names.of(last), last)
                own = own_triples_of(description.sharding, shard)
                state, segments = to_batch_state(program, logs.pop(WINDOWS, []), orders, logs, own)
                write_shard(folder / SPARK_STATE, key, state, segments)
            starts = _with_all_partitions(starts, _count_partitions(spark, sources))
            unread = Offset.from_json(plan.unread) if plan.unread else Offset()
            write_starts(folder / SPARK_STATE, starts, unread)
        return _write_record(folder, known, now)


@contextmanager
def _replacing(folder: Path, old: str, new: str) -> Iterator[None]:
    """A context in which the state of a new mode is made and named; the state of the old one is removed behind it."""
    with report_checkpoint_damage(folder):
        # Of a switch that was killed, or of the last time in that mode.
        remove_files(folder / new)
        if (folder / new).exists():
            raise CheckpointError(
                f"the checkpoint has {folder / new}, which cannot be removed: remove it, and run again"
            )
    yield
    with report_checkpoint_damage(folder):
        remove_files(folder / old)


def _count_partitions(spark: SparkSession, sources: Mapping[str, KafkaSource]) -> dict[str, Mapping[str, int]]:
    """By stream, how many partitions its topics have now; nothing where no broker can be asked."""
    ensure_kafka(spark)
    if not can_ask_broker(spark):
        return {}
    try:
        return {stream: count_partitions(spark, one.connector_options(), one.topics) for stream, one in sources.items()}
    except SourceError as error:
        # A run that follows waits for its broker; only partitions that were added would be missed.
        logger.warning("%s", error)
        return {}


def _keys_of(description: ProgramDescription) -> tuple[int, ...]:
    """The keys of the shards in Spark's state, in the order of their numbers in real-time mode."""
    return (0,) if description.sharding is None else description.sharding.keys


def _write_record(folder: Path, known: CheckpointRecord, now: CheckpointRecord) -> CheckpointRecord:
    """Name the other mode in the checkpoint, which keeps its queries; gives the new record."""
    # Batches are counted anew. Files that carry the name of the run and the batch must not be written over.
    record = replace(known, runner=now.runner, run=now.run)
    record.write(folder)
    return record
