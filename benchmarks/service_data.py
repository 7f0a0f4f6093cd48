"""The data of the SERVICE experiments: the mentions of accounts as the stream, their follower counts as the remote.

The stream is real (`acqua`, of the work that the paper reports). The remote is real too, or synthetic over the same
accounts, with change rates that are fixed, drift, or come in bursts.
"""

from __future__ import annotations

import csv
import os
import random
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from benchmarks.reporting import PROJECT
from benchmarks.simulated_remote import Change, SimulatedChanges
from headwater.federation.view.given_rates import GivenRates
from headwater.federation.view.lifetime import WindowKey, remaining_ticks
from headwater.terms.model import MILLISECOND, SECOND, Literal, NamedNode, Row

WIDTH = 100 * SECOND
SLIDE = 60 * SECOND
MINUTE = 60 * SECOND
_NEVER = 1e-9
"""The rate, in changes per second, of what does not change in the whole recording."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """The ticks of a stream, the keys of each window, and the history of the remote."""

    name: str
    log: SimulatedChanges
    begin: int
    ticks: tuple[int, ...]
    windows: tuple[tuple[WindowKey, ...], ...]

    def given_rates(self) -> GivenRates:
        """How often each key changes in a second, from the first evaluation to its last change; a query that is not
        given this cannot know it. Where periods are fixed, it is one over the period.
        """
        return self._rates(lambda key: self.log.last_change(key, self.ticks[-1]) or 0)

    def counted_rates(self) -> GivenRates:
        """The same, but the changes are counted over the whole replay: too few, by the time after the last one."""
        return self._rates(lambda key: self.ticks[-1])

    def _rates(self, end_of: Callable[[Row], int]) -> GivenRates:
        begin, rates = self.ticks[0], {}
        for key in self.log:
            count = self.log.changes_between(key, begin, self.ticks[-1])
            rates[key] = SECOND * count / (end_of(key) - begin) if count else _NEVER
        return GivenRates("the recording", None, rates)


def folder() -> Path:
    root = Path(os.environ.get("HEADWATER_SHARED_DATA", PROJECT.parent / "shared" / "data"))
    path = root / "acqua"
    if not path.is_dir():
        sys.exit(f"The benchmark needs {path}. Set HEADWATER_SHARED_DATA to the folder that holds acqua.")
    return path


@cache
def account_key(user_id: str) -> Row:
    return (NamedNode(f"http://example.org/account/{user_id}"),)


@cache
def follower_rows(key: Row, count: int) -> tuple[Row, ...]:
    return ((key[0], Literal(count)),)


@dataclass(frozen=True, slots=True)
class Recording:
    """The two files: snapshots of follower counts, and mentions."""

    snapshots: tuple[Change, ...]
    mentions: tuple[tuple[int, Row], ...]

    @property
    def span(self) -> tuple[int, int]:
        """From the end of the first snapshot, which took some seconds, to the last observation."""
        first: dict[Row, int] = {}
        for instant, key, _ in self.snapshots:
            first[key] = min(instant, first.get(key, instant))
        return max(first.values()), max(instant for instant, _, _ in self.snapshots)


def recording() -> Recording:
    with (folder() / "followers.csv").open() as file:
        snapshots = tuple(
            (int(line["observed_at_ms"]) * MILLISECOND, key, follower_rows(key, int(line["followers"])))
            for line in csv.DictReader(file)
            for key in (account_key(line["user_id"]),)
        )
    with (folder() / "mentions.csv").open() as file:
        mentions = tuple(
            (int(line["mentioned_at_ms"]) * MILLISECOND, account_key(line["user_id"])) for line in csv.DictReader(file)
        )
    return Recording(snapshots, mentions)


def windows_of(
    recording: Recording, width: int = WIDTH, slide: int = SLIDE
) -> tuple[tuple[int, ...], tuple[tuple[WindowKey, ...], ...]]:
    """Ticks from the first full window on to the last snapshot, and each window's accounts: one answer row for each."""
    begin, end = recording.span
    ticks = tuple(range(begin + width, end + 1, slide))
    windows = []
    for tick in ticks:
        latest: dict[Row, int] = {}
        for instant, key in recording.mentions:
            if tick - width < instant <= tick:
                latest[key] = max(instant, latest.get(key, instant))
        windows.append(
            tuple(WindowKey(key, remaining_ticks(instant, width, slide, tick)) for key, instant in latest.items())
        )
    return ticks, tuple(windows)


def real_scenario(recording: Recording) -> Scenario:
    """Follower counts as they were recorded, minute by minute."""
    ticks, windows = windows_of(recording)
    return Scenario("real", SimulatedChanges(recording.snapshots), recording.span[0], ticks, windows)


Instants = Callable[[int, int, random.Random], Iterator[int]]
"""The instants in `(begin, end]` at which one account changes."""


def synthetic_scenario(name: str, recording: Recording, instants: Instants, seed: int) -> Scenario:
    """The same stream, over synthetic counts that go up at the given instants."""
    ticks, windows = windows_of(recording)
    begin, end = recording.span
    chance = random.Random(f"{name} {seed}")
    accounts = dict.fromkeys(key for _, key, _ in recording.snapshots)
    changes: list[Change] = []
    for key in accounts:
        changes.append((begin, key, follower_rows(key, 0)))
        changes += (
            (instant, key, follower_rows(key, count)) for count, instant in enumerate(instants(begin, end, chance), 1)
        )
    return Scenario(name, SimulatedChanges(changes), begin, ticks, windows)
