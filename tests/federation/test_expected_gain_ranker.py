"""The learnt ranker: its closed form against sums and integrals written out, and the order it gives."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.federation.policy.candidates import Candidate, Tick
from headwater.federation.policy.expected_gain_ranker import ExpectedGainRanker
from headwater.federation.view.change_model import ChangeModel
from headwater.federation.view.local_view import Entry, LocalView
from headwater.terms.model import SECOND
from tests.federation.small_world import key, rows, view_of


def entry_seen(view: LocalView, name: str, findings: list[bool], every: int = SECOND) -> Entry:
    """An entry that was refreshed at regular intervals, up to a common instant, and changed or not."""
    begin = 100 * SECOND - len(findings) * every
    view.store(key(name), rows(name, 0), begin)
    value = 0
    for number, changed in enumerate(findings, 1):
        value += changed
        view.store(key(name), rows(name, value), begin + number * every)
    entry = view.get(key(name))
    assert entry is not None
    return entry


def gain_written_out(model: ChangeModel, candidate: Candidate, tick: Tick) -> float:
    """now + later of the module's docstring, tick by tick and by the trapezoidal rule."""
    belief = candidate.entry.belief
    elapsed, beta = model.elapsed(candidate.entry.refreshed_at, tick.now), tick.slide / model.unit

    def unchanged(duration: float, of: object = belief) -> float:
        return float(model.probability_unchanged([belief if of is belief else None], np.array([duration]))[0])

    stayed = np.exp(-model.switching * elapsed)
    now = sum(
        stayed * unchanged(k * beta) + (1 - stayed) * unchanged(k * beta, None) - unchanged(elapsed + k * beta)
        for k in range(candidate.ticks)
    )
    shift = candidate.ticks * beta
    durations = np.linspace(0.0, elapsed, 2001)
    survivals = model.probability_unchanged([belief] * len(durations), shift + durations)
    area = float(np.sum((survivals[1:] + survivals[:-1]) / 2 * np.diff(durations)))
    later = (1 - tick.refreshed_share) * candidate.presence * (area - elapsed * unchanged(shift + elapsed)) / beta
    return float((now + later) * candidate.answer_rows * candidate.entry.extent)


@settings(max_examples=30)
@given(
    findings=st.lists(st.booleans(), max_size=6),
    ticks=st.integers(0, 7),
    served=st.integers(1, 4),
    presence=st.floats(0.0, 1.0),
    age=st.integers(0, 50),
    slide=st.integers(1, 9),
    share=st.floats(0.0, 1.0),
)
def test_the_closed_form_is_the_sum(
    findings: list[bool], ticks: int, served: int, presence: float, age: int, slide: int, share: float
) -> None:
    view = view_of("", unit=3 * SECOND)
    entry_seen(view, "other", [True, False, True])
    entry = entry_seen(view, "a", findings)
    view.model.refit_population()
    candidate = Candidate(entry, ticks, served, presence)
    tick = Tick(100 * SECOND + age * SECOND, slide * SECOND, share)
    gain = ExpectedGainRanker(view.model).estimate_gains([candidate], tick)[0]
    assert gain == pytest.approx(gain_written_out(view.model, candidate, tick), abs=1e-4)


TICK = Tick(now=104 * SECOND, slide=2 * SECOND)


def order(candidates: list[Candidate], model: ChangeModel) -> list[str]:
    return [str(ranked.entry.key[0])[-2] for ranked in ExpectedGainRanker(model).rank(candidates, TICK)]


def test_what_keeps_its_value_for_the_ticks_to_come_goes_before_what_does_not() -> None:
    """a changes all the time, b now and then, c never: a refresh of b serves longest."""
    view = view_of("")
    findings = {"a": [True] * 12, "b": [False, False, True] * 4, "c": [False] * 12}
    entries = [entry_seen(view, name, found, 2 * SECOND) for name, found in findings.items()]
    for _ in range(3):
        view.model.refit_population()
    assert order([Candidate(entry, ticks=8) for entry in entries], view.model)[0] == "b"
    only_now = order([Candidate(entry, ticks=1) for entry in entries], view.model)
    assert only_now == ["a", "b", "c"], "for the present tick alone, what is most likely stale"


def test_what_was_refreshed_just_now_is_left_out() -> None:
    view = view_of("")
    entry = entry_seen(view, "a", [True, True])
    assert ExpectedGainRanker(view.model).rank([Candidate(entry, 3)], Tick(100 * SECOND, SECOND)) == []


def test_more_ticks_rows_and_presence_make_more_gain() -> None:
    view = view_of("ab")
    entry = next(iter(view))
    candidates = [
        Candidate(entry, ticks=2),
        Candidate(entry, ticks=5),
        Candidate(entry, ticks=2, rows=3),
        Candidate(entry, ticks=2, presence=0.5),
    ]
    base, longer, more, again = ExpectedGainRanker(view.model).estimate_gains(candidates, TICK)
    assert longer > base
    assert more == pytest.approx(3 * base)
    assert again > base


def test_a_change_that_touches_few_rows_counts_less() -> None:
    view = view_of("")
    view.store(key("l"), rows("l", *range(20)), 0)
    view.store(key("l"), rows("l", *range(19), 99), SECOND)
    view.store(key("s"), rows("s", 0), 0)
    view.store(key("s"), rows("s", 1), SECOND)
    view.model.refit_population()
    of_list, of_one = ExpectedGainRanker(view.model).estimate_gains([Candidate(entry, 2) for entry in view], TICK)
    assert of_list == pytest.approx(of_one, rel=1e-6), "one row of twenty is one row"


def test_nothing_to_rank_is_nothing() -> None:
    assert ExpectedGainRanker(ChangeModel(SECOND)).rank([], TICK) == []


def test_a_window_of_very_many_ticks_is_no_trouble() -> None:
    view = view_of("a")
    gains = ExpectedGainRanker(view.model).estimate_gains([Candidate(next(iter(view)), ticks=10**9)], TICK)
    assert np.isfinite(gains).all()
    assert gains[0] > 0


def test_the_best_before_time_is_the_expected_change() -> None:
    view = view_of("")
    fast, slow = entry_seen(view, "f", [True] * 6), entry_seen(view, "s", [False] * 6)
    view.model.refit_population()
    ranker = ExpectedGainRanker(view.model)
    assert TICK.now < ranker.best_before(fast, TICK.now) < ranker.best_before(slow, TICK.now)
