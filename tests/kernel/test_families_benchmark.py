"""The benchmark of many queries on tiny sizes: it checks its own answers, and gives the keys that it promises."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from benchmarks import parallel_pipeline, parallel_queries
from benchmarks.parallel_instances import Sizes, instances

TINY = Sizes(instances=(1, 4), separate=(1, 3), elements=10, static_triples=1500)


def test_keys_and_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel_queries, "_in_a_new_process", parallel_queries._kilobytes)
    # The other queries have windows that take thousands of elements to fill.
    monkeypatch.setattr(parallel_queries, "INSTANTIATED", ("Q1",))
    found = parallel_queries.measure(TINY)
    values: dict[str, Any] = json.loads(json.dumps(found.values))
    assert list(values["in_process_mean_s"]) == ["1", "4"] and all(
        taken > 0 for taken in values["in_process_mean_s"].values()
    )
    assert values["speedup"]["Q1"] > 0
    assert values["in_process_kb_per_query"] == max(values["in_process_kb_per_query_of"].values())
    (figure,) = found.figures
    assert len(figure.lines["Q1"]) == 2


def test_the_memory_of_a_pipeline_is_that_of_its_processes() -> None:
    waiting = [sys.executable, "-c", "input()"]
    with (
        subprocess.Popen([*waiting, "pyspark.worker"], stdin=subprocess.PIPE) as worker,
        subprocess.Popen([*waiting, "planning"], stdin=subprocess.PIPE) as other,
    ):
        family = set(parallel_pipeline._family(os.getpid()))
        memory = parallel_pipeline._memory()
        for process in (worker, other):
            process.communicate(b"\n")
    assert {os.getpid(), worker.pid} <= family and other.pid not in family
    assert memory > 10_000


def test_instances_differ_in_the_name_alone() -> None:
    first, second = instances("Q3", 2)
    assert first.plan.text.replace('"Author 0"', '"Author 1"') == second.plan.text
    assert first.settings == second.settings
