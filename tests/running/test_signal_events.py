"""Events that signal handlers set."""

from __future__ import annotations

import faulthandler
import signal
import threading
import time
from collections.abc import Iterator
from types import FrameType

import pytest

from headwater.running.signal_events import SignalEvent


@pytest.fixture(autouse=True)
def end_when_it_hangs() -> Iterator[None]:
    """A handler that waits for the thread it interrupts waits for ever, and pytest's own time-out with it."""
    faulthandler.dump_traceback_later(60, exit=True)
    yield
    faulthandler.cancel_dump_traceback_later()


def test_a_handler_may_set_it_at_any_point_of_a_wait() -> None:
    """A timer interrupts waits that begin again and again: some of the signals come while a wait begins or ends."""
    event = SignalEvent()
    count = 0

    def handle(_: int, __: FrameType | None) -> None:
        nonlocal count
        count += 1
        event.set()

    before = signal.signal(signal.SIGALRM, handle)
    signal.setitimer(signal.ITIMER_REAL, 0.0002, 0.0002)
    try:
        end = time.monotonic() + 2
        while time.monotonic() < end:
            event.wait(0.0001)
            event.clear()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert count > 100


def test_it_is_an_event() -> None:
    event = SignalEvent()
    assert not event.is_set() and not event.wait(0.01)
    woken: list[bool] = []
    waiting = [threading.Thread(target=lambda: woken.append(event.wait(30))) for _ in range(4)]
    for one in waiting:
        one.start()
    event.set()
    for one in waiting:
        one.join(20)
    assert woken == [True] * 4 and event.wait()
    event.clear()
    assert not event.is_set() and not event.wait(0.01)
