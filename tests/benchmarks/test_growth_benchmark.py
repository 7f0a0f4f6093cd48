"""The growth benchmark finds the exponents that are there, and the model of the pipeline what it was made from."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from benchmarks.growth_points import Axis, GrowthPoint, fit_exponent
from benchmarks.growth_shards import PipelineRun
from benchmarks.growth_windows import SlidingCase, aggregate_text, chain_text, star_text
from benchmarks.scaling_model import (
    Cluster,
    CostModel,
    WorkloadCost,
    describe_model,
    find_speed,
    fit_model,
    simulate_batches,
    simulated_seconds,
    throughput,
)
from benchmarks.scaling_runs import AGGREGATE, ROWS, ScalingRuns

_SCANNED = 0.7e-6
MODEL = CostModel(
    plan=0.1,
    gather=0.004,
    shard=0.02,
    shuffle=2e-7,
    element=1e-7,
    deliver=5e-6,
    write=7e-6,
    merge=1e-5,
    workloads={
        AGGREGATE: WorkloadCost(read=1e-6, evaluate=1e-6, rows=0.001, elements=0.25),
        ROWS: WorkloadCost(read=1e-6, evaluate=2e-6, rows=0.25, elements=0.25),
    },
)


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


def run_of(workload: str, shards: int, batches: int, by_workers: bool = False) -> PipelineRun:
    """A run that takes what the model says, on two cores of half speed."""
    cost, triples = MODEL.workloads[workload], 1_000_000
    rows, elements = int(triples * cost.rows), int(triples * cost.elements)
    cut = MODEL.shuffle * triples * (shards > 1) + MODEL.element * elements * (shards - 1)
    by_driver = rows if workload == ROWS and not by_workers else 0
    workers = triples * (_SCANNED + cost.evaluate) + cut / 2 + batches * shards * 0.015
    java = batches * 0.06 + batches * shards * 0.005 + triples * (cost.read - _SCANNED) + cut / 2
    processor = {
        "workers": workers + MODEL.write * rows * by_workers,
        "java": java + by_driver * 1e-6,
        "driver": batches * 0.04 + batches * shards * 0.004 + by_driver * 4e-6,
    }
    run = PipelineRun(shards, batches, triples, rows, 1.0, processor, {}, 0.0, elements, workload, by_workers)
    return replace(run, seconds=2 * simulated_seconds(MODEL, run, 2, 1.0))


def measured_runs() -> ScalingRuns:
    cuts = ((1, 5), (2, 5), (1, 20), (2, 20), (4, 5), (8, 5))
    runs = [run_of(AGGREGATE, shards, batches) for shards, batches in cuts]
    runs += [run_of(ROWS, shards, 5, by_workers) for shards in (1, 2) for by_workers in (False, True)]
    return ScalingRuns(tuple(runs), {AGGREGATE: _SCANNED, ROWS: _SCANNED}, MODEL.merge)


def test_the_fit_finds_the_parameters_of_what_was_run() -> None:
    found, table = fit_model(measured_runs())
    for name in ("plan", "gather", "shard", "shuffle", "element", "deliver", "write", "merge"):
        assert getattr(found, name) == pytest.approx(getattr(MODEL, name), rel=0.01), name
    for workload, cost in MODEL.workloads.items():
        assert found.workloads[workload].read == pytest.approx(cost.read, rel=0.01)
        assert found.workloads[workload].evaluate == pytest.approx(cost.evaluate, rel=0.01)
    assert table.residuals()["all"] < 0.001


def test_the_model_of_runs_that_follow_it_has_no_error_and_half_the_speed() -> None:
    found: dict[str, Any] = describe_model(measured_runs())
    assert found["speed"] == pytest.approx(0.5, rel=0.01)
    assert len(found["checks"]) == 10
    assert all(abs(check["error"]) < 0.01 for check in found["checks"].values())
    many = found["projection"][ROWS]["1000"]
    assert many["driver_writes"]["parts"]["deliver"] > 0.9
    assert many["workers_write"]["triples_per_s"] > 3 * many["driver_writes"]["triples_per_s"]
    assert many["workers_write"]["parts"]["deliver"] == 0


def test_the_speed_is_the_one_that_gives_the_seconds_of_the_run() -> None:
    run = run_of(AGGREGATE, 1, 5)
    speed = find_speed(MODEL, [run], 2)
    assert simulated_seconds(MODEL, run, 2, speed) == pytest.approx(run.seconds)


def test_on_one_core_the_steps_are_their_work() -> None:
    spent = simulate_batches(MODEL, AGGREGATE, Cluster(1, 1), 1_000_000, 2)
    assert spent == pytest.approx({"plan": 0.208, "read": 2.0, "evaluate": 2.04, "deliver": 0.01})


def test_more_shards_than_cores_wait_for_each_other() -> None:
    silent = replace(MODEL, element=0.0)
    assert simulate_batches(silent, AGGREGATE, Cluster(2, 3), 300_000, 1)["evaluate"] == pytest.approx(2 * 0.12)


def test_each_shard_sees_all_elements() -> None:
    spent = [simulate_batches(MODEL, AGGREGATE, Cluster(n, n), 10**6 * n, 1)["evaluate"] for n in (10, 100, 1000)]
    # Each core has the same triples of its own, and ten times as many elements of all.
    assert spent[2] - spent[1] == pytest.approx(10 * (spent[1] - spent[0]), rel=0.01)


def test_half_of_the_stream_in_one_shard_is_twice_the_speed_at_most() -> None:
    silent = replace(MODEL, element=0.0)

    def evaluate(cluster: Cluster) -> float:
        return simulate_batches(silent, AGGREGATE, cluster, 10**6, 1)["evaluate"]

    one, many = Cluster(1, 1), Cluster(100, 100, largest=0.5)
    assert evaluate(many) >= evaluate(one) / 2
    assert throughput(silent, AGGREGATE, Cluster(100, 100), 10**8) > 3 * throughput(silent, AGGREGATE, many, 10**8)
