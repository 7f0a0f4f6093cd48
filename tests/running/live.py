"""Runs in process that follow files, by a clock that the test moves: a wait of the run is a step of the clock."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest

import headwater as hw
from headwater.execution.answers import Answer
from headwater.running.resting import Rest
from headwater.sources.following.stream_watch import StreamWatch

TRIGGER = 0.25


@dataclass
class Clock:
    """Seconds since 1970; `at` has what happens when."""

    now: float = 1_700_000_000.0
    begin: float = 1_700_000_000.0
    at: list[tuple[float, Callable[[], object]]] = field(default_factory=list)

    def __call__(self) -> float:
        return self.now

    @property
    def elapsed(self) -> float:
        return self.now - self.begin

    def move(self, seconds: float) -> None:
        self.now += seconds
        while self.at and self.at[0][0] <= self.elapsed:
            self.at.pop(0)[1]()


class Stop(threading.Event):
    """The stop of a run whose waits take no time."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock = clock

    def wait(self, timeout: float | None = None) -> bool:
        self._clock.move(timeout or 0.0)
        return self.is_set()


@dataclass
class Seen:
    """An answer, and when it came."""

    at: float
    answer: Answer

    @property
    def rows(self) -> list[str]:
        return sorted(" ".join(map(str, row)) for row in self.answer.rows)

    @property
    def key(self) -> tuple[str, int, int, tuple[str, ...]]:
        return self.answer.query, self.answer.time, self.answer.part, tuple(self.rows)


class LiveRuns:
    """One run after another over the same files and the same checkpoint."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, make: Callable[[], hw.Engine]) -> None:
        self.clock = Clock()
        self.seen: list[Seen] = []
        self.summaries: list[hw.RunSummary] = []
        self.engine: hw.Engine | None = None
        self._make = make
        monkeypatch.setattr("headwater.running.in_process.StreamWatch", lambda: StreamWatch(self.clock, self.clock))
        monkeypatch.setattr("headwater.running.in_process.Rest", partial(Rest, clock=self.clock))

    def happen(self, at: float, action: Callable[[], object]) -> None:
        self.clock.at = sorted([*self.clock.at, (at, action)], key=lambda one: one[0])

    def write(self, at: float, path: Path, text: str) -> None:
        """Have a line appended to a file after so many seconds; `{now}` in it is that time in milliseconds."""

        def append() -> None:
            with path.open("a") as stream:
                stream.write(text.replace("{now}", str(int((self.clock.begin + at) * 1000))) + "\n")

        self.happen(at, append)

    def run(self, until: float, *, fails: bool = False) -> None:
        """Follow the files up to a time; with `fails` the first answer is not taken."""

        def take(answer: Answer) -> None:
            self.seen.append(Seen(self.clock.elapsed, answer))
            if fails:
                raise RuntimeError("not taken")

        engine = self.engine = self._make()
        engine._stop, engine._woken = Stop(self.clock), Stop(self.clock)
        self.happen(until, engine.stop)
        summary = engine.run(
            follow=True,
            trigger_seconds=TRIGGER,
            on_answer=take,
        )
        self.summaries.append(summary)

    @property
    def keys(self) -> list[tuple[str, int, int, tuple[str, ...]]]:
        return [one.key for one in self.seen]
