"""A run at rest: what is added is seen at once, what costs much is glanced at rarely, and who is told does not look."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

import headwater as hw
from headwater.running.resting import Rest
from headwater.sources.feed import Feed
from headwater.sources.offsets import Offset
from headwater.sources.source import Source
from headwater.sources.spool import SpoolSource
from tests.running.live import LiveRuns

S = "http://ex/s"
QUERY = "PREFIX : <http://ex/> REGISTER QUERY now AS SELECT ?v WHERE { STREAM :s [NOW] { ?x :p ?v } }"
SEEN = 0.005
"""An element is seen so many seconds after its arrival."""


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class SlowFeed(Feed):
    """A feed whose glances take time, of which there is a count."""

    def __init__(self, clock: Clock, seconds: float) -> None:
        super().__init__({S: hw.files("nothing.tnq")})
        self._clock, self._seconds = clock, seconds
        self.glances = 0

    def has_changed(self) -> bool:
        self.glances += 1
        self._clock.now += self._seconds
        return False


class Sleep(threading.Event):
    """An event for which nobody waits in earnest: a wait moves the clock."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock = clock

    def wait(self, timeout: float | None = None) -> bool:
        assert timeout is not None
        assert timeout >= 0
        self._clock.now += timeout
        return self.is_set()


def count_glances(seconds: float, quiet: float = 0.0) -> int:
    """How many glances of so many seconds there are in ten seconds, after a quiet time."""
    clock = Clock()
    rest, feed = Rest(None, Sleep(clock), 10.0, clock=clock), SlowFeed(clock, seconds)
    clock.now = quiet
    rest.wait(feed)
    assert clock.now >= quiet + 10
    return feed.glances


def test_glances_are_frequent_where_they_cost_nothing_and_rare_where_they_cost_much() -> None:
    assert 10 / SEEN * 1.5 < count_glances(0.0) < 6_000
    assert 10 / SEEN <= count_glances(0.0, quiet=60.0) < count_glances(0.0)
    glances = count_glances(0.01)
    assert 0 < glances * 0.01 < 10 * 0.05, "glances take a small part of the time"


def test_what_is_added_is_seen_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "s.tnq"
    path.touch()

    def make() -> hw.Engine:
        engine = hw.Engine(in_process=True)
        engine.stream(S, path)
        engine.register(QUERY)
        return engine

    runs = LiveRuns(monkeypatch, make)
    arrivals = [0.33, 0.41, 2.0, 31.07, 31.2]
    for number, at in enumerate(arrivals):
        runs.write(at, path, f'{{now}}\t<http://ex/x> <http://ex/p> "{number}" .')
    runs.run(32.0)
    # An element makes the tick of the one before due.
    seen = [one.at for one in runs.seen]
    assert len(seen) == len(arrivals) - 1
    assert all(0 <= one - arrival <= SEEN for one, arrival in zip(seen, arrivals[1:], strict=True))


def test_a_new_file_a_longer_and_a_removed_one_are_changes(tmp_path: Path) -> None:
    (tmp_path / "a.tnq").touch()
    feed = Feed({S: hw.files(tmp_path)})
    assert feed.has_changed(), "nothing was looked at yet"
    feed.next_offset(Offset())
    assert not feed.has_changed()
    (tmp_path / "b.tnq").write_text('1\t<http://ex/x> <http://ex/p> "1" .\n')
    assert feed.has_changed()
    feed.next_offset(Offset())
    with (tmp_path / "b.tnq").open("a") as stream:
        stream.write("2\t<http://ex/x>")
    assert feed.has_changed()
    feed.next_offset(Offset())
    assert not feed.has_changed()
    (tmp_path / "a.tnq").unlink()
    assert feed.has_changed()


@pytest.mark.parametrize(
    ("source", "is_told", "is_polled"),
    [
        (hw.files("nothing.tnq"), True, True),
        (hw.memory([]), True, False),
        (SpoolSource("nothing"), True, False),
        (SpoolSource("nothing"), False, True),
    ],
)
def test_what_receivers_announce_is_not_polled(source: Source, is_told: bool, is_polled: bool) -> None:
    assert Feed({S: source}, is_told=is_told).is_polled is is_polled


def test_a_run_is_woken_once_and_one_that_is_stopped_does_not_rest() -> None:
    woken, stop = threading.Event(), threading.Event()
    feed = Feed({S: hw.files("nothing.tnq")})
    feed.next_offset(Offset())
    woken.set()
    Rest(woken, stop, 60.0).wait(feed)
    assert not woken.is_set()
    stop.set()
    Rest(None, stop, 60.0).wait(feed)
    assert stop.is_set()


def test_a_run_rests_as_long_as_it_saves(tmp_path: Path) -> None:
    clock = Clock()
    feed = Feed({S: hw.files(tmp_path / "*.tnq")})
    (tmp_path / "a.tnq").touch()
    Rest(None, Sleep(clock), 10.0, clock=clock).wait(feed, least=0.3)
    assert 0.3 <= clock.now < 0.31
    Rest(None, Sleep(clock), 1.0, clock=clock).wait(feed, least=60.0)
    assert clock.now < 1.4, "but no longer than between two looks"
