"""A full disk, a worker process that dies: a run goes on, or ends with words that say what to do. Nothing is lost."""

from __future__ import annotations

import errno
import logging
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import headwater as hw
from headwater.execution.answers import Answer
from headwater.spark.run_error import to_run_error
from tests.engine.programs import SENSORS, SLIDING, by_query, sensor_lines, write
from tests.spark import killing

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of four megabytes."""
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=4m", "headwater-test", str(folder)]
    try:
        mounted = subprocess.run(command, capture_output=True, text=True)
    except OSError as error:
        pytest.skip(f"no small disk: {error}")
    if mounted.returncode != 0:
        pytest.skip(f"no small disk: {mounted.stderr.strip()}")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(folder: Path) -> Path:
    """A file that takes all the room that there is."""
    path = folder / "filler"
    with open(path, "wb", buffering=0) as stream:
        try:
            while True:
                stream.write(bytes(4096))
        except OSError as error:
            assert error.errno == errno.ENOSPC
    return path


def engine_of(folder: Path, checkpoint: Path, spark: SparkSession | None) -> hw.Engine:
    options: dict[str, Any] = {"checkpoint": checkpoint, "batch_bytes": 1200, "shards": 1, "evaluator": "reference"}
    engine = hw.Engine(spark, in_process=spark is None, **options)
    engine.stream(SENSORS, folder / "in.tnq")
    engine.register(SLIDING)
    return engine


def expected(folder: Path) -> dict[str, list[object]]:
    engine = hw.Engine(in_process=True)
    engine.stream(SENSORS, write(folder / "in.tnq", sensor_lines(90)))
    engine.register(SLIDING)
    answers: list[Answer] = []
    engine.run(on_answer=answers.append)
    return by_query(answers)


def check_full_disk(folder: Path, disk: Path, spark: SparkSession | None, error: type[Exception], words: str) -> None:
    answers: dict[int, Answer] = {}
    filler: list[Path] = []
    wanted = expected(folder)

    def fill_the_disk(progress: hw.Progress) -> None:
        if progress.batches == 2:
            filler.append(fill(disk))

    with pytest.raises(error, match=words):
        engine_of(folder, disk / "checkpoint", spark).run(
            on_answer=lambda answer: answers.setdefault(answer.time, answer), on_progress=fill_the_disk
        )
    assert len(answers) < len(wanted["sliding"])
    filler[0].unlink()
    again: list[Answer] = []
    engine_of(folder, disk / "checkpoint", spark).run(on_answer=again.append)
    for answer in again:
        # A batch that was delivered and could not be noted comes again, as it was.
        assert answers.setdefault(answer.time, answer) == answer
    assert by_query(answers[time] for time in sorted(answers)) == wanted


def test_a_full_disk_in_process(tmp_path: Path, small_disk: Path) -> None:
    check_full_disk(tmp_path, small_disk, None, hw.CheckpointError, "make room")


def test_a_full_disk_on_spark(tmp_path: Path, small_disk: Path, spark: SparkSession) -> None:
    check_full_disk(tmp_path, small_disk, spark, hw.RunError, "a disk is full.*nothing is lost")


def test_a_checkpoint_that_cannot_be_written_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_room(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    expected(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr("headwater.terms.durable_files.os.fsync", no_room)
        with pytest.raises(hw.CheckpointError, match=r"No space left.*run again"):
            engine_of(tmp_path, tmp_path / "checkpoint", None).run()


def test_a_worker_that_dies_is_replaced(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    wanted = expected(tmp_path)
    killing.weaken(monkeypatch, tmp_path / "mark")
    answers: list[Answer] = []
    with caplog.at_level(logging.WARNING, "headwater"):
        engine_of(tmp_path, tmp_path / "checkpoint", spark).run(on_answer=answers.append)
    assert (tmp_path / "mark").exists(), "no worker died"
    assert by_query(answers) == wanted
    assert any("worker process of Spark died" in message for message in caplog.messages)


def test_the_words_say_what_to_do() -> None:
    died = to_run_error(
        RuntimeError("Job aborted … SparkException: Python worker exited unexpectedly (crashed)\n\tat x")
    )
    assert "killed, or the machine ran out of memory" in str(died) and "nothing is lost" in str(died)
    lost = to_run_error(RuntimeError("Job aborted: OffsetOutOfRangeException: Fetch position FetchPosition{offset=3}"))
    assert "no longer has records" in str(lost) and 'failOnDataLoss="false"' in str(lost)
    full = to_run_error(RuntimeError("java.io.IOException: No space left on device\n\tat y"))
    assert "Make room" in str(full)
