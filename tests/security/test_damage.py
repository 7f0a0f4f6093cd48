"""A damaged data set or checkpoint gives an error that names the file and what to do, and never fewer statements."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

import headwater as hw
from headwater.datasets.dataset import DataSet
from headwater.datasets.errors import DataSetError
from headwater.datasets.loading.bulk_load import load
from headwater.running.checkpoints import CheckpointError
from headwater.terms.model import Literal, NamedNode, Quad, Triple


def statement(number: int) -> Quad:
    return Quad(NamedNode(f"a:{number}"), NamedNode("a:p"), Literal(f"value {number}"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A data set with a hundred loaded statements and three changes."""
    (tmp_path / "a.nq").write_text("".join(f"{statement(i)} .\n" for i in range(100)))
    load(tmp_path / "data", [tmp_path / "a.nq"])
    data = DataSet.open(tmp_path / "data")
    for i in range(100, 103):
        data.insert([statement(i)])
    assert data.statements == 103
    return tmp_path / "data"


def base_of(folder: Path) -> Path:
    (base,) = folder.glob("base-*")
    return base


def log_of(folder: Path) -> Path:
    (log,) = folder.glob("changes-*.log")
    return log


def edit(path: Path, change: Callable[[bytes], bytes]) -> None:
    path.write_bytes(change(path.read_bytes()))


def cut_last_byte(content: bytes) -> bytes:
    return content[:-1]


def flip_a_bit(content: bytes) -> bytes:
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]


COLUMNS = ["s", "o", "os", "oo", "groups", "terms.ids", "terms.offsets", "terms.blob"]


@pytest.mark.parametrize("change", [cut_last_byte, flip_a_bit, lambda content: content + b"x", lambda content: b""])
@pytest.mark.parametrize("name", COLUMNS)
def test_a_column_that_is_not_as_it_was_written(folder: Path, name: str, change: Callable[[bytes], bytes]) -> None:
    edit(base_of(folder) / name, change)
    with pytest.raises(DataSetError, match=rf"base-1/{name} is damaged: .*headwater load FILE"):
        DataSet.open(folder)


@pytest.mark.parametrize("name", COLUMNS)
def test_a_column_that_is_missing(folder: Path, name: str) -> None:
    (base_of(folder) / name).unlink()
    with pytest.raises(DataSetError, match=rf"base-1/{name}"):
        DataSet.open(folder)


def test_checksums_that_cannot_be_read(folder: Path) -> None:
    (base_of(folder) / "checksums.json").write_text("{")
    with pytest.raises(DataSetError, match=r"checksums.json is damaged"):
        DataSet.open(folder)


def test_every_byte_of_large_files_is_compared_on_demand(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headwater.datasets.checksums._SMALL", 0)
    edit(base_of(folder) / "terms.blob", flip_a_bit)
    data = DataSet.open(folder)
    with pytest.raises(DataSetError, match=r"terms.blob is damaged: its checksum"):
        data.verify()
    with pytest.raises(DataSetError, match=r"terms.blob is damaged: its checksum"):
        data.compact()


def test_a_log_that_was_deleted(folder: Path) -> None:
    data = DataSet.open(folder)
    log_of(folder).unlink()
    for use in (lambda: DataSet.open(folder), data.advance, lambda: data.insert([statement(200)]), data.compact):
        with pytest.raises(DataSetError, match=r"changes-1.log.*(is missing|No such file)"):
            use()
    (folder / "changes-1.log").touch()
    assert DataSet.open(folder).statements == 100


def test_a_log_that_was_cut_while_it_was_in_use(folder: Path) -> None:
    data = DataSet.open(folder)
    os.truncate(log_of(folder), 10)
    with pytest.raises(DataSetError, match=r"changes-1.log is damaged: it has 10 bytes"):
        data.advance()


@pytest.mark.parametrize(
    "change",
    [
        lambda lines: [lines[0], b"nonsense\n", lines[2]],
        lambda lines: [lines[0], b"{}\n", lines[2]],
        lambda lines: [lines[0], lines[1].replace(b"value 101", b"value 999"), lines[2]],
        lambda lines: [lines[0], lines[1].replace(b"<a:101>", b"<a:101"), lines[2]],
        lambda lines: [lines[0], lines[1][:5] + b"\0" * 5 + lines[1][10:], lines[2]],
        lambda lines: [lines[0], lines[2]],
        lambda lines: [lines[0], lines[2], lines[1]],
    ],
)
def test_a_line_of_the_log_that_is_not_as_it_was_written(
    folder: Path, change: Callable[[list[bytes]], list[bytes]]
) -> None:
    log = log_of(folder)
    lines = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join(change(lines)))
    with pytest.raises(DataSetError, match=r"changes-1.log, line 2, is damaged: ") as caught:
        DataSet.open(folder)
    # What the message advises helps.
    size = int(str(caught.value).split("truncate -s ")[1].split()[0])
    os.truncate(log, size)
    assert DataSet.open(folder).statements == 101


def test_a_last_line_without_its_end_is_of_a_writer_that_died(folder: Path) -> None:
    edit(log_of(folder), cut_last_byte)
    assert DataSet.open(folder).statements == 102


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (
            lambda fields: {**fields, "flavour": "new"},
            r"a field that this version .* does not know .flavour.",
        ),
        (lambda fields: {**fields, "base": "../../elsewhere"}, r"are no files of it"),
        (lambda fields: {key: fields[key] for key in fields if key != "graphs"}, r"dataset.json is damaged"),
        (lambda fields: {**fields, "files": 5}, r"dataset.json is damaged"),
        (lambda fields: {**fields, "version": 9}, r"dataset.json is damaged: its checksum"),
        (lambda fields: {**fields, "statements": 1}, r"dataset.json is damaged: its checksum"),
        (lambda fields: [], r"is no manifest"),
    ],
)
def test_a_manifest_that_cannot_be_right(
    folder: Path, change: Callable[[dict[str, object]], object], reason: str
) -> None:
    path = folder / "dataset.json"
    path.write_text(json.dumps(change(json.loads(path.read_text()))))
    with pytest.raises(DataSetError, match=reason) as caught:
        DataSet.open(folder)
    assert "dataset.json" in str(caught.value)


def test_the_journal_of_a_load_that_cannot_be_read(folder: Path, tmp_path: Path) -> None:
    (folder / "loading").mkdir()
    (folder / "loading" / "journal.json").write_text('{"parts": 5')
    (tmp_path / "b.nt").write_text("<a:s> <a:p> <a:o> .\n")
    with pytest.raises(DataSetError, match=r"journal.json is damaged .*: delete the folder .*loading and give"):
        load(folder, [tmp_path / "b.nt"])
    assert DataSet.open(folder).statements == 103


def run(folder: Path, checkpoint: Path) -> int:
    engine = hw.Engine(in_process=True, checkpoint=str(checkpoint))
    engine.stream("s:s", hw.files(str(folder / "*.tnq")))
    engine.register("SELECT ?o WHERE { STREAM <s:s> [RANGE 10s] { ?s <a:p> ?o } }", name="q")
    found: list[object] = []
    engine.run(on_answer=found.append)
    return len(found)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("state", cut_last_byte),
        ("state", flip_a_bit),
        ("state", lambda content: b""),
        ("state", lambda content: content[:20]),
        ("headwater.json", lambda content: b""),
        ("headwater.json", lambda content: content[:-5]),
    ],
)
def test_a_checkpoint_that_is_not_as_it_was_written(
    tmp_path: Path, name: str, change: Callable[[bytes], bytes]
) -> None:
    triples = [Triple(NamedNode("a:s"), NamedNode("a:p"), Literal(i)) for i in range(20)]
    (tmp_path / "s.tnq").write_text("".join(f"{i}000\t{triple} .\n" for i, triple in enumerate(triples)))
    assert run(tmp_path, tmp_path / "checkpoint")
    path = tmp_path / "checkpoint" / name
    edit(path, change)
    with pytest.raises(CheckpointError, match="use another folder") as caught:
        run(tmp_path, tmp_path / "checkpoint")
    assert str(tmp_path / "checkpoint") in str(caught.value)
