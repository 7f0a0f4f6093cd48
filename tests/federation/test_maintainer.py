"""A tick of maintenance: budgets, deadlines, failures, outages, late answers, accuracy goals, restarts."""

from __future__ import annotations

import logging
import string
import time
from collections.abc import Sequence

import pytest

from benchmarks.simulated_remote import Behaviour, Outage, SimulatedRemote
from benchmarks.virtual_time import VirtualClock, VirtualRequestRunner
from headwater.federation.endpoint.clock import SystemClock
from headwater.federation.policy.candidates import Candidate, Tick
from headwater.federation.policy.maintainer import Maintainer
from headwater.federation.policy.proposers import WindowServiceJoin
from headwater.federation.policy.rankers import LeastRecentlyRefreshed, NoRefresh, Ranker
from headwater.federation.policy.request_runner import ThreadRequestRunner
from headwater.federation.view.lifetime import WindowKey
from headwater.federation.view.local_view import LocalView
from headwater.federation.view.service_quality import Alert, Goal, Goals
from headwater.federation.view.view_journal import pack_state, unpack_state
from headwater.terms.model import SECOND
from headwater.terms.packing import pack, unpack
from tests.federation.small_world import ScriptedRemote, counting_log, key, rows, view_of

SLIDE = 10 * SECOND
NAMES = "abcdefghijklmnop"


class Scene:
    """A maintainer over a scripted remote, on a virtual clock that each tick moves on by one slide."""

    def __init__(
        self,
        goals: Goals,
        view: LocalView | None = None,
        keys_per_request: int = 1,
        seconds: float = 0.0,
        workers: int = 4,
        ranker: Ranker | None = None,
    ) -> None:
        self.clock = VirtualClock(0)
        self.remote = ScriptedRemote(self.clock, keys_per_request, seconds)
        self.alerts: list[Alert] = []
        self.maintainer = Maintainer(
            view_of(NAMES, unit=SLIDE) if view is None else view,
            self.remote,
            WindowServiceJoin(),
            ranker or LeastRecentlyRefreshed(),
            goals,
            self.clock,
            VirtualRequestRunner(self.clock, workers),
        )
        self._next = SLIDE

    def tick(self, names: str = NAMES, spent: float = 0.0):
        self.clock.move_to(self._next)
        self._next += SLIDE
        quality = self.maintainer.tick([WindowKey(key(name)) for name in names], SLIDE, spent)
        self.alerts += quality.alerts
        return quality


def test_no_more_is_refreshed_than_the_budget_allows() -> None:
    scene = Scene(Goals(budget=3))
    for _ in range(5):
        before = len(scene.remote.keys_asked)
        quality = scene.tick()
        assert len(scene.remote.keys_asked) - before == 3
        assert (quality.refreshes, quality.requests) == (3, 3)
    assert len(set(scene.remote.keys_asked)) == 15, "the least recently refreshed come first"


class Watching(LeastRecentlyRefreshed):
    """Remembers which share of the candidates it was told to expect a refresh for."""

    def __init__(self) -> None:
        super().__init__()
        self.shares: list[float] = []

    def rank(self, candidates: Sequence[Candidate], tick: Tick) -> list[Candidate]:
        self.shares.append(tick.refreshed_share)
        return super().rank(candidates, tick)


def test_the_ranker_hears_which_share_of_the_candidates_is_refreshed() -> None:
    ranker = Watching()
    scene = Scene(Goals(budget=4), ranker=ranker)
    for names in (NAMES, NAMES[:8], NAMES[:2], ""):
        scene.tick(names)
    assert ranker.shares[:3] == [4 / 16, 4 / 8, 1.0]
    # Two could be refreshed at the tick before last, and none at the last one, which does not count.
    scene.tick()
    assert ranker.shares[-1] == pytest.approx((4 + 0.1 * (2 - 4)) / 16)


def test_without_a_budget_the_share_is_what_was_possible_of_late() -> None:
    ranker = Watching()
    scene = Scene(Goals(latency=0.5), ranker=ranker)
    for _ in range(2):
        scene.tick(NAMES[:4])
    assert ranker.shares == [0.0, 1.0]


def test_an_endpoint_that_takes_values_gets_one_request() -> None:
    scene = Scene(Goals(budget=5), keys_per_request=50)
    quality = scene.tick()
    assert [len(request) for request in scene.remote.asked] == [5]
    assert (quality.refreshes, quality.requests) == (5, 1)


def test_without_any_goal_everything_that_the_ranker_wants_is_refreshed() -> None:
    assert Scene(Goals()).tick("abcdefg").refreshes == 7
    assert Scene(Goals(), ranker=NoRefresh()).tick().refreshes == 0


def test_a_budget_of_nothing_refreshes_nothing() -> None:
    scene = Scene(Goals(budget=0))
    assert scene.tick().refreshes == 0
    assert scene.remote.asked == []


def test_the_latency_goal_holds_and_is_used() -> None:
    """20 ms per request, 4 at once, 200 ms: seven waves and more fit, eleven do not."""
    scene = Scene(Goals(latency=0.2), view_of("", unit=SLIDE), seconds=0.02)
    names = string.ascii_letters
    taken = [scene.tick(names) for _ in range(6)]
    assert all(quality.seconds <= 0.2 for quality in taken)
    assert all(28 <= quality.refreshes <= 40 for quality in taken[1:])
    assert not scene.alerts


def test_what_the_query_needs_itself_is_left_for_it() -> None:
    scene = Scene(Goals(latency=0.2), seconds=0.02, workers=1)
    scene.tick()
    plenty = scene.tick().refreshes
    for _ in range(5):
        scene.maintainer.record_query_time(0.1)
    quality = scene.tick(spent=0.03)
    assert quality.seconds + 0.13 <= 0.2
    assert 0 < quality.refreshes < plenty


def test_requests_grow_as_the_endpoint_shows_what_it_can_do() -> None:
    scene = Scene(Goals(latency=1.0), keys_per_request=100, seconds=0.1, workers=1)
    scene.tick()
    assert [len(request) for request in scene.remote.asked] == [1, 2, 4, 8, 1]


def test_an_answer_that_is_late_serves_the_next_tick() -> None:
    scene = Scene(Goals(latency=0.2), seconds=1.0)
    quality = scene.tick("ab")
    assert quality.seconds <= 0.2
    assert (quality.refreshes, quality.under_way) == (0, 2)
    assert scene.maintainer.view.rows(key("a")) == rows("a", 0)
    quality = scene.tick("ab")
    assert quality.late == 2
    assert scene.maintainer.view.rows(key("a")) == rows("a", 1)
    assert quality.seconds == 0.0, "an endpoint known to be slower than the goal is asked without waiting"


def test_what_is_under_way_is_not_asked_for_again() -> None:
    scene = Scene(Goals(latency=0.2), seconds=25.0)
    for _ in range(3):
        scene.tick("ab")
    assert sorted(scene.remote.keys_asked, key=str) == [key("a"), key("b")]


def test_requests_that_hang_leave_the_others_their_workers_and_never_stop_a_tick() -> None:
    scene = Scene(Goals(latency=0.2), seconds=1e6)
    qualities = [scene.tick() for _ in range(5)]
    assert all(quality.seconds <= 0.2 for quality in qualities)
    assert len(scene.remote.asked) == 4
    assert qualities[-1].under_way == 4


def test_a_failure_leaves_the_old_rows_and_marks_them() -> None:
    scene = Scene(Goals(budget=2))
    scene.remote.error = "503"
    quality = scene.tick("ab")
    assert (quality.refreshes, quality.failures) == (0, 2)
    assert scene.maintainer.view.rows(key("a")) == rows("a", 0)
    assert quality.suspects == 2
    assert quality.accuracy < 1.0


def test_a_dead_endpoint_is_asked_for_one_key_until_it_is_back() -> None:
    scene = Scene(Goals(budget=4))
    scene.remote.error = "connection refused"
    requests = []
    for tick in range(5):
        if tick == 3:
            scene.remote.error = None
        before = len(scene.remote.asked)
        quality = scene.tick()
        requests.append(len(scene.remote.asked) - before)
    assert requests == [4, 1, 1, 4, 4], "and the tick that finds it again uses its whole budget"
    assert quality.refreshes == 4


def test_a_remote_that_breaks_its_promise_does_not_break_the_query() -> None:
    scene = Scene(Goals(budget=2))
    scene.remote.raises = ValueError("garbage")
    assert scene.tick().failures == 2


def test_unknown_keys_come_first_those_that_serve_most_before_the_others() -> None:
    scene = Scene(Goals(budget=2), view_of("ab", unit=SLIDE))
    scene.clock.move_to(SLIDE)
    window = [
        WindowKey(key("a"), 9, 9),
        WindowKey(key("x"), 1, 1),
        WindowKey(key("y"), 2, 3),
        WindowKey(key("z"), 3, 1),
    ]
    quality = scene.maintainer.tick(window, SLIDE)
    assert scene.remote.keys_asked == [key("y"), key("z")]
    assert quality.missing == 1
    assert scene.maintainer.view.rows(key("y")) == rows("y", 1)


def test_mappings_of_one_key_are_one_request() -> None:
    scene = Scene(Goals())
    scene.clock.move_to(SLIDE)
    quality = scene.maintainer.tick([WindowKey(key("a"), 1, 2), WindowKey(key("a"), 4, 3)], SLIDE)
    assert scene.remote.asked == [[key("a")]]
    assert quality.rows == 5


def test_a_view_too_small_for_the_window_still_answers_it() -> None:
    scene = Scene(Goals(), view_of("", unit=SLIDE, capacity=3))
    assert scene.tick("abcdef").missing == 0
    assert all(scene.maintainer.view.rows(key(name)) for name in "abcdef")
    scene.tick("f")
    assert len(scene.maintainer.view) == 3


def test_accuracy_alone_is_reached_with_no_more_refreshes_than_it_takes() -> None:
    scene = Scene(Goals(accuracy=0.9), workers=1)
    for _ in range(3):
        scene.remote.value += 1
        scene.tick()
    quality = scene.tick()
    assert quality.accuracy >= 0.9
    assert 0 < quality.refreshes < len(NAMES)
    assert not scene.alerts


def test_where_both_cannot_hold_latency_does_and_an_alert_says_so(caplog: pytest.LogCaptureFixture) -> None:
    scene = Scene(Goals(accuracy=0.95, latency=0.2), seconds=0.15, workers=1)
    with caplog.at_level(logging.INFO):
        for value in range(2, 8):
            scene.remote.value = value
            quality = scene.tick()
            assert quality.seconds <= 0.2
    assert {alert.goal for alert in scene.alerts} == {Goal.ACCURACY}
    assert quality.alerts == (scene.alerts[-1],)
    assert quality.alerts[0].wanted == 0.95
    assert quality.alerts[0].reached == quality.accuracy < 0.95
    assert len([record for record in caplog.records if "gives way" in record.getMessage()]) == 1, (
        "logged when it begins"
    )


def test_the_log_tells_when_a_goal_is_met_again(caplog: pytest.LogCaptureFixture) -> None:
    scene = Scene(Goals(accuracy=0.95, budget=16))
    scene.remote.error = "500"
    with caplog.at_level(logging.INFO):
        scene.tick()
        scene.remote.error = None
        scene.tick()
    assert [record.levelname for record in caplog.records] == ["WARNING", "INFO"]
    assert "accuracy is met again" in caplog.records[-1].getMessage()


def test_where_accuracy_is_to_hold_latency_gives_way() -> None:
    scene = Scene(Goals(accuracy=0.8, latency=0.2, preferred=Goal.ACCURACY), seconds=0.15, workers=1)
    for value in range(2, 8):
        scene.remote.value = value
        quality = scene.tick("abcd")
    assert quality.accuracy >= 0.8
    assert quality.seconds > 0.2
    assert [alert.goal for alert in quality.alerts] == [Goal.LATENCY]


def test_accuracy_that_holds_is_given_up_where_the_endpoint_is_dead() -> None:
    scene = Scene(Goals(accuracy=0.95, latency=0.2, preferred=Goal.ACCURACY))
    scene.remote.error = "500"
    quality = scene.tick()
    assert [(alert.goal, alert.reason) for alert in quality.alerts] == [(Goal.ACCURACY, "the endpoint did not answer")]


def test_a_restart_fetches_nothing_again() -> None:
    scene = Scene(Goals(latency=0.5), seconds=0.1)
    scene.tick()
    scene.tick()
    view, latency = pack_state(scene.maintainer.view.state()), pack(scene.maintainer.latency.state())
    other = Scene(Goals(latency=0.5), view_of("", unit=SLIDE), seconds=0.1, ranker=NoRefresh())
    other.maintainer.view.restore(unpack_state(view))
    other.maintainer.latency.restore(unpack(latency))
    other.clock.move_to(scene.clock.now())
    assert other.tick().missing == 0
    assert other.remote.asked == []
    assert other.maintainer.latency.predict(1) == scene.maintainer.latency.predict(1)
    assert other.maintainer.view.rows(key("a")) == scene.maintainer.view.rows(key("a"))


def test_through_an_outage_ticks_keep_coming_and_the_view_recovers() -> None:
    """10 s late and dead for a minute, in the middle of a replay with errors."""
    clock = VirtualClock(0)
    log = counting_log(NAMES, {name: (3 + number) * SECOND for number, name in enumerate(NAMES)}, 400 * SECOND)
    outage = Outage(100 * SECOND, 160 * SECOND)
    remote = SimulatedRemote(log, clock, Behaviour(delay=0.02, errors=0.05, outages=(outage,), dead_delay=10.0), seed=4)
    view = view_of("", unit=SLIDE)
    maintainer = Maintainer(
        view,
        remote,
        WindowServiceJoin(),
        LeastRecentlyRefreshed(),
        Goals(latency=0.2),
        clock,
        VirtualRequestRunner(clock),
    )
    maintainer.fill()
    during, after = [], []
    for instant in range(SLIDE, 300 * SECOND, SLIDE):
        clock.move_to(instant)
        quality = maintainer.tick([WindowKey(key(name)) for name in NAMES], SLIDE)
        assert quality.seconds <= 0.2
        assert clock.now() < instant + SLIDE
        if outage.begin + SLIDE <= instant < outage.end:
            during.append(quality)
        elif instant >= outage.end + 6 * SLIDE:
            after.append(quality)
    assert all(quality.accuracy < 0.8 and quality.suspects > 0 for quality in during[1:])
    assert all(quality.refreshes >= len(NAMES) - 3 and quality.accuracy > 0.8 for quality in after)


def test_threads_keep_a_real_deadline_and_take_up_what_comes_late() -> None:
    clock = SystemClock()
    remote = SimulatedRemote(counting_log("ab", {}, 0), clock, Behaviour(delay=0.6), pause=time.sleep)
    view = view_of("ab", now=clock.now(), unit=SECOND)
    maintainer = Maintainer(
        view,
        remote,
        WindowServiceJoin(),
        LeastRecentlyRefreshed(),
        Goals(latency=0.1),
        clock,
        ThreadRequestRunner(clock, 2),
    )
    window = [WindowKey(key("a")), WindowKey(key("b"))]
    first = maintainer.tick(window, SECOND)
    assert first.seconds < 0.5
    assert first.refreshes == 0
    time.sleep(0.8)
    assert maintainer.tick(window, SECOND).late > 0
    maintainer.close()
