"""The simulated remote: it replays what it is told, the same each time, with the faults that were ordered."""

from __future__ import annotations

import time

from hypothesis import given
from hypothesis import strategies as st

from benchmarks.simulated_remote import Behaviour, Outage, SimulatedChanges, SimulatedRemote
from benchmarks.virtual_time import VirtualClock
from headwater.federation.endpoint.remote import Remote
from headwater.terms.model import SECOND
from tests.federation.small_world import counting_log, key, rows

A, B = key("a"), key("b")


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 3)), max_size=12), st.integers(-5, 40))
def test_the_log_is_a_step_function(changes: list[tuple[int, int]], instant: int) -> None:
    log = SimulatedChanges((when, A, rows("a", value)) for when, value in changes)
    told = dict(changes)

    def value_at(when: int) -> tuple[object, ...]:
        past = [earlier for earlier in told if earlier <= when]
        return rows("a", told[max(past)]) if past else ()

    assert log.rows_at(A, instant) == value_at(instant)
    later = [when for when in sorted(told) if when > instant and value_at(when) != value_at(instant)]
    assert log.next_change(A, instant) == (later[0] if later else None)


def test_the_log_counts_changes_and_not_repetitions() -> None:
    log = SimulatedChanges([(0, A, rows("a", 1)), (5, A, rows("a", 1)), (9, A, rows("a", 2)), (12, A, ())])
    assert log.changes_between(A, 0, 20) == 2
    assert log.changes_between(A, 9, 12) == 1
    assert log.rows_at(key("unknown"), 5) == ()
    assert log.changes_between(key("unknown"), 0, 9) == 0


def test_it_answers_as_of_the_clock() -> None:
    clock = VirtualClock(0)
    remote = SimulatedRemote(counting_log("ab", {"a": SECOND}, 10 * SECOND), clock)
    assert remote.fetch([A, B, key("none")]).rows == {A: rows("a", 0), B: rows("b", 0), key("none"): ()}
    clock.pass_seconds(2.5)
    assert remote.fetch([A]).rows == {A: rows("a", 2)}
    assert isinstance(remote, Remote)


def test_the_same_seed_gives_the_same_faults() -> None:
    behaviour = Behaviour(delay=0.1, jitter=0.2, slow=0.2, slow_delay=3.0, errors=0.3)

    def run(seed: int) -> list[tuple[float, str | None]]:
        remote = SimulatedRemote(counting_log("a", {}, 0), VirtualClock(), behaviour, seed)
        return [(fetched.seconds, fetched.error) for fetched in (remote.fetch([A]) for _ in range(100))]

    assert run(1) == run(1)
    assert run(1) != run(2)
    failed = [error for _, error in run(1) if error]
    slow = [seconds for seconds, _ in run(1) if seconds > 3.0]
    assert 15 < len(failed) < 45
    assert 8 < len(slow) < 35
    assert all(0.1 <= seconds <= 3.3 for seconds, _ in run(1))


def test_keys_take_their_time() -> None:
    remote = SimulatedRemote(counting_log("a", {}, 0), VirtualClock(), Behaviour(delay=0.1, per_key=0.01))
    assert remote.fetch([A] * 5).seconds == 0.15000000000000002


def test_an_outage_has_a_begin_and_an_end() -> None:
    clock = VirtualClock(0)
    behaviour = Behaviour(delay=0.1, outages=(Outage(SECOND, 2 * SECOND),), dead_delay=10.0)
    remote = SimulatedRemote(counting_log("a", {}, 0), clock, behaviour)
    found = []
    for instant in (SECOND - 1, SECOND, 2 * SECOND - 1, 2 * SECOND):
        clock.move_to(instant)
        fetched = remote.fetch([A])
        found.append((fetched.error is None, fetched.seconds))
    assert found == [(True, 0.1), (False, 10.0), (False, 10.0), (True, 0.1)]
    assert remote.requests == 4


def test_pages_hold_everything_and_may_repeat_themselves() -> None:
    log = counting_log("abcdefgh", {}, 0)
    plain = SimulatedRemote(log, VirtualClock())
    assert [len(page.pairs) for page in plain.pages(3)] == [3, 3, 2]
    doubled = SimulatedRemote(log, VirtualClock(), Behaviour(duplicates=1.0))
    pages = list(doubled.pages(4))
    assert [len(page.pairs) for page in pages] == [4, 6]
    assert pages[1].pairs[:2] == pages[0].pairs[2:]


def test_pages_end_with_an_error() -> None:
    remote = SimulatedRemote(counting_log("ab", {}, 0), VirtualClock(), Behaviour(errors=1.0))
    (page,) = remote.pages(1)
    assert (page.pairs, page.error) == ([], "the remote answers with an error")


def test_it_can_take_real_time() -> None:
    remote = SimulatedRemote(counting_log("a", {}, 0), VirtualClock(), Behaviour(delay=0.03), pause=time.sleep)
    begun = time.monotonic()
    remote.fetch([A])
    assert time.monotonic() - begun >= 0.03
