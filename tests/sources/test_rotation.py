"""A followed file that is rotated, by rename or by copy and truncation, loses no element and gives none twice."""

from __future__ import annotations

import json
import os
import random
import shutil
from pathlib import Path

import pytest

import headwater as hw
from headwater.sources.feed import Feed
from headwater.sources.following import followed_items
from headwater.sources.following.file_identity import Recognition, identify, recognise
from headwater.sources.offsets import Offset
from headwater.terms.model import BadElement
from headwater.windows.element_sequences import elements_of

S = "http://ex/s"


def line(number: int) -> str:
    return f'{number}\t<http://ex/car{number}> <http://ex/passes> "gate {number % 7}" .\n'


class Reader:
    """Follows files from batch to batch, its offsets once through JSON as in a checkpoint."""

    def __init__(self, source: hw.FileSource, limit: int | None = None) -> None:
        self._source = source
        self._limit = limit
        self._offset = Offset()
        self.feed = Feed({S: source}, drain=False)
        self.times: list[int] = []
        self.bad: list[BadElement] = []

    def restart(self) -> None:
        self.feed = Feed({S: self._source}, drain=False)

    def plan(self) -> Offset:
        end = self.feed.next_offset(self._offset, self._limit)
        return Offset.from_json(json.loads(json.dumps(end.to_json())))

    def take(self, end: Offset) -> None:
        for task in self.feed.read_tasks(self._offset, end):
            for chunk in self.feed.read(task):
                found = elements_of(list(chunk.elements) if isinstance(chunk.elements, tuple) else chunk.elements)
                self.times += [element.time // 1000 for element in found]
                self.bad += chunk.bad
        self._offset = end

    def read(self) -> None:
        while (end := self.plan()) != self._offset:
            self.take(end)


def append(path: Path, *numbers: int) -> None:
    with open(path, "a") as stream:
        stream.writelines(map(line, numbers))


def rename(path: Path, old: Path) -> None:
    os.rename(path, old)


def copy_truncate(path: Path, old: Path) -> None:
    shutil.copyfile(path, old)
    os.truncate(path, 0)


@pytest.mark.parametrize("rotate", [rename, copy_truncate])
@pytest.mark.parametrize("old", ["cars.tnq.1", "cars.1.tnq"])
@pytest.mark.parametrize("pattern", ["cars.tnq", "*.tnq"])
@pytest.mark.parametrize("restarts", [False, True])
def test_a_rotated_file_is_read_to_its_end_and_then_the_new_one(
    tmp_path: Path, rotate: object, old: str, pattern: str, restarts: bool
) -> None:
    path = tmp_path / "cars.tnq"
    append(path, 1, 2, 3)
    reader = Reader(hw.files(tmp_path / pattern))
    reader.read()
    # These were written after the last batch, and before the rotation.
    append(path, 4, 5)
    rotate(path, tmp_path / old)  # type: ignore[operator]
    # The new file is longer than the old one was.
    append(path, *range(6, 20))
    if restarts:
        reader.restart()
    reader.read()
    assert reader.times == list(range(1, 20))
    append(path, 20)
    reader.read()
    assert reader.times == list(range(1, 21))
    assert not reader.bad


def test_a_file_that_is_replaced_by_a_longer_one_is_read_from_its_beginning(tmp_path: Path) -> None:
    path = tmp_path / "cars.tnq"
    append(path, 1, 2, 3)
    reader = Reader(hw.files(path))
    reader.read()
    path.unlink()
    append(path, *range(4, 12))
    reader.read()
    assert reader.times == list(range(1, 12))


def test_it_is_said_when_the_rest_of_a_file_is_gone(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "cars.tnq"
    append(path, *range(1, 9))
    reader = Reader(hw.files(path), limit=100)
    reader.take(reader.plan())
    path.unlink()
    append(path, *range(20, 30))
    reader.read()
    assert reader.times[-10:] == list(range(20, 30))
    (bad,) = reader.bad
    assert "is lost" in bad.reason and bad.source == str(path)
    # One that was read to its end may have had more since: nobody knows.
    path.unlink()
    append(path, *range(30, 50))
    reader.read()
    assert reader.times[-20:] == list(range(30, 50))
    assert len(reader.bad) == 1 and "is another file than before" in caplog.text


@pytest.mark.parametrize("rotate", [rename, copy_truncate])
def test_a_planned_batch_is_read_from_the_file_for_which_it_was_planned(tmp_path: Path, rotate: object) -> None:
    path = tmp_path / "cars.tnq"
    append(path, 1, 2, 3)
    reader = Reader(hw.files(path))
    planned = reader.plan()
    rotate(path, tmp_path / "cars.tnq.1")  # type: ignore[operator]
    append(path, *range(4, 12))
    reader.take(planned)
    assert reader.times == [1, 2, 3]
    reader.read()
    assert reader.times == list(range(1, 12))


def test_a_planned_batch_whose_file_is_gone_is_a_bad_element(tmp_path: Path) -> None:
    path = tmp_path / "cars.tnq"
    append(path, 1, 2, 3)
    reader = Reader(hw.files(path))
    planned = reader.plan()
    path.unlink()
    append(path, *range(4, 12))
    reader.take(planned)
    (bad,) = reader.bad
    assert "bytes 0 to" in bad.reason and not reader.times


def test_files_are_rotated_through_several_names(tmp_path: Path) -> None:
    path = tmp_path / "cars.tnq"
    reader = Reader(hw.files(tmp_path / "*.tnq"))
    number = 0
    for turn in range(5):
        for _ in range(3):
            number += 1
            append(path, number)
            reader.read()
        number += 1
        append(path, number)
        for age in range(3, 0, -1):
            older, younger = tmp_path / f"cars.{age + 1}.tnq", tmp_path / f"cars.{age}.tnq"
            if younger.exists():
                os.replace(younger, older)
        os.rename(path, tmp_path / "cars.1.tnq")
        if turn % 2:
            reader.restart()
    reader.read()
    assert reader.times == list(range(1, number + 1))
    assert not reader.bad


def test_a_copy_that_waits_for_its_truncation_is_not_read_twice(tmp_path: Path) -> None:
    path = tmp_path / "cars.tnq"
    append(path, 1, 2, 3)
    reader = Reader(hw.files(tmp_path / "*.tnq"))
    reader.read()
    shutil.copyfile(path, tmp_path / "cars.1.tnq")
    reader.read()
    assert reader.times == [1, 2, 3]
    os.truncate(path, 0)
    append(path, 4)
    reader.read()
    assert reader.times == [1, 2, 3, 4]


def test_a_copy_that_stays_is_a_file_of_its_own_after_a_while(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "cars.tnq"
    append(path, 1, 2, 3)
    reader = Reader(hw.files(tmp_path / "*.tnq"))
    reader.read()
    shutil.copyfile(path, tmp_path / "other.tnq")
    reader.read()
    monkeypatch.setattr(followed_items, "_COPY_SECONDS", 0.0)
    reader.read()
    assert reader.times == [1, 2, 3, 1, 2, 3]


def test_a_file_that_is_written_anew_with_more_at_its_end_goes_on(tmp_path: Path) -> None:
    """As editors and synchronisation tools do it."""
    path = tmp_path / "cars.tnq"
    append(path, 1, 2, 3)
    reader = Reader(hw.files(path))
    reader.read()
    append(tmp_path / "new", 1, 2, 3, 4)
    os.replace(tmp_path / "new", path)
    reader.read()
    assert reader.times == [1, 2, 3, 4]
    assert not reader.bad


@pytest.mark.parametrize("size", [0, 10, 63, 64, 65, 200, 1023, 1500, 4096, 5000, 20_000])
def test_what_a_file_is(tmp_path: Path, size: int) -> None:
    data = random.Random(size).randbytes(30_000)
    path = tmp_path / "file"
    path.write_bytes(data)
    identity = identify(str(path), size)
    assert recognise(str(path), identity) is Recognition.SAME
    path.write_bytes(data[:size])
    assert recognise(str(path), identity) is Recognition.SAME
    for cut in (size - 1, size // 2, 70):
        if 64 <= cut < size:
            path.write_bytes(data[:cut])
            assert recognise(str(path), identity) is Recognition.CUT
    if size:
        path.write_bytes(b"x" + data[:-1])
        assert recognise(str(path), identity) is Recognition.OTHER
        path.write_bytes(b"")
        assert recognise(str(path), identity) is Recognition.OTHER
    path.unlink()
    assert recognise(str(path), identity) is Recognition.OTHER
