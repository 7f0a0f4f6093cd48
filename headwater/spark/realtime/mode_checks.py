"""Whether a run can be in real-time mode, and why not: then it runs in micro-batches."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from headwater.algebra.nodes import Service
from headwater.algebra.scope import nodes_of
from headwater.execution.registered import RegisteredQuery
from headwater.running.workload import Workload
from headwater.sinks.kafka_sink import KafkaSink
from headwater.sinks.sink import Sink
from headwater.sources.kafka import KafkaSource
from headwater.sources.source import Source
from headwater.spark.realtime.kafka_admin import is_connector_loaded
from headwater.spark.spark_settings import REALTIME_SETTINGS
from headwater.terms.names import iri_to_name
from headwater.windows.settings import timestamp_predicate_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TRIED_VERSIONS = ("4.3.0",)
"""The versions of Spark with which the tests of this mode passed."""
_IS_LOCAL = re.compile(r"local(\[|$)")


def is_in_one_process(master: str) -> bool:
    """Whether all of Spark is in one process of Java."""
    return bool(_IS_LOCAL.match(master))


def reason_against_workload(workload: Workload, sinks: Sequence[Sink], *, are_answers_taken: bool) -> str | None:
    """Why these queries, sources and sinks cannot run in real-time mode; None where they can."""
    found = [
        *_against_sources(workload.sources, dict(workload.description.idle)),
        *_against_sinks(sinks, are_answers_taken),
        *_against_queries(workload.description.queries),
    ]
    return found[0] if found else None


def _against_sources(sources: Mapping[str, Source], idle: Mapping[str, int]) -> Iterator[str]:
    for stream, source in sources.items():
        name = iri_to_name(stream)
        if not isinstance(source, KafkaSource):
            yield f"the stream {name} is no topic of Kafka"
        elif stream in idle and idle[stream] != source.usual_idle:
            yield f"a time of silence is set for {name} (idle), and no clock moves a stream there"


def _against_sinks(sinks: Sequence[Sink], are_answers_taken: bool) -> Iterator[str]:
    if not sinks:
        yield "answers need a topic of Kafka (sinks=[KafkaSink(…)], --out kafka://…)"
    to_kafka = [sink for sink in sinks if isinstance(sink, KafkaSink)]
    if len(to_kafka) < len(sinks):
        yield "answers go to something else than a topic of Kafka"
    if len({tuple(sorted(sink.spark_options().items())) for sink in to_kafka}) > 1:
        yield "answers go to several Kafka clusters"
    if are_answers_taken and not any(sink.can_be_read_back for sink in to_kafka):
        yield "answers are read back from their topic, which must have them whole and as JSON"


def _against_queries(queries: Sequence[RegisteredQuery]) -> Iterator[str]:
    for query in queries:
        name = query.plan.name
        if not query.plan.windows:
            yield f"{name} reads no stream"
        if any(isinstance(node, Service) for node in nodes_of(query.plan.root)):
            yield f"{name} asks other endpoints (SERVICE), whose answers may be others when a batch is run again"
        if any(timestamp_predicate_of(source.spec) for source in query.plan.windows):
            yield f"{name} takes times from the data of a window"


def reason_against_queries(queries: Sequence[RegisteredQuery]) -> str | None:
    """Why queries cannot run in real-time mode; None where they can."""
    return next(_against_queries(queries), None)


def reason_against_session(spark: SparkSession) -> str | None:
    """Why this session cannot run a query in real-time mode; None where it can."""
    if spark.version not in TRIED_VERSIONS:
        return f"it was tried with Spark {', '.join(TRIED_VERSIONS)} alone, and this is {spark.version}"
    context = spark.sparkContext
    if not is_in_one_process(context.master or "local"):
        return f"it was tried on one machine alone, and the master is {context.master}"
    missing = [name for name, value in REALTIME_SETTINGS.items() if context.getConf().get(name, "") != value]
    if missing:
        return f"the session was started without {', '.join(missing)}: let the engine start it"
    if not is_connector_loaded(spark):
        return "Spark was started without its Kafka connector on the class path (spark.driver.extraClassPath)"
    return None
