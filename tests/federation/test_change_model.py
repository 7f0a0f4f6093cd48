"""The change model: against its own differential equation, and against change processes of known rates."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.federation.view.change_model import FITTED_ENTRIES, ChangeModel, Floats
from headwater.terms.model import SECOND
from headwater.terms.packing import pack, unpack
from tests.federation.small_world import key

STEPS = 4000


def survival_by_small_steps(model: ChangeModel, weights: Floats, elapsed: float) -> Floats:
    """exp(A d) w, by so many short steps of dw/dt = −(λ + h) w + h p Σw."""
    step = elapsed / STEPS
    for _ in range(STEPS):
        middle = weights + step / 2 * _slope(model, weights)
        weights = weights + step * _slope(model, middle)
    return weights


def _slope(model: ChangeModel, weights: Floats) -> Floats:
    return np.asarray(-(model.rates + model.switching) * weights + model.switching * model.population * weights.sum())


def taught(model: ChangeModel, observations: list[tuple[float, bool]], name: str = "a") -> Floats | None:
    belief = None
    for elapsed, changed in observations:
        model.refit_population()
        belief = model.update_belief(key(name), belief, elapsed, changed)
    model.refit_population()
    return belief


OBSERVATIONS = st.lists(st.tuples(st.floats(0.1, 30.0), st.booleans()), max_size=8)


@settings(max_examples=15)
@given(OBSERVATIONS, st.floats(0.05, 20.0))
def test_the_probability_follows_the_equation(observations: list[tuple[float, bool]], elapsed: float) -> None:
    model = ChangeModel(SECOND)
    belief = taught(model, observations)
    weights = model.population if belief is None else model.population * belief / (model.population @ belief)
    expected = survival_by_small_steps(model, weights, elapsed).sum()
    assert model.probability_unchanged([belief], np.array([elapsed]))[0] == pytest.approx(expected, abs=1e-4)


@given(OBSERVATIONS)
def test_the_chance_to_be_unchanged_starts_at_one_and_falls(observations: list[tuple[float, bool]]) -> None:
    model = ChangeModel(SECOND)
    belief = taught(model, observations)
    chances = model.probability_unchanged([belief] * 6, np.array([0.0, 0.1, 1.0, 5.0, 30.0, 200.0]))
    assert chances[0] == pytest.approx(1.0)
    assert all(earlier > later for earlier, later in itertools.pairwise(chances))


@given(OBSERVATIONS, st.floats(0.1, 30.0))
def test_the_two_findings_together_are_what_was_believed_before(
    observations: list[tuple[float, bool]], elapsed: float
) -> None:
    """Bayes: the beliefs after a change and after none, weighted by their chances, average to the prediction."""
    model = ChangeModel(SECOND)
    belief = taught(model, observations)
    before = model.population if belief is None else model.population * belief / (model.population @ belief)
    quiet = model.probability_unchanged([belief], np.array([elapsed]))[0]
    population = model.population
    unchanged = model.update_belief(key("x"), belief, elapsed, has_changed=False) * population
    changed = model.update_belief(key("x"), belief, elapsed, has_changed=True) * population
    stayed = np.exp(-model.switching * elapsed)
    predicted = stayed * before + (1 - stayed) * population
    np.testing.assert_allclose(quiet * unchanged + (1 - quiet) * changed, predicted, atol=1e-9)


@pytest.mark.parametrize("per_second", [0.02, 0.1, 0.6])
def test_it_finds_the_rate_of_an_entry(per_second: float) -> None:
    chance, model = random.Random(3), ChangeModel(SECOND, switching=0.001)
    observations = []
    for _ in range(400):
        elapsed = chance.uniform(0.5, 6.0)
        observations.append((elapsed, chance.random() < 1 - np.exp(-per_second * elapsed)))
    assert model.rate(taught(model, observations)) == pytest.approx(per_second, rel=0.45)


def test_it_notices_that_a_burst_began_and_that_it_ended() -> None:
    model = ChangeModel(SECOND)
    quiet = [(2.0, False)] * 40
    before = model.rate(taught(model, quiet))
    within = model.rate(taught(model, [*quiet, *[(1.0, True)] * 4]))
    after = model.rate(taught(model, [*quiet, *[(1.0, True)] * 4, *[(2.0, False)] * 8]))
    assert within > 5 * before
    assert after < within / 3


def test_an_entry_without_refreshes_is_taken_to_be_like_the_others() -> None:
    fast, slow = ChangeModel(SECOND), ChangeModel(SECOND)
    for number in range(30):
        taught(fast, [(1.0, True)] * 5, f"e{number}")
        taught(slow, [(10.0, False)] * 5, f"e{number}")
    assert fast.rate(None) > 20 * slow.rate(None)


def test_one_finding_moves_an_entry_less_the_more_alike_the_others_are() -> None:
    """Shrinkage: among many slow entries a single change does not make a fast one."""
    alone, among_slow = ChangeModel(SECOND), ChangeModel(SECOND)
    for number in range(60):
        taught(among_slow, [(10.0, False), (10.0, True), (10.0, False)] * 3, f"e{number}")
    assert among_slow.rate(taught(among_slow, [(2.0, True)])) < alone.rate(taught(alone, [(2.0, True)])) / 3


def test_the_population_follows_the_entries_that_were_refreshed_last() -> None:
    model = ChangeModel(SECOND)
    for number in range(FITTED_ENTRIES + 50):
        model.update_belief(key(f"slow{number}"), None, 20.0, has_changed=False)
    model.refit_population()
    slow = model.rate(None)
    for _ in range(3):
        for number in range(FITTED_ENTRIES):
            model.update_belief(key(f"fast{number}"), None, 0.5, has_changed=True)
        model.refit_population()
    assert model.rate(None) > 50 * slow


def test_a_clock_that_goes_back_makes_no_time() -> None:
    assert ChangeModel(SECOND).elapsed(since=5 * SECOND, now=3 * SECOND) == 0.0


def test_its_state_survives_a_restart() -> None:
    model = ChangeModel(SECOND)
    belief = taught(model, [(1.0, True), (3.0, False), (2.0, True)])
    other = ChangeModel(2 * SECOND)
    other.restore(unpack(pack(model.state())))
    elapsed = np.array([4.0, 4.0])
    for each in (model, other):
        each.update_belief(key("b"), None, 5.0, has_changed=False)
        each.refit_population()
    np.testing.assert_allclose(
        other.probability_unchanged([belief, None], elapsed), model.probability_unchanged([belief, None], elapsed)
    )


def test_a_unit_must_take_time() -> None:
    with pytest.raises(ValueError, match="longer than nothing"):
        ChangeModel(0)
