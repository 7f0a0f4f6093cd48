"""A topic that is written to, a run in real-time mode over it, and what should come of it."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
import uuid
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.sources.kafka_broker import Broker, put, taken

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PROJECT = Path(__file__).resolve().parents[3]
_WAIT_SECONDS = 180.0
_SENSORS = "abcde"


class RealtimeStory:
    """A topic that is written to, a run over it that is killed and started again, and what should come of it."""

    def __init__(self, spark: SparkSession, broker: Broker, folder: Path, *, takes_answers: bool = False) -> None:
        name = uuid.uuid4().hex[:8]
        self._spark, self._servers, self._folder = spark, broker.servers, folder
        self.source, self._target = f"in-{name}", f"out-{name}"
        settings = {"servers": broker.servers, "source": self.source, "target": self._target}
        more = {"marks": str(folder), "shards": 2, "takes_answers": takes_answers}
        self._settings = {**settings, **more}
        self.is_real_time = True
        """Whether the run is in real-time mode when it is started next, or has micro-batches."""
        self._process: subprocess.Popen[bytes] | None = None
        self._random = random.Random(22)
        self.starts = 0
        """How often the run was started."""
        self.elements: list[tuple[int, str, int]] = []
        self._second = 0
        put(spark, broker.servers, self._target, [b"{}"])
        self.write(2)

    def write(self, seconds: int) -> None:
        """Write the records of so many seconds of event time: three to each partition in each second."""
        by_partition: dict[int, list[bytes]] = {0: [], 1: []}
        for second in range(self._second, self._second + seconds):
            for place in range(6):
                at = second * 1000 + place * 150 + self._random.randrange(100)
                sensor = self._random.choice(_SENSORS)
                # No two are equal, so that ORDER BY with LIMIT has one answer.
                value = self._random.randrange(1000) * 100_000 + len(self.elements)
                self.elements.append((at, sensor, value))
                by_partition[place % 2].append(json.dumps({"id": sensor, "at": at, "v": value}).encode())
        self._second += seconds
        for partition, records in by_partition.items():
            put(self._spark, self._servers, self.source, records, partition)

    def start(self) -> None:
        """Start the run, or start it again."""
        self.starts += 1
        with open(self._folder / "log", "ab") as log:
            command = [sys.executable, "-m", "tests.sources.realtime.realtime_victim"]
            command.append(json.dumps({**self._settings, "realtime": self.is_real_time}))
            environment = {**os.environ, "PYTHONPATH": str(PROJECT)}
            environment.pop("PYSPARK_PYTHON", None)
            environment.pop("PYSPARK_DRIVER_PYTHON", None)
            self._process = subprocess.Popen(
                command, cwd=PROJECT, stdout=log, stderr=log, env=environment, start_new_session=True
            )

    def end(self) -> None:
        """Kill all processes of the run."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait(30)
            self._process = None

    def revive(self) -> None:
        """Start the run again if it was killed."""
        if self._process is None or self._process.poll() is not None:
            self.end()
            self.start()

    def answers(self) -> dict[str, Any]:
        """The content of each key; it fails where a key has two."""
        found: dict[str, Any] = {}
        for record in taken(self._spark, self._servers, self._target):
            if record.key is None:
                continue
            rows = json.loads(record.value)["results"]["bindings"]
            content = sorted((row["sensor"]["value"][-1], int(row["n"]["value"])) for row in rows)
            key = bytes(record.key).decode()
            assert found.setdefault(key, content) == content, f"{key} has two contents"
        return found

    def expected(self) -> dict[str, Any]:
        """The answers of the ticks that both partitions have passed, by definition."""
        found: dict[str, Any] = {}
        for tick in self.ticks():
            found[f"totals|{tick * 1_000_000}|0"] = self._grouped(tick * 1000, 10_000, len)
            if tick % 2 == 0:
                highest = self._grouped(tick * 1000, 4_000, max)
                two = sorted(highest, key=lambda row: -row[1])[:2]
                found[f"highest|{tick * 1_000_000}|0"] = sorted(two)
        return found

    def ticks(self) -> range:
        """The seconds of event time that both partitions have passed."""
        mark = min(max(one[0] for one in self.elements[partition::2]) for partition in (0, 1))
        return range(1, -(-mark // 1000))

    def expected_of_recent(self) -> dict[str, Any]:
        """The answers of the query that comes later, as if it had been there from the beginning."""
        return {f"recent|{tick * 1_000_000}|0": self._grouped(tick * 1000, 3_000, len) for tick in self.ticks()}

    def change(self, wanted: str) -> None:
        """Have the run register the query that comes later (`register`), or drop one; wait until it was told."""
        order = self._folder / "change"
        unfinished = self._folder / "change.tmp"
        unfinished.write_text(wanted)
        unfinished.rename(order)
        end = time.monotonic() + _WAIT_SECONDS
        while order.exists():
            assert time.monotonic() < end, self.log()
            time.sleep(0.1)

    def wait_for(self, keys: set[str]) -> dict[str, Any]:
        """Wait until the answers with these keys are there; gives all answers."""
        end = time.monotonic() + _WAIT_SECONDS
        while not keys <= (found := self.answers()).keys():
            assert time.monotonic() < end, f"{sorted(keys - found.keys())[:3]} are missing: {self.log()}"
            time.sleep(0.5)
        return found

    def _grouped(self, tick: int, width: int, aggregate: Any) -> list[tuple[str, int]]:
        groups: dict[str, list[int]] = {}
        for at, sensor, value in self.elements:
            # A window is open below and closed above, unless `bounds` says otherwise.
            if tick - width < at <= tick:
                groups.setdefault(sensor, []).append(value)
        return sorted((sensor, aggregate(values)) for sensor, values in groups.items())

    def wait_for_all(self) -> None:
        """Wait until every answer is there, and compare all of them."""
        expected = self.expected()
        end = time.monotonic() + _WAIT_SECONDS
        while not expected.keys() <= (found := self.answers()).keys() and time.monotonic() < end:
            self.revive()
            time.sleep(1)
        missing = sorted(expected.keys() - found.keys())
        assert not missing, f"{len(missing)} answers are missing, such as {missing[:3]}: {self.log()}"
        wrong = {key: (found[key], expected[key]) for key in expected if found[key] != expected[key]}
        assert not wrong, f"{len(wrong)} answers are wrong: {dict(list(wrong.items())[:3])}"
        unknown = sorted(found.keys() - expected.keys())
        assert not unknown, f"{len(unknown)} answers that nobody expects, such as {unknown[:3]}"

    def kill_at(self, point: str, *, group: bool) -> bool:
        """Ask for a kill and write records until it has struck; False where it has not."""
        order = self._folder / "kill"
        order.write_text(f"{point} group" if group else f"{point} alone")
        end = time.monotonic() + _WAIT_SECONDS
        while order.exists() and time.monotonic() < end:
            self.write(1)
            self.revive()
            time.sleep(0.2)
        struck = not order.exists()
        order.unlink(missing_ok=True)
        return struck

    def kill_at_random(self, whom: str) -> bool:
        """Kill at no moment in particular the whole run, or the process that evaluates a shard (`worker-0`).

        False where there was none to kill for a long time.
        """
        end = time.monotonic() + _WAIT_SECONDS
        while time.monotonic() < end:
            self.write(1)
            self.revive()
            time.sleep(self._random.uniform(0, 2.0))
            if self._kill(whom):
                with open(self._folder / "kills", "a") as kills:
                    kills.write(f"random {whom}\n")
                return True
        return False

    def _kill(self, whom: str) -> bool:
        if whom == "run":
            is_alive = self._process is not None and self._process.poll() is None
            self.end()
            return is_alive
        try:
            os.kill(int((self._folder / whom).read_text()), signal.SIGKILL)
        except (FileNotFoundError, ValueError, ProcessLookupError):
            return False
        return True

    def callbacks(self) -> list[str]:
        """The keys of the answers that the run took, in their order."""
        return (self._folder / "callbacks").read_text().splitlines()

    def wait_for_callbacks(self) -> None:
        """Wait until the run has taken every answer."""
        end = time.monotonic() + _WAIT_SECONDS
        while not self.expected().keys() <= set(self.callbacks()) and time.monotonic() < end:
            time.sleep(0.5)

    def kills(self) -> list[str]:
        """What has struck."""
        path = self._folder / "kills"
        return path.read_text().splitlines() if path.exists() else []

    def log(self) -> str:
        return (self._folder / "log").read_text()[-3000:]
