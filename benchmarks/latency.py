"""How long an element takes to its answer: `python -m benchmarks.latency [--seconds N] [--only WAY …]`.

Ten elements a second, each of which makes one tick of a count by sensor due (`RANGE 10s STEP 100ms`). The clock runs
from the arrival of the element at the source to the callback with the answer. Prints one JSON object last; by way:

- `p50_ms`, `p95_ms`: `in_process` follows a file, `in_process_tcp` receives lines; `spark` reads Kafka in
  micro-batches, `spark_files` follows a file in micro-batches; `realtime` reads Kafka in real-time mode; `hand_spark`
  is the same count written by hand in Structured Streaming, without Python in the query, which reports each element in
  the batch that brings it
- `idle_cpu`: the share of a core that a run needs while nothing comes
- `parts_ms`: where the time of a micro-batch goes, by Spark's progress and our own measures (medians)
- `realtime_triples_per_s`: a backlog in real-time mode
- `left_out`: the ways that could not be measured, and why

Kafka is a broker on loopback, as the tests have it. What has no connector or no real-time mode is left out.
"""

from __future__ import annotations

import argparse
import inspect
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import headwater as hw
from benchmarks.hand_spark import run_by_hand
from benchmarks.latency_feeding import APART, BEGIN, Feeder, FileFeeder, KafkaFeeder, TcpFeeder, number_of_tick, reading
from benchmarks.latency_parts import parts_of_batches
from benchmarks.reporting import machine, print_result, progress, quantile, rounded
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
_BACKLOG = 500_000


class Latencies:
    """When elements arrived, and when their answers came."""

    def __init__(self) -> None:
        self._arrived: dict[int, float] = {}
        self._answered: dict[int, float] = {}
        self._changed = threading.Condition()

    def note_arrival(self, number: int) -> None:
        self._arrived[number] = time.perf_counter()

    def note_answer(self, number: int) -> None:
        now = time.perf_counter()
        with self._changed:
            self._answered.setdefault(number, now)
            self._changed.notify_all()

    def wait_for(self, number: int, seconds: float) -> None:
        """Wait until an element is answered; an error after so many seconds."""
        with self._changed:
            if not self._changed.wait_for(lambda: number in self._answered, seconds):
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


def start_run(feeder: Feeder, stack: ExitStack, **settings: Any) -> Run:
    """Start a run that follows what a feeder sends, and have the stack stop it; `realtime` goes to the run."""
    options: dict[str, Any] = {"realtime": True} if settings.pop("realtime", False) else {}
    engine = hw.Engine(**settings)
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
        self._triples_per_s: float | None = None

    def take(self, way: str) -> None:
        """Measure one way."""
        progress(f"{way}:")
        reason = _why_not(way)
        with ExitStack() as stack:
            if reason is None:
                try:
                    feeder = self._feeder(way)
                except hw.JarError as error:
                    reason = str(error)
            if reason is not None:
                progress(f"  left out: {reason}")
                self._left_out[way] = reason
                return
            stack.callback(feeder.close)
            run = _start(way, feeder, stack, self._folder)
            found = self._latencies[way] = measure(run, feeder, self._count)
            if way.startswith("in_process"):
                self._idle[way] = measure_idle()
            self._parts[way] = run.parts()
            progress(f"  p50 {quantile(found, 0.5):.1f} ms, p95 {quantile(found, 0.95):.1f} ms  {self._parts[way]}")

    def take_realtime_rate(self) -> None:
        """Measure how fast real-time mode takes in a backlog."""
        if _why_not("realtime") is not None or "realtime" in self._left_out:
            return
        with ExitStack() as stack:
            feeder = self._feeder("realtime")
            stack.callback(feeder.close)
            run = _start("realtime", feeder, stack, self._folder)
            feeder.send(reading(0))
            run.latencies.wait_for(0, _START_SECONDS)
            rows = b"\n".join(map(reading, range(1, _BACKLOG)))
            begin = time.perf_counter()
            feeder.send(rows)
            run.latencies.wait_for(_BACKLOG - 1, _START_SECONDS)
            self._triples_per_s = _BACKLOG / (time.perf_counter() - begin)

    def _feeder(self, way: str) -> Feeder:
        folder = self._folder / way
        folder.mkdir(exist_ok=True)
        if way == "in_process_tcp":
            return TcpFeeder()
        if way not in _ON_KAFKA:
            return FileFeeder(folder)
        if self._broker is None:
            self._broker = Broker(self._folder)
            self._broker.start()
        return KafkaFeeder(self._broker.servers, f"{way.replace('_', '-')}-{uuid.uuid4().hex[:8]}")

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
            "realtime_triples_per_s": self._triples_per_s and rounded(self._triples_per_s),
            "left_out": self._left_out,
        }


def _why_not(way: str) -> str | None:
    if way == "realtime" and "realtime" not in inspect.signature(hw.Engine.run).parameters:
        return "this version has no real-time mode"
    return None


def _start(way: str, feeder: Feeder, stack: ExitStack, folder: Path) -> Run:
    """Start what answers the elements on this way."""
    if way != "hand_spark":
        in_process = way.startswith("in_process")
        return start_run(feeder, stack, in_process=in_process, **({"realtime": True} if way == "realtime" else {}))
    assert isinstance(feeder, KafkaFeeder)
    latencies = Latencies()
    query = run_by_hand(hw.Engine().session(), feeder.servers, feeder.topic, latencies.note_answer)
    stack.callback(query.stop)
    return Run(latencies, query.stop)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.latency", description="From an element to its answer.")
    parser.add_argument("--seconds", type=float, default=_SECONDS, help="how long elements are sent on each way")
    parser.add_argument("--only", choices=WAYS, nargs="+", default=list(WAYS), help="some ways alone")
    arguments = parser.parse_args()
    facts = machine()
    with tempfile.TemporaryDirectory(prefix="headwater-benchmark-") as folder:
        measurements = Measurements(Path(folder), arguments.seconds)
        try:
            for way in arguments.only:
                measurements.take(way)
            if "realtime" in arguments.only:
                measurements.take_realtime_rate()
        finally:
            measurements.close()
    print_result({**measurements.result(), "machine": facts})


if __name__ == "__main__":
    main()
