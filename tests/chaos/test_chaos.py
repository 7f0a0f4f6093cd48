"""The short form of `make chaos`: some seeds in process, one over MQTT, one on Spark; what is wrong is found."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pytest

from tests.chaos.campaign import PROJECT
from tests.chaos.oracle import ChaosError, compare, evaluate_definition
from tests.chaos.random_programs import RandomProgram, a_program
from tests.chaos.spark_runs import run_on_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


MQTT_SEED = 186


def run_campaign(folder: Path, runner: str, seed: int, runs: int, *more: str) -> dict[str, int]:
    """Run some seeds, none of which may fail; gives what there was to see."""
    options = ["--runner", runner, "--seed", f"{seed}", "--runs", f"{runs}", "--folder", str(folder / "runs"), *more]
    command = [sys.executable, "-m", "tests.chaos.campaign", *options]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-3000:]
    return {name: int(count) for name, count in re.findall(r"^  (.+): (\d+)$", done.stdout, re.MULTILINE)}


def test_some_seeds_in_process(tmp_path: Path) -> None:
    seen = run_campaign(tmp_path, "in-process", 1, 8, "--twice")
    # A seed that fails can be looked at: it is the same run each time, but for an endpoint that takes its time.
    assert seen["runs"] == 8 and seen["run twice"] >= 4
    assert seen["ended killed"] >= 4 and seen["ended failed"] >= 2
    assert seen["answers"] > 100 and seen["dead letters"] > 10


def test_a_seed_on_spark(tmp_path: Path, spark: SparkSession) -> None:
    # A worker is killed in the middle of a batch.
    seen = run_on_spark(266, tmp_path, spark, kills_driver=False)
    assert seen["on Spark, fault worker"] and seen["on Spark, answers"]


def test_a_seed_over_mqtt(tmp_path: Path, mosquitto_executable: str) -> None:
    # The broker is killed, connections break, and a message comes twice.
    seen = run_campaign(tmp_path, "mqtt", MQTT_SEED, 1)
    assert seen["over MQTT, runs"] == 1 and seen["over MQTT, fault kill of a broker"] == 1
    assert seen["over MQTT, messages"] and seen["over MQTT, answers"]


@pytest.mark.slow
def test_some_seeds_over_mqtt(tmp_path: Path, mosquitto_executable: str) -> None:
    seen = run_campaign(tmp_path, "mqtt", 1, 20)
    assert seen["over MQTT, runs"] == 20 and seen["over MQTT, fault kill of a broker"]


@pytest.mark.slow
def test_some_seeds_over_kafka(tmp_path: Path, kafka_command: list[str]) -> None:
    seen = run_campaign(tmp_path, "kafka", 100, 4)
    assert seen["over Kafka, runs"] == 4 and seen["over Kafka, runs with answers in Kafka"]


@pytest.fixture
def delivered(tmp_path: Path) -> RandomProgram:
    """A program whose answers are what was expected."""
    program = next(
        one
        for one in (a_program(Random(seed), 1) for seed in range(100))
        if one.format == "json" and one.visitor is None and not one.changes_data and any(map(len, one.parts.values()))
    )
    run = tmp_path / "run"
    run.mkdir()
    program.write_data(run)
    program.write_part(run, 0)
    evaluate_definition(program, tmp_path)
    (tmp_path / "expected" / "out").rename(run / "out")
    (tmp_path / "expected" / "letters").rename(run / "letters")
    evaluate_definition(program, tmp_path)
    return program


def test_what_is_lost_or_doubled_is_found(tmp_path: Path, delivered: RandomProgram) -> None:
    compare(delivered, tmp_path, endpoint_failed=False)
    (path, *_) = (tmp_path / "run" / "out").glob("*/*.jsonl")
    lines = path.read_text().splitlines(keepends=True)
    for wrong, words in ((lines[1:], "lost 1"), ([*lines, lines[0]], "doubled or invented 1")):
        path.write_text("".join(wrong))
        with pytest.raises(ChaosError, match=words):
            compare(delivered, tmp_path, endpoint_failed=False)
    path.write_text("".join(lines))
    letters = tmp_path / "run" / "letters" / "another.jsonl"
    letters.parent.mkdir(exist_ok=True)
    letters.write_text(json.dumps({"kind": "bad"}) + "\n")
    with pytest.raises(ChaosError, match="dead letters"):
        compare(delivered, tmp_path, endpoint_failed=False)
