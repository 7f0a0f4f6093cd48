"""How fast real-time mode takes in a backlog: records that are in Kafka before the run begins.

The clock runs from the first answer that comes when a part of the backlog was read to the last one, so that nothing
but the run is at work, and its start does not count. By key:

- `realtime_triples_per_s`: timed N-Quads, four triples about an observation in a record; the star of
  `benchmarks.pipeline` with a callback
- `realtime_rows_per_s`: JSON and a template, one triple in a record; a count by sensor
"""

from __future__ import annotations

import logging
import random
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import headwater as hw
from benchmarks.latency_feeding import APART, BEGIN, TEMPLATE, reading
from benchmarks.pipeline_queries import OBSERVATIONS, STAR_SHAPE, WORKLOADS
from headwater.engine.realtime_runs import start_session
from headwater.terms.template import RowTemplate
from tests.sources.kafka_broker import put

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SECONDS = 300
_WARM_SHARE = 0.25
"""Answers about so much of the backlog come before the clock starts."""
_CHUNK = 50_000
_ROWS_QUERY = """
PREFIX : <http://ex/>
REGISTER QUERY counts AS
SELECT ?sensor (COUNT(?value) AS ?n) FROM STREAM <http://ex/s> [RANGE 1000s STEP 100s]
WHERE { ?sensor :value ?value } GROUP BY ?sensor
"""


class NoRealTimeMode(RuntimeError):
    """The run had micro-batches, although it was asked for real-time mode; the message says why."""


class _WarningTaker(logging.Handler):
    """Keeps the reason why a run is not in real-time mode, and ends it."""

    def __init__(self, end: Callable[[], None]) -> None:
        super().__init__(logging.WARNING)
        self._end = end
        self.reason: str | None = None

    def emit(self, record: logging.LogRecord) -> None:
        self.reason = record.getMessage()
        self._end()


@contextmanager
def refuse_micro_batches(end: Callable[[], None]) -> Iterator[None]:
    """A `NoRealTimeMode` where a run in here falls back to micro-batches; `end` is called to end it."""
    taker = _WarningTaker(end)
    decisions = logging.getLogger("headwater.engine.realtime_runs")
    decisions.addHandler(taker)
    try:
        yield
    finally:
        decisions.removeHandler(taker)
        if taker.reason is not None:
            raise NoRealTimeMode(taker.reason)


@dataclass(frozen=True)
class Backlog:
    """Records that wait for a run: how many there are, what they say, and what is asked of them."""

    key: str
    records: int
    triples: int
    """In each record."""
    begin: int
    """The time of the first record, and that of the first tick."""
    apart: int
    """So many microseconds lie between two records."""
    step: int
    """So many microseconds lie between two ticks."""
    record: Callable[[int], bytes]
    stream: str
    query: str
    source: Callable[[str, str], Any]

    @property
    def last_tick(self) -> int:
        """The last tick before the last record."""
        return self.begin + (self.records - 2) * self.apart // self.step * self.step

    @property
    def warm_tick(self) -> int:
        """The tick with which the clock starts."""
        return self.begin + int(_WARM_SHARE * self.records) * self.apart // self.step * self.step


def _observation(number: int) -> bytes:
    chance = random.Random(number)
    when = number * STAR_SHAPE.apart // 1000
    return "".join(f"{when}\t{one} .\n" for one in STAR_SHAPE.statements(number, chance)).encode()


BACKLOGS = (
    Backlog(
        "realtime_triples_per_s",
        250_000,
        STAR_SHAPE.per_element,
        0,
        STAR_SHAPE.apart,
        10_000_000,
        _observation,
        OBSERVATIONS,
        WORKLOADS["star"].text,
        lambda servers, topic: hw.kafka(servers, topic, format="tnq"),
    ),
    Backlog(
        "realtime_rows_per_s",
        200_000,
        1,
        BEGIN,
        APART,
        100_000_000,
        reading,
        "http://ex/s",
        _ROWS_QUERY,
        lambda servers, topic: hw.kafka(servers, topic, template=RowTemplate(TEMPLATE)),
    ),
)


def measure_backlog(backlog: Backlog, servers: str) -> float:
    """How many triples of a backlog a second are taken in, from Kafka to the callback."""
    topic = f"backlog-{uuid.uuid4().hex[:8]}"
    spark = start_session("local[*]", 1, realtime=True)
    write_backlog(spark, backlog, servers, topic)
    make_topic(spark, servers, f"{topic}-answers")
    engine = hw.Engine()
    engine.stream(backlog.stream, backlog.source(servers, topic))
    engine.register(backlog.query, t0=backlog.begin)
    seen: dict[int, float] = {}

    def note(answer: hw.Answer) -> None:
        seen[answer.time] = time.perf_counter()
        if answer.time >= backlog.last_tick:
            engine.stop()

    sinks = [hw.KafkaSink(servers, f"{topic}-answers")]
    timer = threading.Timer(_SECONDS, engine.stop)
    timer.start()
    try:
        with refuse_micro_batches(engine.stop):
            engine.run(realtime=True, sinks=sinks, on_answer=note)
    finally:
        timer.cancel()
    if backlog.last_tick not in seen:
        raise RuntimeError(f"the backlog was not read to its end in {_SECONDS} s")
    records = (backlog.last_tick - backlog.warm_tick) // backlog.apart
    return records * backlog.triples / (seen[backlog.last_tick] - seen[backlog.warm_tick])


def make_topic(spark: SparkSession, servers: str, topic: str) -> None:
    """Have the broker make a topic, which real-time mode does not; it has one record, which is no answer."""
    put(spark, servers, topic, [b"{}"])


def write_backlog(spark: SparkSession, backlog: Backlog, servers: str, topic: str) -> None:
    """Write the records of a backlog into a topic."""
    for number in range(0, backlog.records, _CHUNK):
        numbers = range(number, min(number + _CHUNK, backlog.records))
        put(spark, servers, topic, map(backlog.record, numbers))
