"""WBM: the worked example of the paper's figure 2, and its rules one by one."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.virtual_time import VirtualClock, VirtualRequestRunner
from headwater.federation.policy.best_before import FOR_EVER, WindowBasedMaintenance, renew_best_before, ticks_until
from headwater.federation.policy.candidates import Candidate, Tick
from headwater.federation.policy.maintainer import Maintainer
from headwater.federation.policy.proposers import WindowServiceJoin
from headwater.federation.view.lifetime import WindowKey, remaining_ticks
from headwater.federation.view.service_quality import Goals
from tests.federation.small_world import ScriptedRemote, key, rows, view_of

NOW, SLIDE, WIDTH = 8, 1, 5
ENTERED = {"a": 4, "b": 5, "c": 6, "d": 6}


def figure_2(d_best_before: int = 7) -> tuple[Maintainer, ScriptedRemote]:
    """The local view of figure 2 at time 8: a to f, of which the window has a to d. γ is 1, β is 1."""
    best_before = {"a": 7, "b": 9, "c": 6, "d": d_best_before, "e": 5, "f": 8}
    interval = {"a": 5, "b": 5, "c": 5, "d": 9 - d_best_before, "e": 5, "f": 5}
    clock = VirtualClock(0)
    view = view_of("", unit=SLIDE)
    remote = ScriptedRemote(clock)
    wbm = WindowBasedMaintenance(lambda entry: interval[entry.key[0].value[-1]])  # type: ignore[union-attr]
    maintainer = Maintainer(view, remote, WindowServiceJoin(), wbm, Goals(budget=1), clock, VirtualRequestRunner(clock))
    maintainer.tick([], SLIDE)
    for name, instant in best_before.items():
        view.store(key(name), rows(name, 0), 0, instant)
    clock.move_to(NOW)
    return maintainer, remote


def window() -> list[WindowKey]:
    return [WindowKey(key(name), remaining_ticks(at, WIDTH, SLIDE, NOW)) for name, at in ENTERED.items()]


@pytest.mark.parametrize("d_best_before", [6, 7, 8])
def test_the_scores_of_figure_2(d_best_before: int) -> None:
    maintainer, _ = figure_2(d_best_before)
    wbm = maintainer.ranker
    assert isinstance(wbm, WindowBasedMaintenance)
    candidates = maintainer.proposer.propose(maintainer.view, {mapping.key: mapping for mapping in window()})
    assert [candidate.entry.key for candidate in candidates] == [key(name) for name in "abcd"]
    tick = Tick(NOW, SLIDE)
    stale = wbm.select_possibly_stale(candidates, tick)
    assert [candidate.entry.key for candidate in stale] == [key(name) for name in "acd"]
    assert [candidate.ticks for candidate in stale] == [1, 3, 3]
    assert [wbm.best_before(candidate.entry, NOW) for candidate in stale] == [12, 11, 9]
    assert [wbm.ticks_valid(candidate, tick) for candidate in stale] == [4, 3, 1]
    assert [wbm.score(candidate, tick) for candidate in stale] == [1, 3, 1]


@pytest.mark.parametrize("d_best_before", [6, 7, 8])
def test_c_is_elected_and_good_until_11(d_best_before: int) -> None:
    maintainer, remote = figure_2(d_best_before)
    maintainer.tick(window(), SLIDE)
    assert remote.asked == [[key("c")]]
    entry = maintainer.view.get(key("c"))
    assert entry is not None
    assert entry.best_before == 11
    assert entry.rows == rows("c", 1)
    unchanged = {name: maintainer.view.get(key(name)) for name in "abdef"}
    assert {name: entry and entry.best_before for name, entry in unchanged.items()} == {
        "a": 7,
        "b": 9,
        "d": d_best_before,
        "e": 5,
        "f": 8,
    }


@given(st.integers(-100, 100), st.integers(1, 50), st.integers(-100, 300))
def test_the_renewed_time_is_the_first_in_step_that_is_still_to_come(before: int, interval: int, now: int) -> None:
    renewed = renew_best_before(before, interval, now)
    assert renewed > max(before, now)
    assert (renewed - before) % interval == 0
    assert renewed - interval <= max(before, now)


def test_what_never_changes_is_good_for_ever() -> None:
    assert renew_best_before(3, math.inf, 8) == FOR_EVER


def ranked(candidates: list[Candidate], intervals: dict[str, float], seed: int = 0) -> list[str]:
    wbm = WindowBasedMaintenance(lambda entry: intervals[entry.key[0].value[-1]], seed)  # type: ignore[union-attr]
    return [candidate.entry.key[0].value[-1] for candidate in wbm.rank(candidates, Tick(10, 1))]  # type: ignore[union-attr]


def test_in_a_tumbling_window_v_alone_decides() -> None:
    candidates = [Candidate(entry, ticks=1) for entry in view_of("abc", now=10)]
    assert ranked(candidates, {"a": 2, "b": 9, "c": 5}) == ["b", "c", "a"]


def test_an_entry_counts_for_each_row_of_the_window_that_it_serves() -> None:
    view = view_of("abc", now=10)
    candidates = [Candidate(entry, ticks=2, rows=count) for entry, count in zip(view, (1, 5, 2), strict=True)]
    assert ranked(candidates, dict.fromkeys("abc", 9)) == ["b", "c", "a"]


def test_equal_scores_are_ordered_by_chance() -> None:
    candidates = [Candidate(entry, ticks=2) for entry in view_of("abcdef", now=10)]
    firsts = {ranked(candidates, dict.fromkeys("abcdef", 9), seed)[0] for seed in range(40)}
    assert firsts == set("abcdef")


def test_ticks_until_rounds_up() -> None:
    chance = random.Random(1)
    for _ in range(200):
        instant, now, slide = chance.randint(-99, 99), chance.randint(-99, 99), chance.randint(1, 20)
        assert ticks_until(instant, Tick(now, slide)) == math.ceil((instant - now) / slide)
