"""One input, one run that is killed again and again, and what must come out of it in the end."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import headwater as hw
from tests.engine.programs import SENSORS, SLIDING, TUMBLING, sensor_lines, write

PROJECT = Path(__file__).resolve().parents[2]
LONGEST_SECONDS = 240.0
RANDOM_KILLS = int(os.environ.get("HEADWATER_KILLS", "20"))

Moment = Callable[["Victim"], bool]
"""Looks at a victim from time to time and says when to kill it."""


class Victim:
    """A process of `tests.spark.victim`, with all that it starts."""

    def __init__(self, folder: Path, settings: dict[str, Any]) -> None:
        path = folder / "settings.json"
        path.write_text(json.dumps(settings))
        self.lines: list[str] = []
        self._queue: queue.Queue[str] = queue.Queue()
        with open(folder / "victim.log", "ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.spark.victim", str(path)],
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

    def run(self, moment: Moment | None = None) -> bool:
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
    """Files in, files out."""

    queries: tuple[str, ...] = (SLIDING, TUMBLING)

    def __init__(self, folder: Path, **settings: Any) -> None:
        self.folder = folder
        self.settings: dict[str, Any] = {"folder": str(folder), "batch_bytes": 1500, **settings}
        write(folder / "in.tnq", sensor_lines(120, late_every=0))

    def killed_at(self, point: str) -> bool:
        """Whether a run came to a point, and to its end there."""
        Victim(self.folder, {**self.settings, "point": point}).run()
        return (self.folder / f"killed-{point}").exists()

    def run(self, moment: Moment | None = None) -> bool:
        return Victim(self.folder, self.settings).run(moment)

    def log(self) -> str:
        return (self.folder / "victim.log").read_text()[-2000:]

    def expected(self) -> dict[str, Any]:
        """The answers of a run without failure, in process."""
        engine = hw.Engine(in_process=True)
        engine.stream(SENSORS, self.folder / "in.tnq")
        self.with_more(engine)
        for text in self.queries:
            engine.register(text)
        engine.run(sinks=[hw.FileSink(self.folder / "expected")])
        return self.in_files("expected")

    def with_more(self, engine: hw.Engine) -> None:
        """Streams beside the file."""

    def in_files(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for path in (self.folder / name).rglob("*.jsonl"):
            for line in path.read_text().splitlines():
                key, content = comparable(json.loads(line), path.parent.name)
                if shard_of(path) is not None:
                    key = key.removesuffix("0") + str(shard_of(path))
                assert key not in found, f"{key} stands in two batches"
                found[key] = content
        return found

    def check(self) -> dict[str, Any]:
        expected = self.expected()
        assert len(expected) > 30
        found = self.in_files("out")
        if self.settings.get("parts"):
            assert {key.rpartition("|")[2] for key in found} == {"0", "1"}
            found = merge_parts(found)
        assert found == expected
        return expected


def shard_of(path: Path) -> int | None:
    """Which shard wrote a file; None where it has whole answers."""
    behind_batch = path.stem.split("-")[2:]
    return int(behind_batch[0]) if behind_batch else None


def merge_parts(found: dict[str, Any]) -> dict[str, Any]:
    """Whole answers of those that came in parts."""
    merged: dict[str, Any] = {}
    for key, (head, rows) in found.items():
        whole = merged.setdefault(f"{key.rpartition('|')[0]}|0", (head, []))
        whole[1].extend(rows)
    return {key: (head, sorted(rows)) for key, (head, rows) in merged.items()}


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
