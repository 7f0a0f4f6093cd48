"""The benchmark of an answer at each triple, on a short stream: it checks its own answers and gives all its keys."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks import eager
from benchmarks.eager_queries import QUERIES
from headwater.kernel.kernel_evaluator import KernelEvaluator

BENCHES = {"srbench": ["1", "4", "5", "8", "10"], "lsbench": ["1", "2", "3", "4", "5", "6", "10"]}


def test_tables_1_and_2_have_the_queries_of_the_paper() -> None:
    numbers = {bench: [name.partition("_q")[2] for name in QUERIES if name.startswith(bench)] for bench in BENCHES}
    assert numbers == BENCHES
    assert [query.paper_mb for query in QUERIES.values()] == [
        *(206, 327, 370, 248, 218),
        *(374, 370, 380, 398, 389, 402, 370),
    ]


def test_tables_1_and_2_have_rates_and_memory_for_each_query() -> None:
    names = ["srbench_q1", "lsbench_q6"]
    found: dict[str, Any] = eager.measure(4000, names, spark=False)
    for key in ("triples_per_s", "vs_paper", "vs_before"):
        assert list(found[key]["in_process"]) == names
        assert all(number > 0 for number in found[key]["in_process"].values())
    for key in ("memory_mb", "allocated_mb", "memory_vs_paper"):
        assert list(found[key]) == names
        assert all(number > 0 for number in found[key].values())
    for name in names:
        assert found["memory_mb"][name] < found["allocated_mb"][name]
        paper = QUERIES[name].paper_mb
        assert found["memory_vs_paper"][name] == pytest.approx(paper / found["allocated_mb"][name], rel=0.01)


def test_ticks_are_taken_in_steps_again_after_the_comparison() -> None:
    with eager.one_tick_in_each_step():
        assert not KernelEvaluator._takes_runs
    assert KernelEvaluator._takes_runs
