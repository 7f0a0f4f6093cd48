"""What answers say of themselves when the remote changes, with goals and policies; what a restart remembers."""

from __future__ import annotations

from collections.abc import Callable
from statistics import fmean

import pytest

from benchmarks.simulated_remote import Behaviour, SimulatedChanges, SimulatedRemote
from benchmarks.virtual_time import VirtualClock, VirtualRequestRunner
from headwater.execution.answers import Answer
from headwater.federation.services import Services
from headwater.terms.model import SECOND
from tests.federation.service_runs import Run, heartbeat, mention, shown
from tests.federation.small_world import ScriptedRemote, counting_log, key

PEOPLE = "abcdefghijkl"
EVERY = {name: (2 + 3 * number) * SECOND for number, name in enumerate(PEOPLE)}
TICKS = 60


def query(options: str, window: str = "RANGE 6s STEP 1s") -> str:
    return f"""SELECT ?who ?n FROM STREAM :mentions [{window}] WHERE {{
                 ?who :mentionedIn ?p . SERVICE <http://example.org/sparql> {{ ?who :followers ?n }} {options} }}"""


class World:
    """A query over a simulated remote, tick by tick on one clock."""

    def __init__(self, options: str, behaviour: Behaviour | None = None, window: str = "RANGE 6s STEP 1s") -> None:
        self.clock = VirtualClock(0)
        self.log: SimulatedChanges = counting_log(PEOPLE, EVERY, (TICKS + 5) * SECOND)
        self.remote = SimulatedRemote(self.log, self.clock, behaviour, name="http://example.org/sparql")
        services = Services(
            clock=self.clock, runner=lambda: VirtualRequestRunner(self.clock), remote=lambda node, keys: self.remote
        )
        self.run = Run(query(options, window), services)

    def ticks(self) -> list[Answer]:
        found: list[Answer] = []
        for second in range(TICKS):
            self.clock.move_to(second * SECOND)
            people = [mention(second + 0.5, PEOPLE[(second * step) % len(PEOPLE)]) for step in (1, 5, 7)]
            found += self.run.feed([*people, heartbeat(second + 0.9)])
        return found

    def accuracy(self, answers: list[Answer]) -> float:
        """The share of rows that the remote would have given at the tick."""
        shares = []
        for answer in answers:
            if answer.rows:
                right = [(row[0], row[1]) in self.log.rows_at((row[0],), answer.time) for row in answer.rows]
                shares.append(fmean(right))
        return fmean(shares)


@pytest.mark.parametrize("policy", ["LEARNT", "WBM", "LRU", "RND", "GNR-LRU", "WST"])
def test_each_policy_keeps_its_budget_and_says_how_right_it_is(policy: str) -> None:
    world = World(f"OPTION (POLICY {policy}, BUDGET 2)")
    answers = world.ticks()
    qualities = [answer.quality for answer in answers if answer.quality is not None]
    assert len(qualities) == len(answers) > 50
    assert all(quality.refreshes <= 2 for quality in qualities)
    known = [
        (answer, answer.quality) for answer in answers if answer.quality is not None and not answer.quality.missing
    ]
    settled = known[20:]
    said = fmean(quality.accuracy for _, quality in settled)
    true = world.accuracy([answer for answer, _ in settled])
    assert 0.0 < said < 1.0
    if policy != "WST":
        # Without refreshes nothing is learnt. WBM looks where it expects changes, which biases what it finds.
        assert abs(said - true) < (0.2 if policy == "WBM" else 0.1), (said, true)


def test_more_budget_is_more_accuracy_and_the_nested_loop_is_right() -> None:
    accuracies = []
    for options in ("OPTION (BUDGET 1)", "OPTION (BUDGET 4)", "", "OPTION (STRATEGY HASH)"):
        world = World(options)
        accuracies.append(world.accuracy(world.ticks()[10:]))
    assert accuracies[0] + 0.1 < accuracies[1] < 1.0
    assert accuracies[2:] == [1.0, 1.0]


def test_an_accuracy_that_cannot_be_had_in_time_gives_way_with_an_alert(caplog: pytest.LogCaptureFixture) -> None:
    slow = Behaviour(delay=0.08)
    world = World("OPTION (ACCURACY 0.99, LATENCY 200ms)", slow)
    answers = world.ticks()
    alerts = [alert for answer in answers if answer.quality for alert in answer.quality.alerts]
    assert {alert.gives_way for alert in alerts} == {"accuracy"}
    assert all(alert.wanted == 0.99 and alert.reached < 0.99 for alert in alerts)
    assert alerts[0].endpoint == "http://example.org/sparql"
    assert all(answer.quality and answer.quality.seconds <= 0.2 for answer in answers)
    warnings = [record for record in caplog.records if record.levelname == "WARNING"]
    assert 1 <= len(warnings) < len(alerts) / 2, "an alert is logged when it begins, not at each tick"


def test_accuracy_holds_if_it_is_preferred() -> None:
    world = World("OPTION (ACCURACY 0.9, LATENCY 200ms, PREFER ACCURACY)", Behaviour(delay=0.25))
    answers = world.ticks()
    assert all(answer.quality and answer.quality.accuracy >= 0.9 for answer in answers[10:])
    assert any(alert.gives_way == "latency" for answer in answers if answer.quality for alert in answer.quality.alerts)


def scripted(
    options: str, window: str = "RANGE 4s STEP 2s", emit: str = ""
) -> tuple[Callable[[], Run], ScriptedRemote]:
    clock = VirtualClock(0)
    remote = ScriptedRemote(clock)

    def make() -> Run:
        services = Services(clock=clock, runner=lambda: VirtualRequestRunner(clock), remote=lambda node, keys: remote)
        return Run(query(options, window), services)

    return make, remote


@pytest.mark.parametrize("options", ["OPTION (POLICY WST)", "OPTION (POLICY LRU, BUDGET 3)", ""])
def test_a_restart_fetches_nothing_that_is_known(options: str) -> None:
    make, remote = scripted(options)
    first = make()
    first.feed([mention(1, "a"), mention(1.5, "b"), mention(3, "c"), heartbeat(4.5)])
    asked = len(remote.keys_asked)
    assert {key(name) for name in "abc"} <= set(remote.keys_asked)
    saved = first.program.snapshot()
    again = make()
    again.program.restore(saved)
    assert len(remote.keys_asked) == asked, "restoring asks nobody"
    rates = {entry.key: entry.belief is None for entry in again.maintained.maintainer.view}
    assert rates == {entry.key: entry.belief is None for entry in first.maintained.maintainer.view}
    expected, found = (run.feed([heartbeat(6.5)]) for run in (first, again))
    assert found == expected
    if "WST" in options:
        assert len(remote.keys_asked) == asked
    assert shown(found)[0][-1] == ("c", "1")


def test_learnt_rates_outlive_a_restart() -> None:
    make, remote = scripted("OPTION (POLICY LRU)", "RANGE 20s STEP 1s")
    run = make()
    for second in range(1, 12):
        remote.value = second
        run.feed([mention(second + 0.1, "a"), heartbeat(second + 0.5)])
    entry = run.maintained.maintainer.view.get(key("a"))
    saved = run.program.snapshot()
    saved = run.program.snapshot()
    again = make()
    again.program.restore(saved)
    restored = again.maintained.maintainer.view.get(key("a"))
    assert entry is not None
    assert restored is not None
    assert restored.refreshes == entry.refreshes > 5
    assert again.maintained.maintainer.view.change_rate(restored) == pytest.approx(
        run.maintained.maintainer.view.change_rate(entry)
    )


@pytest.mark.parametrize("options", ["OPTION (BUDGET 1, POLICY LRU)", ""])
def test_a_refresh_changes_the_answer_although_the_window_did_not(options: str) -> None:
    make, remote = scripted(options, "RANGE 60s STEP 1s")
    run = make()
    run.feed([mention(1, "a"), mention(1, "a", "other"), heartbeat(2.5)])
    remote.value = 7
    (answer,) = run.feed([heartbeat(3.5)])
    assert shown([answer]) == [[("a", "7"), ("a", "7")]]


def test_what_leaves_the_window_leaves_the_answer_and_comes_back_from_the_view() -> None:
    make, remote = scripted("OPTION (POLICY WST)", "RANGE 2s STEP 2s")
    run = make()
    answers = run.all([mention(1, "a"), mention(3, "b"), mention(5, "a"), heartbeat(8)])
    assert shown(answers)[:3] == [[("a", "1")], [("b", "1")], [("a", "1")]]
    assert remote.keys_asked == [key("a"), key("b")]


def test_a_bounded_view_forgets_and_asks_again() -> None:
    make, remote = scripted("OPTION (POLICY WST, ENTRIES 1)", "RANGE 2s STEP 2s")
    make().all([mention(1, "a"), mention(3, "b"), mention(5, "c"), mention(7, "a"), heartbeat(8.5)])
    assert remote.keys_asked == [key("a"), key("b"), key("c"), key("a")]


def test_a_filled_view_is_complete_before_the_first_answer_and_filled_once() -> None:
    world = World("OPTION (FILL, POLICY WST)")
    world.run.feed([mention(0.5, "a"), mention(0.6, "nobody"), heartbeat(1.5)])
    assert world.remote.requests == 1
    view = world.run.maintained.maintainer.view
    assert len(view) == len(PEOPLE) + 1
    saved = world.run.program.snapshot()
    again = World("OPTION (FILL, POLICY WST)")
    again.run.program.restore(saved)
    (answer,) = again.run.feed([mention(1.6, "l"), heartbeat(2.5)])
    assert shown([answer]) == [[("a", "0"), ("l", "0")]]
    assert again.remote.requests == 0
