"""Real-time mode, as the engine sees it: whether a run can be in it, its session, and its start.

Modules that import PySpark are imported when a run asks for them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headwater.engine.lifecycle import Takers
from headwater.errors import SettingError
from headwater.execution.registered import RegisteredQuery, RegistrationError
from headwater.running.subscriptions import Subscription
from headwater.running.workload import Workload
from headwater.sinks.kafka_sink import KafkaSink
from headwater.sources.jar_checksums import JarError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from headwater.spark.realtime.realtime_runner import RealTimeRun

logger = logging.getLogger(__name__)

_ALL_CORES = "local[*]"
_REALTIME_MASTER = "local[32]"
"""All tasks of a batch run at the same time, one for each partition and shard; most of them wait."""


def check_real_time_is_possible(wanted: bool, *, in_process: bool) -> bool:
    """Whether real-time mode was asked for; a `SettingError` where there is no Spark."""
    if wanted and in_process:
        raise SettingError("real-time mode is one of Spark: leave out in_process=True (--in-process)")
    return wanted


def start_session(master: str, shuffle_partitions: int, *, realtime: bool) -> SparkSession:
    """The session of this process; one that is started for real-time mode has Kafka's connector and room for tasks."""
    from headwater.spark.session import embedded_session

    if not realtime:
        return embedded_session(master=master, shuffle_partitions=shuffle_partitions)
    from headwater.sources.kafka_jars import kafka_class_path
    from headwater.spark.spark_settings import REALTIME_SETTINGS

    settings = dict(REALTIME_SETTINGS)
    try:
        settings["spark.driver.extraClassPath"] = kafka_class_path()
    except JarError as error:
        # Micro-batches need the connector, too, and say so once more.
        logger.warning("%s", error)
    master = _REALTIME_MASTER if master == _ALL_CORES else master
    return embedded_session(master=master, shuffle_partitions=shuffle_partitions, more=settings)


def choose_real_time(
    workload: Workload,
    takers: Takers,
    subscriptions: Sequence[Subscription[Any]],
    master: str,
    session: Callable[[], SparkSession],
) -> bool:
    """Whether a run that asks for real-time mode can be in it; if not, a warning says why, and it has micro-batches."""
    from headwater.spark.realtime.kafka_admin import count_partitions
    from headwater.spark.realtime.mode_checks import (
        is_in_one_process,
        reason_against_session,
        reason_against_workload,
    )
    from headwater.spark.realtime.realtime_runner import kafka_sources

    takes_answers = takes_answers_of(takers, subscriptions)
    reason = reason_against_workload(workload, takers.sinks, are_answers_taken=takes_answers)
    if reason is None and not is_in_one_process(master):
        reason = f"it was tried on one machine alone, and the master is {master}"
    if reason is None:
        spark, cut = session(), workload.description.sharding
        reason = reason_against_session(spark)
        if reason is None:
            sources = kafka_sources(workload).values()
            partitions = sum(
                sum(count_partitions(spark, one.connector_options(), one.topics).values()) for one in sources
            )
            tasks, slots = partitions + (1 if cut is None else len(cut.keys) + 1), spark.sparkContext.defaultParallelism
            if slots < tasks:
                reason = f"it needs {tasks} tasks at once, for partitions and shards, and the master has {slots}"
    if reason is not None:
        logger.warning("real-time mode is not possible, so the run has micro-batches: %s", reason)
    return reason is None


def takes_answers_of(takers: Takers, subscriptions: Sequence[Subscription[Any]]) -> bool:
    """Whether somebody in this process takes the answers of a run."""
    return takers.on_answer is not None or takers.on_batch is not None or bool(subscriptions)


def real_time_run(
    takers: Takers,
    subscriptions: Sequence[Subscription[Any]],
    letters: tuple[Path | None, str, bool],
    checkpoint: Path | None,
) -> RealTimeRun:
    """What a run in real-time mode is given; `letters` are the folder of dead letters, the run, and strictness."""
    from headwater.spark.realtime.realtime_runner import BATCH_SECONDS, RealTimeRun
    from headwater.spark.realtime.shard_worker import DeadLetterFolder

    folder, run, strict = letters
    sinks = [sink for sink in takers.sinks if isinstance(sink, KafkaSink)]
    dead = DeadLetterFolder(None if folder is None else str(folder), run, strict)
    return RealTimeRun(sinks, dead, checkpoint, BATCH_SECONDS, takes_answers=takes_answers_of(takers, subscriptions))


def check_queries_in_real_time(queries: Sequence[RegisteredQuery]) -> None:
    """A `RegistrationError` where queries cannot join a run in real-time mode."""
    from headwater.spark.realtime.mode_checks import reason_against_queries

    reason = reason_against_queries(queries)
    if reason is not None:
        raise RegistrationError(f"this run is in real-time mode, and {reason}: use micro-batches")
