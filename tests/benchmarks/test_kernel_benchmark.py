"""The kernel benchmark on tiny sizes: every part runs, checks its own results, and gives the keys it promises."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

import pytest

from benchmarks import kernel, reporting
from benchmarks.kernel_sizes import Sizes

TINY = Sizes(
    index_mappings=1000,
    index_keys=1000,
    index_series=(10, 100),
    index_rounds=1,
    join_windows=(100, 300),
    join_slides=3,
    reference_slides=2,
    memory_ways=(2, 3),
    memory_window=200,
    aggregate_window=300,
    aggregate_groups=(10,),
    selectivity_window=200,
    selectivities=(0.1, 2.0),
    aggregate_slides=2,
    static_triples=2000,
    latency_elements=20,
    latency_warm_up=0,
    adaptive_window=400,
    adaptive_slides=4,
    range_window=200,
    range_slides=3,
)
KEYS = {
    "index": {"index_insert_per_s", "index_probe_ns"},
    "joins": {"join3_vs_reference", "join3_vs_polars"},
    "memory": {"join8_mb"},
    "aggregates": {"avg_vs_polars", "min_over_join_vs_polars", "distinct_over_join_vs_polars"},
    "latency": {"latency_p50_ms"},
    "adaptive": {"adaptive_vs_best_fixed", "adaptive_steady_overhead"},
    "range": {"range_speedup_0.1_percent", "range_speedup_10_percent", "range_speedup_100_percent"},
}
WITH_POLARS = {"joins", "aggregates"}


def positive_numbers(value: object) -> list[float]:
    if isinstance(value, dict):
        return [number for inner in value.values() for number in positive_numbers(inner)]
    return [cast(float, value)]


def test_each_part_is_known() -> None:
    assert set(KEYS) == set(kernel.PARTS)


@pytest.mark.parametrize("part", KEYS)
def test_a_part_gives_its_keys_and_figures(part: str, tmp_path: Path) -> None:
    if part in WITH_POLARS and find_spec("polars") is None:
        pytest.skip(f"polars is not installed: {reporting.INSTALL}")
    found = kernel.measure(TINY, [part])
    assert KEYS[part] <= set(found.values)
    assert json.loads(json.dumps(found.values)) == found.values
    for key, value in found.values.items():
        if key != "adaptive_steady_overhead":
            assert all(number > 0 for number in positive_numbers(value)), key
    assert found.figures
    for figure in found.figures:
        assert all(len(points) > 0 for points in figure.lines.values()), figure.name
    if find_spec("matplotlib") is not None:
        reporting.draw(found.figures, tmp_path)
        for figure in found.figures:
            assert f">{figure.title}<" in (tmp_path / f"{figure.name}.svg").read_text("utf-8")


def test_latency_is_told_for_each_query() -> None:
    values: dict[str, Any] = kernel.PARTS["latency"](TINY).values
    assert list(values["latency_p50_ms"]) == ["Q1", "Q2", "Q3", "Q4", "Q5"]


def test_the_machine_is_described() -> None:
    facts = reporting.machine()
    assert {"cpu", "cores", "memory", "python", "numpy", "numba", "polars", "pyoxigraph"} <= set(facts)


def test_a_missing_package_is_named_with_the_command() -> None:
    with pytest.raises(SystemExit, match=r"needs no_such_package\. Run: .*\[bench\]"):
        reporting.demand("json", "no_such_package")


def test_runs_in_turns_are_each_prepared_once_per_round() -> None:
    calls: list[str] = []
    runs = {"a": lambda: calls.append("a"), "b": lambda: calls.append("b")}
    times = reporting.in_turns(runs, 2, lambda: calls.append("before"))
    assert calls == ["before", "a", "b"] * 2
    assert set(times) == {"a", "b"}
