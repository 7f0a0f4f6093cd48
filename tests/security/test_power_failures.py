"""A power failure leaves data sets and checkpoints as they were once committed, and no answer lost or doubled.

All file operations of loads, changes, runs and sinks are recorded, and replayed up to each of them with what was not
forced to disk lost, torn and in another order (`power_failures`).
"""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

import headwater as hw
from headwater.datasets.loading import bulk_load
from headwater.datasets.loading.bulk_load import load
from headwater.terms import durable_files
from headwater.terms.model import Literal, NamedNode, Quad
from tests.engine.programs import SENSORS, SLIDING, TUMBLING, sensor_lines, write
from tests.security.power_failures import Change, Crash, Recorder, Sync, Write, crashes

S, P = NamedNode("http://ex/s"), NamedNode("http://ex/p")
Statements = frozenset[str]


def statement(text: str) -> Quad:
    return Quad(S, P, Literal(text))


def lines(*texts: str) -> list[str]:
    return [f'<http://ex/s> <http://ex/p> "{text}" .' for text in texts]


class DataSetStory:
    """Commits of a data set in `folder / "disk"`: what each does, and the statements after it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        write(folder / "one.nt", [*lines("a", "b", "c", "d", "e", "f"), "this is no statement"])
        write(folder / "two.nt", [*lines("g", "h"), "nor is this"])

    def steps(self, place: Path) -> list[Callable[[], object]]:
        return [
            lambda: load(place, [self.folder / "one.nt"]),
            lambda: hw.DataSet.open(place).insert([statement("i")]),
            lambda: hw.DataSet.open(place).change([statement("j" * 600)], [statement("a")]),
            lambda: load(place, [self.folder / "one.nt", self.folder / "two.nt"]),
            lambda: hw.DataSet.open(place).update('DELETE DATA { <http://ex/s> <http://ex/p> "b" }'),
            lambda: hw.DataSet.open(place).compact(),
            lambda: hw.DataSet.open(place).insert([statement("k")]),
        ]

    def record(self) -> tuple[Recorder, list[Statements]]:
        disk = self.folder / "disk"
        disk.mkdir()
        recorder = Recorder(disk)
        states: list[Statements] = []
        with recorder.recording():
            for number, step in enumerate(self.steps(disk / "set")):
                step()
                recorder.mark(str(number))
                states.append(statements_in(disk / "set"))
        return recorder, states


def statements_in(place: Path) -> Statements:
    return frozenset(str(quad.object) for quad in hw.DataSet.open(place).quads())


def check_data_set(story: DataSetStory, crash: Crash, states: list[Statements], *, goes_on: bool) -> None:
    """The disk holds a state that was committed: the last one that somebody was told of, or the next."""
    place = crash.write(story.folder / "after") / "set"
    done = len(crash.marks)
    try:
        try:
            found = statements_in(place)
        except hw.DataSetError:
            # There is none before the first load ends.
            assert done == 0, "a data set that was there cannot be opened"
            story.steps(place)[0]()
            assert statements_in(place) == states[0]
            return
        allowed = states[max(done - 1, 0) : done + 1]
        assert found in allowed, f"{sorted(found)} was never committed here"
        hw.DataSet.open(place).insert([statement("more")])
        assert statements_in(place) == found | {'"more"'}
        if goes_on and done < len(states):
            # The step at work when the power failed can be done again.
            story.steps(place)[done]()
            assert statements_in(place) == states[done] | {'"more"'}
    finally:
        shutil.rmtree(story.folder / "after")


def check_data_sets(folder: Path, *, subsets: int = 0, sample: int | None = None, every: int = 10) -> int:
    """Check all disks, or a sample of them; after one of `every` so many the step at work is done again."""
    story = DataSetStory(folder)
    with pytest.MonkeyPatch.context() as patch:
        # So that a load has several parts.
        patch.setattr(bulk_load, "PART_STATEMENTS", 3)
        recorder, states = story.record()
    assert len(set(states)) >= 6
    found = list(crashes(recorder, subsets))
    for number, crash in enumerate(_sample_of(found, sample)):
        try:
            check_data_set(story, crash, states, goes_on=number % every == 0)
        except Exception as error:
            raise AssertionError(_describe(recorder, crash)) from error
    return len(found)


def _sample_of(found: list[Crash], size: int | None) -> list[Crash]:
    """Some of the disks, always the same, in the order of the operations."""
    if size is None or size >= len(found):
        return found
    return sorted(random.Random(0).sample(found, size), key=lambda one: one.place)


def _describe(recorder: Recorder, crash: Crash) -> str:
    before = recorder.operations[max(0, crash.place - 12) : crash.place + 1]
    tree = {path: None if content is None else len(content) for path, content in sorted(crash.tree.items())}
    return "\n".join(["after:", *(str(one)[:160] for one in before), f"the disk: {tree}", f"done: {crash.marks}"])


def test_data_sets_survive_power_failures(tmp_path: Path) -> None:
    assert check_data_sets(tmp_path, sample=150) > 1000


@pytest.mark.soak
def test_data_sets_survive_power_failures_of_any_kind(tmp_path: Path) -> None:
    assert check_data_sets(tmp_path, subsets=20, every=1) > 2000


class RunStory:
    """A run in process with a checkpoint, files of answers and dead letters, all of them on `folder / "disk"`.

    With `has_data` there is data that may change, so that batches are delivered in steps, each of which is planned.
    """

    def __init__(self, folder: Path, *, has_data: bool, count: int = 48, batch_bytes: int | None = None) -> None:
        self.folder = folder
        self.lines = sensor_lines(count)
        self._has_data = has_data
        self._batch_bytes = batch_bytes

    def run(self, disk: Path, *, grows: bool = True) -> None:
        """Read everything, in batches; the stream grows between two runs, as it does while one follows it."""
        path = self.folder / "in" / "in.tnq"
        size = len(self.lines)
        for count in (size // 3, 2 * size // 3, size) if grows else (size,):
            write(path, self.lines[:count])
            engine = hw.Engine(
                in_process=True,
                evaluator="reference",
                checkpoint=disk / "checkpoint",
                dead_letters=disk / "dead",
                batch_bytes=self._batch_bytes,
            )
            if self._has_data:
                engine.dataset([statement("of the engine")])
            engine.stream(SENSORS, path)
            for text in (SLIDING, TUMBLING):
                engine.register(text)
            engine.run(drain=count == size, sinks=[hw.FileSink(disk / "out")])

    def record(self) -> Recorder:
        disk = self.folder / "disk"
        disk.mkdir()
        recorder = Recorder(disk)
        with recorder.recording():
            self.run(disk)
        return recorder


def results_in(disk: Path) -> tuple[list[str], list[str]]:
    """All answers, and all dead letters, in an order of their own."""
    answers: list[str] = []
    for path in (disk / "out").rglob("[!.]*.jsonl"):
        answers += [f"{path.parent.name} {line}" for line in path.read_text().splitlines()]
    letters = [line for path in (disk / "dead").glob("[!.]*.jsonl") for line in path.read_text().splitlines()]
    for line in letters:
        json.loads(line)
    return sorted(answers), sorted(letters)


def check_runs(story: RunStory, *, subsets: int = 0, sample: int | None = None) -> int:
    folder = story.folder
    recorder = story.record()
    expected = results_in(folder / "disk")
    assert len(expected[0]) > 15 and len(expected[1]) > 3
    found = list(crashes(recorder, subsets))
    for crash in _sample_of(found, sample):
        disk = crash.write(folder / "after")
        try:
            story.run(disk, grows=False)
            assert results_in(disk) == expected
        except Exception as error:
            raise AssertionError(_describe(recorder, crash)) from error
        finally:
            shutil.rmtree(disk)
    return len(found)


@pytest.mark.parametrize("has_data", [False, True])
def test_runs_survive_power_failures(tmp_path: Path, has_data: bool) -> None:
    assert check_runs(RunStory(tmp_path, has_data=has_data), sample=30) > 80


@pytest.mark.soak
@pytest.mark.parametrize("has_data", [False, True])
def test_runs_survive_power_failures_of_any_kind(tmp_path: Path, has_data: bool) -> None:
    assert check_runs(RunStory(tmp_path, has_data=has_data, count=150, batch_bytes=900), subsets=20) > 400


def _without(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out one of the things that make files durable."""
    if kind == "sync_tree":
        monkeypatch.setattr("headwater.datasets.loading.publish.sync_tree", lambda folder: None)
    elif kind == "insert":
        monkeypatch.setattr(
            "headwater.datasets.dataset.sync_of", lambda folder: durable_files.Sync.NOTHING, raising=True
        )
    else:
        monkeypatch.setattr("headwater.datasets.loading.bulk_load.sync_tree", lambda folder: None)


@pytest.mark.parametrize("kind", ["sync_tree", "insert", "parts"])
def test_a_missing_sync_would_be_found(tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    _without(kind, monkeypatch)
    with pytest.raises(AssertionError, match="the disk"):
        check_data_sets(tmp_path, sample=250, every=3)


def disks(operations: Iterable[object]) -> list[dict[str, bytes | None]]:
    recorder = Recorder(Path())
    recorder.operations = list(operations)  # type: ignore[arg-type]
    return [dict(crash.tree) for crash in crashes(recorder)]


def test_the_model_of_a_disk() -> None:
    """A file that is renamed without having been forced to disk can be empty under its new name."""
    new, renamed = Change((((0, "new"), 1),)), Change((((0, "new"), None), ((0, "file"), 1)))
    unsynced = disks([new, Write(1, b"", b"content"), renamed, Sync(0)])
    assert {"file": b""} in unsynced and {"file": b"con"} in unsynced and {} in unsynced
    synced = disks([new, Write(1, b"", b"content"), Sync(1), renamed, Sync(0)])
    assert {"file": b"content"} in synced
    assert not any(tree.get("file", b"content") != b"content" for tree in synced)
