"""A stream file that a disk cannot read for a moment is neither bad input nor another file: nothing of it is lost."""

from __future__ import annotations

import builtins
import errno
import io
import os
from pathlib import Path
from typing import Any

import pytest

import headwater as hw
from tests.commands.running import headwater
from tests.engine.programs import SENSORS, SLIDING, by_query, sensor_lines, write

LINES = sensor_lines(90, bad_every=0)


class BrokenReads:
    """Has the reads of one file fail with EIO, from a number on, for three reads."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, path: Path, first: int) -> None:
        self.failed = 0
        self._path, self._first, self._reads = str(path), first, 0
        self._real: Any = builtins.open
        monkeypatch.setattr(builtins, "open", self.open)

    def open(self, file: Any, mode: str = "r", *args: Any, **named: Any) -> Any:
        if str(file) != self._path or mode != "rb":
            return self._real(file, mode, *args, **named)
        return io.BufferedReader(_BrokenFile(self._path, self))

    def pass_read(self) -> None:
        self._reads += 1
        if self._first <= self._reads < self._first + 3:
            self.failed += 1
            raise OSError(errno.EIO, os.strerror(errno.EIO))


class _BrokenFile(io.FileIO):
    def __init__(self, path: str, reads: BrokenReads) -> None:
        super().__init__(path, "r")
        self._reads = reads

    def readinto(self, buffer: Any, /) -> int:
        self._reads.pass_read()
        return super().readinto(buffer) or 0


def answers_of(folder: Path, answers: list[hw.Answer], *, drain: bool, **settings: Any) -> hw.RunSummary:
    engine = hw.Engine(in_process=True, batch_bytes=500, dead_letters=folder / "letters", **settings)
    engine.stream(SENSORS, folder / "in.tnq")
    engine.register(SLIDING)
    return engine.run(drain=drain, on_answer=answers.append)


@pytest.mark.parametrize("first", [1, 2, 3, 8])
def test_a_run_ends_and_goes_on_where_it_was(tmp_path: Path, first: int) -> None:
    half = len(LINES) // 2
    write(tmp_path / "in.tnq", LINES[:half])
    answers: list[hw.Answer] = []
    checkpoint = tmp_path / "checkpoint"
    before = answers_of(tmp_path, answers, drain=False, checkpoint=checkpoint)
    write(tmp_path / "in.tnq", LINES[half:], append=True)
    with pytest.MonkeyPatch.context() as patch:
        reads = BrokenReads(patch, tmp_path / "in.tnq", first)
        with pytest.raises(hw.SourceError, match=r"in\.tnq cannot be read now \(Input/output error\).*run again"):
            answers_of(tmp_path, answers, drain=False, checkpoint=checkpoint)
        assert reads.failed
    after = answers_of(tmp_path, answers, drain=True, checkpoint=checkpoint)

    expected: list[hw.Answer] = []
    wanted = answers_of(tmp_path, expected, drain=True)
    assert by_query(answers) == by_query(expected)
    assert before.elements < wanted.elements
    assert after.bad == 0


def test_the_command_line_says_that_it_failed_while_running(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "in.tnq", LINES)
    (tmp_path / "q.rq").write_text(SLIDING)
    BrokenReads(monkeypatch, tmp_path / "in.tnq", 2)
    done = headwater("run", tmp_path / "q.rq", "--in-process", "--stream", f"{SENSORS}={tmp_path / 'in.tnq'}")
    assert done.exit_code == 1 and "in.tnq cannot be read now (Input/output error)" in " ".join(done.stderr.split())


def test_a_file_that_nobody_may_read_is_bad_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "in.tnq", LINES)

    def refuse(reads: BrokenReads) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(BrokenReads, "pass_read", refuse)
    BrokenReads(monkeypatch, tmp_path / "in.tnq", 1)
    summary = answers_of(tmp_path, [], drain=True)
    assert summary.bad > 0
