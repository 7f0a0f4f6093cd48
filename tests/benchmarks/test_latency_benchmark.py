"""The latency benchmark measures each element from its arrival to the answer that it makes due."""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from benchmarks import latency
from benchmarks.latency_feeding import APART, BEGIN, Feeder, FileFeeder, TcpFeeder, number_of_tick, reading, time_of
from benchmarks.latency_parts import parts_of_batches


def test_an_element_makes_one_tick_due() -> None:
    for number in range(20):
        tick = BEGIN + number * APART
        assert number_of_tick(tick) == number
        assert time_of(number - 1) < tick <= time_of(number)
        assert json.loads(reading(number))["at"] * 1000 == time_of(number)


@pytest.mark.parametrize("way", ["in_process", "in_process_tcp"])
def test_the_latencies_of_a_run_in_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    monkeypatch.setattr(latency, "_WARM_UP", 3)
    feeder: Feeder = FileFeeder(tmp_path) if way == "in_process" else TcpFeeder()
    with ExitStack() as stack:
        stack.callback(feeder.close)
        run = latency.start_run(feeder, stack, in_process=True)
        found = latency.measure(run, feeder, 8)
    assert len(found) == 8
    assert found == sorted(found)
    assert found[0] > 0
    assert found[3] < 500, "answers do not wait for the next look, a second later"


def test_a_way_that_this_version_does_not_have_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(latency, "_why_not", lambda way: "not there")
    measurements = latency.Measurements(tmp_path, 1.0)
    measurements.take("realtime")
    measurements.take_realtime_rate()
    result = measurements.result()
    assert result["left_out"] == {"realtime": "not there"}
    assert (result["p50_ms"], result["realtime_triples_per_s"]) == ({}, None)


def test_the_parts_of_a_batch_are_medians_of_batches_with_rows() -> None:
    def batch(rows: int, milliseconds: int) -> Any:
        durations = {"triggerExecution": milliseconds, "addBatch": milliseconds - 10}
        state = [{"commitTimeMs": 3, "allUpdatesTimeMs": 4}, {"commitTimeMs": 1}]
        return SimpleNamespace(
            json=json.dumps({"numInputRows": rows, "durationMs": durations, "stateOperators": state})
        )

    query = SimpleNamespace(recentProgress=[batch(1, 100), batch(0, 9000), batch(5, 200), batch(5, 300)])
    session: Any = SimpleNamespace(streams=SimpleNamespace(active=[query]))
    steps = [{"save": 0.0}, {"save": 0.010}, {"save": 0.030}]
    assert parts_of_batches(session, steps) == {
        "batch": 200.0,
        "add_batch": 190.0,
        "state_updates": 4.0,
        "state_commit": 4.0,
        "our_save": 15.0,
    }
