"""How long an element takes to its answer: `python -m benchmarks.latency [--seconds N] [--only WAY …]`.

Ten elements a second, each of which makes one tick of a count by sensor due (`RANGE 10s STEP 100ms`). The clock runs
from the arrival of the element at the source to the callback with the answer. Prints one JSON object last; by way:

- `p50_ms`, `p95_ms`: `in_process` follows a file, `in_process_tcp` receives lines; `spark` reads Kafka in
  micro-batches, `spark_files` follows a file in micro-batches; `realtime` reads Kafka in real-time mode; `hand_spark`
  is the same count written by hand in Structured Streaming, without Python in the query, which reports each element in
  the batch that brings it
- `idle_cpu`: the share of a core that a run needs while nothing comes
- `parts_ms`: where the time of a micro-batch goes, by Spark's progress and our own measures (medians)
- `realtime_triples_per_s`, `realtime_rows_per_s`: how fast real-time mode takes in a backlog
  (`benchmarks.latency_backlog`)
- `left_out`: the ways that could not be measured, and why

Kafka is a broker on loopback, as the tests have it; topics have one partition, because the clock of a topic waits for
every partition, and elements that come one by one fill one partition after the other. Each way has a process of its
own: Spark's session is another one in real-time mode. What has no connector or no real-time mode is left out.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import headwater as hw
from benchmarks.hand_spark import run_by_hand
from benchmarks.latency_backlog import BACKLOGS, NoRealTimeMode, make_topic, measure_backlog, refuse_micro_batches
from benchmarks.latency_feeding import APART, BEGIN, Feeder, FileFeeder, KafkaFeeder, TcpFeeder, number_of_tick, reading
from benchmarks.latency_parts import parts_of_batches
from benchmarks.reporting import PROJECT, machine, print_result, progress, quantile, rounded
from headwater.engine.realtime_runs import start_session
from tests.sources.kafka_broker import Broker

QUERY = """
PREFIX : <http://ex/>
REGISTER QUERY counts AS
SELECT ?sensor (COUNT(?value) AS ?n) FROM STREAM <http://ex/s> [RANGE 10s STEP 100ms]
WHERE { ?sensor :value ?value } GROUP BY ?sensor
"""
RANGE = 10_000_000
"""The first window closes so many microseconds behind `t0`."""
STREAM = "http://ex/s"
WAYS = ("in_process", "in_process_tcp", "spark", "spark_files", "realtime", "hand_spark")
_ON_KAFKA = ("spark", "realtime", "hand_spark")
_SECONDS = 60
_WARM_UP = 30
_PRIMERS = 10
_QUIET_SECONDS = 6
"""So long nothing has come when idle time is measured."""
_IDLE_SECONDS = 5
_START_SECONDS = 120
_DRAIN_SECONDS = 20


class Latencies:
    """When elements arrived, and when their answers came."""

    def __init__(self) -> None:
        self._arrived: dict[int, float] = {}
        self._answered: dict[int, float] = {}
        self._has_ended = False
        self._changed = threading.Condition()

    def note_arrival(self, number: int) -> None:
        self._arrived[number] = time.perf_counter()

    def note_answer(self, number: int) -> None:
        now = time.perf_counter()
        with self._changed:
            self._answered.setdefault(number, now)
            self._changed.notify_all()

    def note_end(self) -> None:
        """Nothing will be answered any more."""
        with self._changed:
            self._has_ended = True
            self._changed.notify_all()

    def wait_for(self, number: int, seconds: float) -> None:
        """Wait until an element is answered; an error after so many seconds."""
        with self._changed:
            self._changed.wait_for(lambda: self._has_ended or number in self._answered, seconds)
            if number not in self._answered:
                raise RuntimeError(f"element {number} was not answered in {seconds} s")

    def milliseconds(self, first: int) -> list[float]:
        """The latencies from the element with this number on, in ascending order."""
        numbers = [number for number in self._arrived if number >= first]
        return sorted((self._answered[number] - self._arrived[number]) * 1e3 for number in numbers)

    def seconds_until(self, number: int) -> float:
        """From the first arrival to the answer of an element."""
        return self._answered[number] - min(self._arrived.values())


@dataclass
class Run:
    """A run at work: what it answers goes to `latencies`."""

    latencies: Latencies
    stop: Callable[[], None]
    parts: Callable[[], dict[str, float]] = dict
    failures: list[BaseException] = field(default_factory=list)


def start_run(feeder: Feeder, stack: ExitStack, *, realtime: bool = False, **settings: Any) -> Run:
    """Start a run that follows what a feeder sends, and have the stack stop it; in real-time mode it is from Kafka."""
    options: dict[str, Any] = {}
    if realtime:
        assert isinstance(feeder, KafkaFeeder)
        target = f"{feeder.topic}-answers"
        make_topic(start_session("local[*]", 1, realtime=True), feeder.servers, target)
        options = {"realtime": True, "sinks": [hw.KafkaSink(feeder.servers, target)]}
    engine = hw.Engine(**settings)
    if realtime:
        stack.enter_context(refuse_micro_batches(engine.stop))
    engine.stream(STREAM, feeder.source())
    engine.register(QUERY, t0=BEGIN - RANGE)
    latencies = Latencies()
    ours: list[Mapping[str, float]] = []

    def note(answer: hw.Answer) -> None:
        latencies.note_answer(number_of_tick(answer.time))

    def note_steps(found: hw.Progress) -> None:
        ours.append(dict(found.steps))

    run = Run(latencies, engine.stop)

    def work() -> None:
        try:
            engine.run(follow=True, on_answer=note, on_progress=note_steps, **options)
        except BaseException as error:
            run.failures.append(error)
        finally:
            latencies.note_end()

    thread = threading.Thread(target=work, name="benchmark-run")
    if not settings.get("in_process"):
        run.parts = lambda: parts_of_batches(engine.session(), ours)
    thread.start()
    stack.callback(thread.join)
    stack.callback(engine.stop)
    return run


def measure(run: Run, feeder: Feeder, count: int) -> list[float]:
    """The latencies of so many elements, at their pace, behind some that warm everything up."""

    def send(number: int) -> None:
        run.latencies.note_arrival(number)
        feeder.send(reading(number))

    try:
        for number in range(_PRIMERS):
            send(number)
        run.latencies.wait_for(_PRIMERS - 1, _START_SECONDS)
        begin = time.perf_counter()
        for number in range(_PRIMERS, _PRIMERS + _WARM_UP + count):
            time.sleep(max(0.0, begin + (number - _PRIMERS) * APART / 1e6 - time.perf_counter()))
            send(number)
        run.latencies.wait_for(_PRIMERS + _WARM_UP + count - 1, _DRAIN_SECONDS)
    except RuntimeError:
        if run.failures:
            raise run.failures[0] from None
        raise
    return run.latencies.milliseconds(_PRIMERS + _WARM_UP)


def measure_idle() -> float:
    """The share of a core that this process needs while nothing comes."""
    time.sleep(_QUIET_SECONDS)
    begin, spent = time.perf_counter(), time.process_time()
    time.sleep(_IDLE_SECONDS)
    return (time.process_time() - spent) / (time.perf_counter() - begin)


class Measurements:
    """The figures by way, and the reasons of the ways that were left out."""

    def __init__(self, folder: Path, seconds: float) -> None:
        self._folder = folder
        self._count = int(seconds * 1e6 / APART)
        self._latencies: dict[str, list[float]] = {}
        self._parts: dict[str, dict[str, float]] = {}
        self._idle: dict[str, float] = {}
        self._left_out: dict[str, str] = {}
        self._broker: Broker | None = None
        self._rates: dict[str, float] = {}

    def take(self, way: str) -> None:
        """Measure one way."""
        progress(f"{way}:")
        with ExitStack() as stack:
            try:
                feeder = self._feeder(way)
                stack.callback(feeder.close)
                run = _start(way, feeder, stack)
                found = measure(run, feeder, self._count)
            except (hw.JarError, NoRealTimeMode) as error:
                progress(f"  left out: {error}")
                self._left_out[way] = str(error)
                return
            self._latencies[way] = found
            if way.startswith("in_process"):
                self._idle[way] = measure_idle()
            self._parts[way] = run.parts()
            progress(f"  p50 {quantile(found, 0.5):.1f} ms, p95 {quantile(found, 0.95):.1f} ms  {self._parts[way]}")

    def take_backlogs(self) -> None:
        """Measure how fast real-time mode takes in what waits for it."""
        if "realtime" in self._left_out:
            return
        for backlog in BACKLOGS:
            progress(f"{backlog.key}:")
            rate = self._rates[backlog.key] = measure_backlog(backlog, self._kafka().servers)
            progress(f"  {rate:,.0f}")

    def _feeder(self, way: str) -> Feeder:
        folder = self._folder / way
        folder.mkdir(exist_ok=True)
        if way == "in_process_tcp":
            return TcpFeeder()
        if way not in _ON_KAFKA:
            return FileFeeder(folder)
        return KafkaFeeder(self._kafka().servers, f"{way.replace('_', '-')}-{uuid.uuid4().hex[:8]}")

    def _kafka(self) -> Broker:
        """The broker, which is started when it is first asked for."""
        if self._broker is None:
            self._broker = Broker(self._folder, partitions=1)
            self._broker.start()
        return self._broker

    def close(self) -> None:
        """End the broker."""
        if self._broker is not None:
            self._broker.kill()

    def result(self) -> dict[str, object]:
        """The figures as the benchmark prints them."""
        return {
            "p50_ms": {way: rounded(quantile(found, 0.5)) for way, found in self._latencies.items()},
            "p95_ms": {way: rounded(quantile(found, 0.95)) for way, found in self._latencies.items()},
            "max_ms": {way: rounded(found[-1]) for way, found in self._latencies.items()},
            "elements": self._count,
            "idle_cpu": {way: rounded(share) for way, share in self._idle.items()},
            "parts_ms": {way: parts for way, parts in self._parts.items() if parts},
            **{backlog.key: _rounded(self._rates.get(backlog.key)) for backlog in BACKLOGS},
            "left_out": self._left_out,
        }


def _rounded(rate: float | None) -> float | None:
    return None if rate is None else rounded(rate)


def _start(way: str, feeder: Feeder, stack: ExitStack) -> Run:
    """Start what answers the elements on this way."""
    if way != "hand_spark":
        in_process = way.startswith("in_process")
        return start_run(feeder, stack, in_process=in_process, realtime=way == "realtime")
    assert isinstance(feeder, KafkaFeeder)
    latencies = Latencies()
    query = run_by_hand(hw.Engine().session(), feeder.servers, feeder.topic, latencies.note_answer)
    stack.callback(query.stop)
    return Run(latencies, query.stop)


def take_one(way: str, seconds: float) -> dict[str, Any]:
    """Measure one way in this process."""
    with tempfile.TemporaryDirectory(prefix="headwater-benchmark-") as folder:
        measurements = Measurements(Path(folder), seconds)
        try:
            measurements.take(way)
            if way == "realtime":
                measurements.take_backlogs()
        finally:
            measurements.close()
    return measurements.result()


def take_apart(ways: Sequence[str], seconds: float) -> list[dict[str, Any]]:
    """Measure ways one after the other, each in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.latency", "--seconds", str(seconds), "--only"]
    found = []
    for way in ways:
        output = subprocess.run([*command, way], stdout=subprocess.PIPE, check=True, cwd=PROJECT).stdout
        found.append(json.loads(output.splitlines()[-1]))
    return found


def merge_results(results: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The figures of several processes together."""
    merged: dict[str, Any] = {}
    for result in results:
        for key, value in result.items():
            known = merged.get(key)
            merged[key] = {**known, **value} if isinstance(known, dict) else value if known is None else known
    return merged


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.latency", description="From an element to its answer.")
    parser.add_argument("--seconds", type=float, default=_SECONDS, help="how long elements are sent on each way")
    parser.add_argument("--only", choices=WAYS, nargs="+", default=list(WAYS), help="some ways alone")
    arguments = parser.parse_args()
    facts = machine()
    ways = list(dict.fromkeys(arguments.only))
    results = [take_one(ways[0], arguments.seconds)] if len(ways) == 1 else take_apart(ways, arguments.seconds)
    print_result({**merge_results(results), "machine": facts})


if __name__ == "__main__":
    main()
