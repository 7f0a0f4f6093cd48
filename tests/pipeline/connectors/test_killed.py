"""A run that is killed with SIGKILL and started again from its checkpoint gives what a run without failure gives.

Kafka and files in, Kafka (one record of each key counts) and files (each batch has its own) out. The run is a process
of its own, Spark and all, and is killed as a whole.
"""

from __future__ import annotations

import json
import os
import queue
import random
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import headwater as hw
from tests.pipeline.connectors.kafka_broker import Broker, put, taken
from tests.pipeline.connectors.victim import CARS, COUNTS
from tests.pipeline.programs import SENSORS, SLIDING, sensor_lines, write

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PROJECT = Path(__file__).resolve().parents[3]
LONGEST_SECONDS = 240.0

Moment = Callable[["Victim"], bool]
"""Looks at a victim from time to time and says when to kill it."""


class Victim:
    """A process of `tests.pipeline.connectors.victim`."""

    def __init__(self, folder: Path, settings: dict[str, Any]) -> None:
        path = folder / "settings.json"
        path.write_text(json.dumps(settings))
        self.checkpoint = folder / "checkpoint" / "spark"
        self.lines: list[str] = []
        self._queue: queue.Queue[str] = queue.Queue()
        with open(folder / "victim.log", "ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.pipeline.connectors.victim", str(path)],
                cwd=PROJECT,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                start_new_session=True,
            )
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._queue.put(line.strip())

    def said(self, start: str) -> list[str]:
        """What it said so far that begins like this."""
        while not self._queue.empty():
            self.lines.append(self._queue.get())
        return [line for line in self.lines if line.startswith(start)]

    def run(self, moment: Moment | None) -> bool:
        """Let it run to its end, or to the moment at which it is killed; gives whether it came to its end."""
        end = time.monotonic() + LONGEST_SECONDS
        while self._process.poll() is None and time.monotonic() < end:
            if moment is not None and moment(self):
                break
            time.sleep(0.005)
        self.kill()
        return bool(self.said("done"))

    def kill(self) -> None:
        """Python, Java and all, at once."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait(30)
        self._listener.join(30)
        assert self._process.stdout is not None
        self._process.stdout.close()


class Story:
    """One input, and what must come out of it however often the run is killed."""

    def __init__(self, spark: SparkSession, broker: Broker, folder: Path, **settings: Any) -> None:
        name = uuid.uuid4().hex[:8]
        self.settings: dict[str, Any] = {
            "folder": str(folder),
            "servers": broker.servers,
            "source": f"in-{name}",
            "target": f"out-{name}",
            "batch_bytes": 1500,
            "per_batch": 12,
            **settings,
        }
        self.folder = folder
        self._spark = spark
        cars = [(second, f"car{second % 3}") for second in range(-20, 100)]
        records = [json.dumps({"id": car, "at": second, "v": second}).encode() for second, car in cars]
        put(spark, broker.servers, self.settings["source"], records)
        # Without a topic, whoever reads the answers would fail before the first one.
        put(spark, broker.servers, self.settings["target"], [b"begin"])
        write(folder / "in.tnq", sensor_lines(120, late_every=0))
        write(
            folder / "cars.tnq",
            [f'{second * 1000}\t<http://ex/{car}> <http://ex/value> "{second}" .' for second, car in cars],
        )

    def victim(self) -> Victim:
        return Victim(self.folder, self.settings)

    def expected(self) -> dict[str, Any]:
        """The answers of a run without failure, in process."""
        engine = hw.Engine(in_process=True)
        engine.stream(SENSORS, self.folder / "in.tnq")
        engine.stream(CARS, self.folder / "cars.tnq")
        engine.register(SLIDING)
        engine.register(COUNTS)
        engine.run(sinks=[hw.FileSink(self.folder / "expected")])
        return self._in_files("expected")

    def _in_files(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for path in (self.folder / name).rglob("*.jsonl"):
            for line in path.read_text().splitlines():
                key, content = comparable(json.loads(line), path.parent.name)
                assert key not in found, f"{key} stands in two batches"
                found[key] = content
        return found

    def _in_kafka(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for record in taken(self._spark, self.settings["servers"], self.settings["target"]):
            if record.key is None:
                continue
            value = json.loads(record.value)
            key, content = comparable(value, value["query"])
            assert bytes(record.key).decode() == key
            assert found.setdefault(key, content) == content, f"{key} was written with two contents"
        return found

    def check(self) -> None:
        expected = self.expected()
        assert len(expected) > 30
        assert self._in_files("out") == expected
        assert self._in_kafka() == expected


def comparable(answer: dict[str, Any], query: str) -> tuple[str, Any]:
    rows = sorted(json.dumps(row, sort_keys=True) for row in answer["results"]["bindings"])
    return f"{query}|{answer['time_us']}|0", (answer["head"], rows)


def after_batch(number: int, seconds: float) -> Moment:
    """Some time after so many batches were delivered."""
    seen: list[float] = []

    def moment(victim: Victim) -> bool:
        if not seen and len(victim.said("batch")) >= number:
            seen.append(time.monotonic())
        return bool(seen) and time.monotonic() - seen[0] >= seconds

    return moment


def at(point: str, times: int = 3) -> Moment:
    """When the run says that it is at a point, for the third time."""
    return lambda victim: len(victim.said(f"at {point}")) >= times


def when_there(part: str, more: int) -> Moment:
    """When a part of the checkpoint has some files more than at first."""
    first: list[int] = []

    def moment(victim: Victim) -> bool:
        count = sum(1 for path in (victim.checkpoint / part).rglob("*") if path.is_file() and path.name[0] != ".")
        if not first:
            first.append(count)
        return count >= first[0] + more

    return moment


def test_a_run_that_is_killed_loses_and_doubles_nothing(
    kafka_spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    story = Story(kafka_spark, broker, tmp_path)
    moment = after_batch(2, random.Random().random())
    assert not story.victim().run(moment), "it was done before it was killed"
    assert story.victim().run(None), (tmp_path / "victim.log").read_text()[-2000:]
    story.check()


@pytest.mark.soak
def test_twenty_kills_at_random_moments(kafka_spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    generator = random.Random()
    story = Story(kafka_spark, broker, tmp_path, batch_bytes=150, per_batch=1)
    for number in range(20):
        kill = (generator.randint(0, 2), generator.uniform(0, 2))
        finished = story.victim().run(after_batch(*kill))
        assert not finished, f"it was done before kill {number}: give it more to read"
    assert story.victim().run(None), (tmp_path / "victim.log").read_text()[-2000:]
    story.check()


@pytest.mark.soak
@pytest.mark.parametrize(
    "moment",
    [
        pytest.param(lambda: when_there("offsets", 2), id="the batch is planned, its chunks are being written"),
        pytest.param(lambda: when_there("state", 6), id="the state is being committed"),
        pytest.param(lambda: at("before-write"), id="before the sinks"),
        pytest.param(lambda: at("after-write"), id="behind the sinks, before the commit"),
        pytest.param(lambda: when_there("commits", 2), id="the batch is committed"),
    ],
)
def test_kills_at_named_points(
    moment: Callable[[], Moment], kafka_spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    story = Story(kafka_spark, broker, tmp_path, pause=0.3)
    for _ in range(2):
        assert not story.victim().run(moment()), "it was done before it was killed"
    assert story.victim().run(None), (tmp_path / "victim.log").read_text()[-2000:]
    story.check()
