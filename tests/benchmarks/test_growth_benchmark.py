"""The growth benchmark finds the exponents that are there, and the model of the pipeline what it was made from."""

from __future__ import annotations

import json

import pytest

from benchmarks.growth_points import Axis, GrowthPoint, fit_exponent
from benchmarks.growth_shards import PipelineRun
from benchmarks.growth_windows import SlidingCase, aggregate_text, chain_text, star_text
from benchmarks.scaling_model import (
    READ_SHARE,
    Cluster,
    CostModel,
    find_speed,
    fit_model,
    simulate_batches,
    simulated_seconds,
    throughput,
)

MODEL = CostModel(plan=0.1, shard=0.02, read=1e-6, shuffle=2e-7, evaluate=1e-6, deliver=5e-6, rows=0.001)


@pytest.mark.parametrize("exponent", [0.0, 0.5, 1.0, 2.0])
def test_the_exponent_of_a_power_is_found(exponent: float) -> None:
    assert fit_exponent([(10.0**n, 3.0 * 10.0 ** (n * exponent)) for n in range(1, 6)]) == pytest.approx(exponent)


def test_one_size_has_no_exponent() -> None:
    assert fit_exponent([(10.0, 1.0), (10.0, 2.0)]) == 0.0


def test_an_axis_says_whether_its_worst_workload_is_within_the_limit() -> None:
    flat = [GrowthPoint(size, 0.001, 5.0) for size in (1.0, 10.0)]
    steep = [GrowthPoint(1.0, 0.001, 1.0), GrowthPoint(10.0, 0.01, 100.0)]
    axis = Axis("a", "things", "a slide", {"flat": flat, "steep": steep}, 0.5)
    found = axis.to_plain()
    assert (found["exponent"], found["is_within"]) == (1.0, False)
    assert found["memory_exponents"] == pytest.approx({"flat": 0.0, "steep": 2.0})
    assert json.loads(json.dumps(found)) == found
    assert set(axis.figure.lines) == {"flat: ms, exponent 0.00", "flat: MB", "steep: ms, exponent 1.00", "steep: MB"}


@pytest.mark.parametrize(
    "case",
    [
        SlidingCase(200, aggregate_text(2), 2, 100, "readings", (10,), 2),
        SlidingCase(200, chain_text(2, 3), 2, 99, "links", (3, 20), 1),
        SlidingCase(200, star_text(2, 3), 2, 99, "stars", (3,), 3),
    ],
)
def test_each_workload_has_answers(case: SlidingCase) -> None:
    point = case.measure(2)
    assert point.seconds > 0 and point.more["rows"] > 0 and point.more["state_mb"] > 0


def run_of(shards: int, batches: int, triples: int = 1_000_000) -> PipelineRun:
    """A run that takes what the model says, on two cores of half speed."""
    rows = int(triples * MODEL.rows)
    shuffled = MODEL.shuffle * triples * (shards > 1)
    processor = {
        "workers": triples * MODEL.evaluate / (1 - READ_SHARE) + shuffled + batches * shards * 0.015,
        "java": batches * 0.06 + batches * shards * 0.005,
        "driver": batches * 0.04 + rows * MODEL.deliver,
    }
    return PipelineRun(shards, batches, triples, rows, 1.0, processor, {}, 0.0)


def test_the_fit_finds_the_parameters_of_what_was_run() -> None:
    found = fit_model([run_of(s, b, t) for s in (1, 2) for b in (5, 20) for t in (500_000, 1_000_000)])
    assert found.plan == pytest.approx(0.1)
    assert found.shard == pytest.approx(0.02)
    assert found.evaluate == pytest.approx(1e-6)
    assert found.shuffle == pytest.approx(2e-7, rel=1e-3)
    assert found.deliver == pytest.approx(5e-6)


def test_the_speed_is_the_one_that_gives_the_seconds_of_the_run() -> None:
    run = run_of(1, 5)
    speed = find_speed(MODEL, run, 2)
    assert simulated_seconds(MODEL, run, Cluster(2, 1, speed)) == pytest.approx(run.seconds)


def test_on_one_core_the_steps_are_their_work() -> None:
    spent = simulate_batches(MODEL, Cluster(1, 1), 1_000_000, 2)
    assert spent == pytest.approx({"plan": 0.2, "read": 2.0, "evaluate": 2.04, "deliver": 0.01})


def test_more_shards_than_cores_wait_for_each_other() -> None:
    assert simulate_batches(MODEL, Cluster(2, 3), 300_000, 1)["evaluate"] == pytest.approx(2 * 0.12)


def test_half_of_the_stream_in_one_shard_is_twice_the_speed_at_most() -> None:
    one, many = Cluster(1, 1), Cluster(100, 100, largest=0.5)
    assert simulate_batches(MODEL, many, 10**6, 1)["evaluate"] >= simulate_batches(MODEL, one, 10**6, 1)["evaluate"] / 2
    assert throughput(MODEL, Cluster(100, 100), 10**7) > 3 * throughput(MODEL, many, 10**7)
