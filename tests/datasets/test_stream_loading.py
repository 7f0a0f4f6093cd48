"""Loading from what can be read once: standard input, named pipes, open streams."""

from __future__ import annotations

import io
import os
import threading
from pathlib import Path

import pytest
from typer.testing import CliRunner

from headwater.cli import app
from headwater.datasets.dataset import DataSet
from headwater.datasets.errors import DataSetError, StrictLoadError
from headwater.datasets.loading import bulk_load, statement_blocks
from headwater.datasets.loading.bulk_load import LoadProgress, load
from headwater.terms.ids.hash_collisions import HashCollision

LINES = "".join(f'<http://ex/s{i}> <http://ex/p{i % 3}> "{i}" .\n' for i in range(200))


def texts(folder: Path) -> set[str]:
    return {str(quad) + " .\n" for quad in DataSet.open(folder).quads()}


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk_load, "PART_STATEMENTS", 50)
    monkeypatch.setattr(statement_blocks, "SLICE_BYTES", 1_000)


@pytest.mark.usefixtures("small_parts")
def test_a_stream_has_as_many_parts_as_it_needs(tmp_path: Path) -> None:
    seen: list[LoadProgress] = []
    report = load(tmp_path / "set", [io.BytesIO(LINES.encode())], on_progress=seen.append)
    assert (report.statements, report.read, report.files) == (200, 200, 1)
    assert texts(tmp_path / "set") == set(LINES.splitlines(keepends=True))
    assert len(seen) > 5 and seen[-2].bytes_read == len(LINES)


def test_standard_input_beside_a_file(tmp_path: Path) -> None:
    (tmp_path / "a.ttl").write_text("<http://ex/a> <http://ex/p> <http://ex/b> .")
    into = tmp_path / "set"
    done = CliRunner().invoke(app, ["load", str(tmp_path / "a.ttl"), "-", "--into", str(into)], input=LINES)
    assert done.exit_code == 0, done.output
    assert "201 statements, version 1; 201 read from 2 files" in done.output
    assert len(texts(into)) == 201


def test_a_named_pipe(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_text(LINES))
    writer.start()
    report = load(tmp_path / "set", [pipe], graph="http://ex/g")
    writer.join()
    assert report.statements == 200
    assert {quad.graph_name.value for quad in DataSet.open(tmp_path / "set").quads()} == {"http://ex/g"}  # type: ignore[union-attr]


def test_a_stream_is_loaded_each_time(tmp_path: Path) -> None:
    load(tmp_path / "set", [io.BytesIO(LINES.encode())])
    report = load(tmp_path / "set", [io.BytesIO(b"<http://ex/a> <http://ex/p> <http://ex/b> .\n")])
    assert (report.statements, report.version) == (201, 2)


@pytest.mark.usefixtures("small_parts")
def test_what_an_interrupted_load_has_of_a_stream_is_not_in_the_next_one(tmp_path: Path) -> None:
    def stop(progress: LoadProgress) -> None:
        if progress.statements > 100:
            raise KeyboardInterrupt

    (tmp_path / "b.nt").write_text("<http://ex/a> <http://ex/p> <http://ex/b> .\n")
    with pytest.raises(KeyboardInterrupt):
        load(tmp_path / "set", [io.BytesIO(LINES.encode())], on_progress=stop)
    assert (tmp_path / "set" / "loading" / "journal.json").exists()
    assert load(tmp_path / "set", [tmp_path / "b.nt"]).statements == 1


def test_bad_lines_of_a_stream_are_named_by_their_number(tmp_path: Path) -> None:
    data = LINES.encode() + b"nonsense\n"
    report = load(tmp_path / "set", [io.BytesIO(data)])
    assert (report.statements, report.bad) == (200, 1)
    assert report.first_bad.startswith("the stream:201: ")
    with pytest.raises(StrictLoadError):
        load(tmp_path / "other", [io.BytesIO(data)], strict=True)


def test_a_stream_with_two_terms_of_one_id_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def collide(*_: object, **__: object) -> None:
        raise HashCollision(7, None, None)

    monkeypatch.setattr(bulk_load, "write_part", collide)
    with pytest.raises(DataSetError, match="load its statements from a file"):
        load(tmp_path / "set", [io.BytesIO(LINES.encode())])
    assert not (tmp_path / "set" / "loading").exists()
