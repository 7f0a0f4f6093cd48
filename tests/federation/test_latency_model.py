"""The prediction of latencies: lines, margins, careful growth, and what failures say."""

from __future__ import annotations

import random

import pytest

from headwater.federation.policy.latency_model import MEMORY, LatencyModel


def taught(*taken: tuple[int, float]) -> LatencyModel:
    model = LatencyModel()
    for keys, seconds in taken:
        model.observe(keys, seconds)
    return model


def test_before_the_first_request_nothing_is_predicted_and_one_key_is_tried() -> None:
    model = LatencyModel()
    assert model.predict(1) is None
    assert model.largest_request(0.1, 100) == 1
    assert model.largest_request(0.0, 100) == 0


def test_it_fits_a_start_and_a_cost_per_key() -> None:
    model = taught(*[(keys, 0.010 + 0.002 * keys) for keys in (1, 2, 4, 8, 16)])
    assert model.predict(1) == pytest.approx(0.012)
    assert model.predict(32) == pytest.approx(0.074)
    assert model.largest_request(0.0505, 100) == 20
    assert model.largest_request(0.0505, 5) == 5
    assert model.largest_request(0.011, 100) == 0


def test_sizes_grow_no_faster_than_twofold() -> None:
    model = taught((1, 0.001), (2, 0.001), (4, 0.001))
    assert model.largest_request(10.0, 1000) == 8


def test_the_prediction_covers_most_of_the_slower_ones() -> None:
    chance = random.Random(1)
    model = LatencyModel(memory=400)
    for _ in range(400):
        model.observe(1, 0.02 + chance.uniform(0.0, 0.02))
    predicted = model.predict(1)
    assert predicted is not None
    assert 0.036 < predicted < 0.04


def test_it_forgets_what_is_long_ago() -> None:
    model = taught(*[(1, 5.0)] * MEMORY, *[(1, 0.01)] * (MEMORY - 1))
    assert model.largest_request(0.2, 10) > 0, "a single slow one among many does not matter either"
    assert taught(*[(1, 0.01)] * MEMORY, *[(1, 5.0)] * MEMORY).largest_request(0.2, 10) == 0


def test_a_steep_line_does_not_start_below_nothing() -> None:
    model = taught((1, 0.001), (10, 0.2), (10, 0.2))
    assert (model.predict(1) or 0) > 0
    assert model.largest_request(1e-6, 10) == 0


def test_a_fast_failure_is_no_fast_answer_but_a_slow_one_counts() -> None:
    model = taught((1, 0.05), (1, 0.05))
    model.observe_failure(1, 0.0001)
    assert model.predict(1) == pytest.approx(0.05)
    model.observe_failure(1, 10.0)
    assert (model.predict(1) or 0) > 1.0


def test_its_state_survives_a_restart() -> None:
    model = taught((1, 0.02), (4, 0.05))
    other = LatencyModel()
    other.restore(model.state())
    assert other.predict(3) == model.predict(3)
