"""The latency benchmark measures each element from its arrival to the answer that it makes due."""

from __future__ import annotations

import json
import logging
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import headwater as hw
from benchmarks import latency
from benchmarks.latency_backlog import BACKLOGS, NoRealTimeMode, refuse_micro_batches
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


def test_a_way_that_cannot_be_measured_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: latency.Measurements, way: str) -> Feeder:
        raise hw.JarError("no connector")

    monkeypatch.setattr(latency.Measurements, "_feeder", refuse)
    measurements = latency.Measurements(tmp_path, 1.0)
    measurements.take("realtime")
    measurements.take_backlogs()
    result = measurements.result()
    assert result["left_out"] == {"realtime": "no connector"}
    assert (result["p50_ms"], result["realtime_triples_per_s"]) == ({}, None)


def test_topics_have_one_partition(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without keys a producer fills one partition after the other: the clock of the topic would wait for the first."""
    made: list[int] = []

    class FakeBroker:
        def __init__(self, folder: Path, partitions: int) -> None:
            made.append(partitions)

        def start(self) -> None:
            return

    monkeypatch.setattr(latency, "Broker", FakeBroker)
    measurements = latency.Measurements(tmp_path, 1.0)
    assert measurements._kafka() is measurements._kafka()
    assert made == [1]


def test_micro_batches_are_no_real_time_mode() -> None:
    ended: list[bool] = []
    with pytest.raises(NoRealTimeMode, match="no topic of Kafka"), refuse_micro_batches(lambda: ended.append(True)):
        logging.getLogger("headwater.engine.realtime_runs").warning("the stream is no topic of Kafka")
    assert ended == [True]
    with refuse_micro_batches(lambda: ended.append(True)):
        pass


def test_the_ways_of_several_processes_are_one_result() -> None:
    found = [
        {"p50_ms": {"spark": 1.0}, "elements": 10, "realtime_triples_per_s": None},
        {"p50_ms": {"realtime": 2.0}, "elements": 10, "realtime_triples_per_s": 5.0},
        {"p50_ms": {"hand_spark": 3.0}, "elements": 10, "realtime_triples_per_s": None},
    ]
    assert latency.merge_results(found) == {
        "p50_ms": {"spark": 1.0, "realtime": 2.0, "hand_spark": 3.0},
        "elements": 10,
        "realtime_triples_per_s": 5.0,
    }


def test_the_ticks_of_a_backlog_are_before_its_last_record() -> None:
    for backlog in BACKLOGS:
        last = backlog.begin + (backlog.records - 1) * backlog.apart
        assert last - backlog.step <= backlog.last_tick < last
        assert backlog.begin < backlog.warm_tick < backlog.last_tick
    first = BACKLOGS[0].record(3).decode().splitlines()
    assert (len(first), {line.split("\t")[0] for line in first}) == (BACKLOGS[0].triples, {"3"})


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
