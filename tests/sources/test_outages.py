"""What is worth another try: a run that follows waits for a broker, and starts its query again from the checkpoint."""

from __future__ import annotations

import threading
from typing import Any

import pytest

import headwater as hw
from headwater.sources import outages
from headwater.sources.outages import BackOff, is_outage
from headwater.spark.spark_runner import _run_query

AWAY = "Caused by: org.apache.kafka.common.errors.TimeoutException: Timed out waiting for a node assignment."


class FakeQuery:
    """A streaming query that ends as it was told."""

    isActive = False

    def __init__(self, failure: BaseException | None, sink_fails: list[BaseException] | None = None) -> None:
        self.failure = failure
        self.sink_fails = sink_fails

    def awaitTermination(self) -> None:
        if self.sink_fails is not None and self.failure is not None:
            self.sink_fails.append(self.failure)
            raise RuntimeError("the callback raised")
        if self.failure is not None:
            raise self.failure

    def stop(self) -> None:
        return


def drive(ends: list[Any], *, follow: bool, failures: list[BaseException] | None = None) -> int:
    """Runs queries that end like these, one after the other; gives how many were started."""
    started = 0

    def start() -> Any:
        nonlocal started
        started += 1
        return ends[started - 1]

    _run_query(start, failures if failures is not None else [], threading.Event(), follow)
    return started


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outages, "_FIRST_WAIT", 0.0)


def test_a_broker_that_is_away_is_recognised() -> None:
    assert is_outage(RuntimeError(AWAY))
    outer = RuntimeError("a batch failed")
    outer.__cause__ = ValueError(AWAY)
    assert is_outage(outer)
    assert not is_outage(RuntimeError("org.apache.kafka.common.errors.TopicAuthorizationException"))


def test_a_run_that_follows_is_started_again() -> None:
    assert drive([FakeQuery(RuntimeError(AWAY)), FakeQuery(RuntimeError(AWAY)), FakeQuery(None)], follow=True) == 3


def test_a_sink_whose_broker_is_away_is_tried_again() -> None:
    failures: list[BaseException] = []
    ends = [FakeQuery(RuntimeError(AWAY), failures), FakeQuery(None)]
    assert drive(ends, follow=True, failures=failures) == 2
    assert failures == []


def test_other_failures_and_runs_that_do_not_follow_end() -> None:
    with pytest.raises(hw.RunError, match="TimeoutException"):
        drive([FakeQuery(RuntimeError(AWAY))], follow=False)
    with pytest.raises(hw.RunError, match="something else"):
        drive([FakeQuery(RuntimeError("something else"))], follow=True)
    failures: list[BaseException] = []
    with pytest.raises(OSError, match="disk full"):
        drive([FakeQuery(OSError("disk full"), failures)], follow=True, failures=failures)


def test_waiting_ends_when_it_is_told_to_or_takes_too_long() -> None:
    stop = threading.Event()
    assert BackOff().wait(stop)
    assert not BackOff(-1.0).wait(stop)
    stop.set()
    assert not BackOff().wait(stop)
