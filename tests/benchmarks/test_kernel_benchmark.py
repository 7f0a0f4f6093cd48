"""The kernel benchmark on tiny sizes: every part runs, checks its own results, and gives the keys it promises."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from benchmarks import kernel, kernel_joins, reporting
from benchmarks.indexed_window import WAYS, IndexedWindow, draw_rows
from benchmarks.kernel_feeding import SlidingInput
from benchmarks.kernel_sizes import Sizes
from benchmarks.kernel_ticks import TickingOperator, check_ways

TINY = Sizes(
    index_mappings=1000,
    index_keys=1000,
    index_rounds=1,
    index_key_counts=(10, 100),
    index_windows=(50, 200),
    index_probed_window=200,
    index_inserts=300,
    index_calls=20,
    map_key_counts=(20, 100),
    map_windows=(50, 200, 300),
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
    ticks=300,
    tick_keys=30,
    tick_windows=(50, 200),
    tick_groups=(10, 100),
    tick_selectivity_window=200,
    static_triples=2000,
    latency_elements=20,
    latency_warm_up=0,
    adaptive_window=400,
    adaptive_slides=4,
    range_window=200,
    range_slides=3,
)
KEYS = {
    "index": {
        "index_insert_per_s",
        "index_probe_ns",
        "index_inserts_per_s_by_way",
        "index_inserts_vs_paper",
        "index_probe_ns_by_way",
        "index_probe_vs_paper",
    },
    "joins": {"join3_vs_reference", "join3_vs_polars", "join3_mappings_per_s"},
    "memory": {"join8_mb", "join_mb", "paper_vs_join_mb"},
    "aggregates": {
        "avg_vs_polars",
        "min_over_join_vs_polars",
        "distinct_over_join_vs_polars",
        "avg_mappings_per_s",
        "min_over_join_mappings_per_s",
        "distinct_over_join_mappings_per_s",
    },
    "latency": {"latency_p50_ms"},
    "adaptive": {"adaptive_vs_best_fixed", "adaptive_steady_overhead"},
    "range": {"range_speedup_0.1_percent", "range_speedup_10_percent", "range_speedup_100_percent"},
}
FIGURES = {
    "index": {"index-insert-10", "index-insert-100", "index-probe"},
    "joins": {"join3", "join3-ticks"},
    "memory": {"join-memory"},
    "aggregates": {
        *("avg", "min-over-join", "distinct-over-join"),
        *("avg-ticks", "min-over-join-ticks", "distinct-over-join-ticks"),
    },
    "latency": {"latency"},
    "adaptive": {"adaptive"},
    "range": {"range"},
}
MAPS = {"index-insert-map-loop", "index-insert-map-batches", "index-probe-map-loop", "index-probe-map-batches"}
WITH_POLARS = {"joins", "aggregates"}
MOST_BYTES = 200_000
"""Of a figure."""


def positive_numbers(value: object) -> list[float]:
    if isinstance(value, dict):
        return [number for inner in value.values() for number in positive_numbers(inner)]
    return [cast(float, value)]


def test_each_part_is_known() -> None:
    assert set(KEYS) == set(FIGURES) == set(kernel.PARTS)


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
    assert {figure.name for figure in found.figures} == FIGURES[part]
    for figure in found.figures:
        assert all(len(points) > 0 for points in figure.lines.values()), figure.name
    assert {one.name for one in found.maps} == (MAPS if part == "index" else set())
    for one in found.maps:
        assert [len(row) for row in one.values] == [len(one.columns)] * len(one.rows), one.name
    if find_spec("matplotlib") is not None:
        figures: list[reporting.Figure | reporting.ContourFigure] = [*found.figures, *found.maps]
        reporting.draw(figures, tmp_path)
        units = [figure.y for figure in found.figures] + [one.unit for one in found.maps]
        for drawing, unit in zip(figures, units, strict=True):
            drawn = (tmp_path / f"{drawing.name}.svg").read_text("utf-8")
            assert f">{drawing.title}<" in drawn
            assert f">{unit}<" in drawn
            assert len(drawn) < MOST_BYTES


def test_figures_9_to_12_only_inserts_and_probes_one_at_a_time_are_compared_with_the_paper() -> None:
    values: dict[str, Any] = kernel.PARTS["index"](TINY).values
    assert set(values["index_inserts_per_s_by_way"]) == {"loop", "calls", "batches", "ordered_loop"}
    for key in ("index_inserts_vs_paper", "index_probe_vs_paper"):
        assert set(values[key]) == {"loop", "calls"}
    assert set(values["index_inserts_vs_paper"]["loop"]["10"]) == {"50", "200"}
    assert list(values["index_probe_ns_by_way"]["loop"]) == ["10", "20", "100"]


@pytest.mark.parametrize("is_ordered", [False, True])
def test_figures_9_to_12_a_window_has_the_same_rows_whichever_way_they_are_replaced(is_ordered: bool) -> None:
    rows = draw_rows(np.random.default_rng(1), 2000, 30)
    for way in WAYS:
        window = IndexedWindow(rows, 100, is_ordered=is_ordered)
        window.replace(way, 1234)
        assert np.array_equal(window.content, rows[1235:1335])
        assert np.array_equal(window._relation.in_order_of_arrival(), window.content)
        window.probe("loop", window.content[:, 0])
        with pytest.raises(AssertionError, match="0 of 1 keys"):
            window.probe("loop", np.array([1]))


def test_figure_13_many_ticks_in_one_step_are_compared_with_each_in_its_own() -> None:
    rows = np.arange(40).reshape(20, 2)

    def make_window(*, skipped: int) -> TickingOperator:
        window = SlidingInput(("x", "y"), rows, 5)
        window.slide(skipped)
        return TickingOperator(window, [window], 5)

    check_ways(lambda: make_window(skipped=0), 6)
    others = iter([0, 1])
    with pytest.raises(AssertionError, match="other results"):
        check_ways(lambda: make_window(skipped=next(others)), 6)


def test_figure_13_the_results_of_a_run_of_slides_are_those_of_the_windows() -> None:
    joined = kernel_joins._make_ticking_join(60, 20, 90)
    before = joined.results
    run = joined.advance_run(90)
    joined.count([run])
    assert len(run) > 0
    assert joined.results == before + int(run.signs.sum())
    assert joined.results == kernel_joins._count_results([one.content for one in joined.windows])


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
