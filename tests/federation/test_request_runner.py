"""Requests under way: at once, until a deadline, late ones taken up after it; with threads and on the virtual clock."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence

import pytest

from benchmarks.virtual_time import VirtualClock, VirtualRequestRunner
from headwater.federation.endpoint.clock import SystemClock
from headwater.federation.endpoint.remote import FetchResult, Page
from headwater.federation.policy.request_runner import ThreadRequestRunner
from headwater.terms.model import SECOND, Row
from tests.federation.small_world import ScriptedRemote, key

A, B, C = key("a"), key("b"), key("c")


class GatedRemote:
    """Answers when its gate is opened; a barrier shows that requests are there at the same time."""

    name, keys_per_request = "gated", 1

    def __init__(self, parties: int = 1) -> None:
        self.gate = threading.Event()
        self.together = threading.Barrier(parties)

    def fetch(self, keys: Sequence[Row]) -> FetchResult:
        self.together.wait(timeout=10)
        self.gate.wait(timeout=10)
        return FetchResult({asked: () for asked in keys}, 0.0)

    def pages(self, limit: int) -> Iterator[Page]:
        return iter(())


@pytest.fixture
def threads() -> Iterator[ThreadRequestRunner]:
    runner = ThreadRequestRunner(SystemClock(), workers=2)
    yield runner
    runner.close()


def test_threads_ask_at_the_same_time(threads: ThreadRequestRunner) -> None:
    remote = GatedRemote(parties=2)
    remote.gate.set()
    outcomes = threads.wait(threads.start(remote, [[A], [B]], 7), until=None)
    assert sorted(outcome.keys for outcome in outcomes) == sorted([(A,), (B,)])


def test_threads_wait_until_the_deadline_and_take_up_the_late_ones(threads: ThreadRequestRunner) -> None:
    remote = GatedRemote()
    begun = time.monotonic()
    request_ids = threads.start(remote, [[A]], 7)
    assert threads.wait(request_ids, until=SystemClock().now() + SECOND // 20) == []
    assert 0.04 < time.monotonic() - begun < 2.0
    assert threads.free_workers == 1
    remote.gate.set()
    late = threads.wait(request_ids, until=None)
    assert [outcome.keys for outcome in late] == [(A,)]
    assert threads.free_workers == 2


def test_there_are_no_more_requests_than_workers(threads: ThreadRequestRunner) -> None:
    remote = GatedRemote()
    assert len(threads.start(remote, [[A], [B], [C]], 7)) == 2
    assert threads.start(remote, [[C]], 7) == []
    remote.gate.set()


def test_a_remote_that_raises_is_an_error_not_a_crash(threads: ThreadRequestRunner) -> None:
    remote = ScriptedRemote(VirtualClock())
    remote.raises = RuntimeError("half a response")
    (outcome,) = threads.wait(threads.start(remote, [[A]], 7), until=None)
    assert outcome.fetched.rows == {}
    assert outcome.fetched.error == "RuntimeError: half a response"


def test_virtual_requests_take_the_time_of_the_slowest() -> None:
    clock = VirtualClock(0)
    runner = VirtualRequestRunner(clock, workers=3)
    outcomes = runner.wait(runner.start(ScriptedRemote(clock, seconds=0.3), [[A], [B]], 7), until=None)
    assert clock.now() == 0.3 * SECOND
    assert [outcome.asked_at for outcome in outcomes] == [7, 7]


def test_virtual_requests_can_be_late() -> None:
    clock = VirtualClock(0)
    runner = VirtualRequestRunner(clock, workers=1)
    remote = ScriptedRemote(clock, seconds=0.3)
    assert runner.wait(runner.start(remote, [[A], [B]], 7), until=SECOND // 10) == []
    assert clock.now() == SECOND // 10
    assert runner.free_workers == 0
    clock.move_to(SECOND)
    assert [outcome.keys for outcome in runner.wait((), until=SECOND)] == [(A,)]
    assert clock.now() == SECOND
    runner.start(remote, [[C]], 7)
    runner.close()
    assert runner.free_workers == 1


def test_the_system_clock_tells_the_time_and_goes_on() -> None:
    clock = SystemClock()
    before = clock.now()
    assert abs(before - time.time_ns() // 1000) < 5 * SECOND
    assert clock.now() >= before


def test_a_virtual_clock_never_goes_back() -> None:
    clock = VirtualClock(10)
    clock.move_to(5)
    clock.pass_seconds(-1.0)
    assert clock.now() == 10
