"""The gate before an endpoint: tokens, places, pauses, back-off, and what a clock that stands still shows of them."""

from __future__ import annotations

import threading
import time
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.federation.endpoint.clock import RequestClock
from headwater.federation.endpoint.endpoint_errors import EndpointBusy
from headwater.federation.endpoint.limits import (
    Backoff,
    Limits,
    RequestGate,
    TokenBucket,
    parse_retry_after,
)

TODAY = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)


class StandingTime(RequestClock):
    """Waiting takes no time, and moves the clock."""

    def __init__(self) -> None:
        self.seconds = 100.0

    def now(self) -> float:
        return self.seconds

    def sleep(self, seconds: float) -> None:
        self.seconds += seconds

    def date(self) -> datetime:
        return TODAY


@given(st.floats(0.5, 50), st.integers(1, 5), st.lists(st.floats(0, 1), min_size=1, max_size=60))
def test_in_no_stretch_of_time_are_there_more_requests_than_the_bucket_lets_through(
    rate: float, burst: int, gaps: list[float]
) -> None:
    bucket, now, taken = TokenBucket(rate, burst, 0.0), 0.0, []
    for gap in gaps:
        now = bucket.ready_at(now + gap)
        bucket.take(now)
        taken.append(now)
    for first in range(len(taken)):
        for last in range(first, len(taken)):
            assert last - first + 1 <= burst + (taken[last] - taken[first]) * rate + 1e-6


def test_requests_wait_for_their_turn() -> None:
    clock = StandingTime()
    gate = RequestGate("e", Limits(per_second=4), clock)
    starts = []
    for _ in range(3):
        with gate.enter(deadline=200.0):
            starts.append(clock.seconds)
    assert starts == pytest.approx([100.0, 100.25, 100.5])


def test_a_turn_after_the_deadline_is_told_at_once() -> None:
    clock = StandingTime()
    gate = RequestGate("e", Limits(per_second=0.1), clock)
    with gate.enter(deadline=101.0):
        pass
    with pytest.raises(EndpointBusy, match=r"0\.1 requests per second") as caught, gate.enter(deadline=101.0):
        pass
    assert caught.value.retry_after == pytest.approx(10.0)
    assert clock.seconds == 100.0
    with gate.enter(deadline=111.0):
        assert clock.seconds == pytest.approx(110.0)


def test_a_pause_holds_for_everybody_and_never_becomes_shorter() -> None:
    clock = StandingTime()
    gate = RequestGate("e", Limits(), clock)
    gate.pause(30.0)
    gate.pause(5.0)
    assert gate.remaining_pause == pytest.approx(30.0)
    with pytest.raises(EndpointBusy, match="asked for a pause"), gate.enter(deadline=129.0):
        pass
    with gate.enter(deadline=131.0):
        assert clock.seconds == pytest.approx(130.0)
    assert gate.remaining_pause == 0.0


def test_no_more_are_at_work_than_allowed() -> None:
    gate = RequestGate("e", Limits(concurrent=2), RequestClock())
    inside, most, lock = 0, 0, threading.Lock()

    def work() -> None:
        nonlocal inside, most
        with gate.enter(time.monotonic() + 5):
            with lock:
                inside += 1
                most = max(most, inside)
            time.sleep(0.01)
            with lock:
                inside -= 1

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (inside, most) == (0, 2)


def test_who_finds_no_place_in_time_is_told() -> None:
    gate = RequestGate("e", Limits(concurrent=1), RequestClock())
    with (
        gate.enter(time.monotonic() + 5),
        pytest.raises(EndpointBusy, match="at work"),
        gate.enter(time.monotonic() + 0.02),
    ):
        pass
    with gate.enter(time.monotonic() + 5):
        pass


def test_a_place_is_given_back_after_an_error_and_after_a_turn_that_came_too_late() -> None:
    clock = StandingTime()
    gate = RequestGate("e", Limits(concurrent=1, per_second=0.1), clock)
    with pytest.raises(KeyError), gate.enter(101.0):
        raise KeyError
    for _ in range(3):
        with pytest.raises(EndpointBusy), gate.enter(101.0):
            pass
    with gate.enter(200.0):
        pass


@pytest.mark.parametrize("wrong", [{"concurrent": 0}, {"burst": 0}, {"per_second": 0.0}, {"per_second": -1.0}])
def test_limits_that_let_nothing_through_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError, match=r"at least 1|above zero"):
        Limits(**wrong)


def test_back_off_doubles_up_to_a_bound_and_repeats_with_its_seed() -> None:
    delays = [Backoff(0.1, 1.0, seed=7).delay(n) for n in range(8)]
    again = Backoff(0.1, 1.0, seed=7)
    assert delays[0] == again.delay(0)
    for n, delay in enumerate([again.delay(n) for n in range(8)]):
        whole = min(1.0, 0.1 * 2**n)
        assert whole / 2 <= delay <= whole
    assert len({Backoff(0.1, 1.0, seed=seed).delay(0) for seed in range(5)}) == 5


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        (None, None),
        ("120", 120.0),
        (" 0 ", 0.0),
        ("Sun, 01 Mar 2026 12:00:30 GMT", 30.0),
        ("Sun, 01 Mar 2026 11:00:00 GMT", 0.0),
        ("Sun, 01 Mar 2026 13:00:30 +0100", 30.0),
        ("soon", None),
        ("-5", None),
        ("1.5", None),
    ],
)
def test_retry_after_is_a_number_or_a_date(header: str | None, seconds: float | None) -> None:
    assert parse_retry_after(header, TODAY) == seconds


def test_a_date_without_a_zone_is_universal_time() -> None:
    written = (TODAY + timedelta(seconds=9)).strftime("%a, %d %b %Y %H:%M:%S -0000")
    assert parse_retry_after(written, TODAY) == 9.0
