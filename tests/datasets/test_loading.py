"""Loading: all formats, bad lines, interruptions; a reader never sees half a load."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
from pathlib import Path

import pytest
from pyoxigraph import BlankNode, DefaultGraph

from headwater.datasets.dataset import DataSet
from headwater.datasets.errors import DataSetError, StrictLoadError
from headwater.datasets.folder import MANIFEST
from headwater.datasets.linked_data import LinkedData
from headwater.datasets.loading import bulk_load as loading
from headwater.datasets.loading.bulk_load import LoadProgress, load
from headwater.terms.model import XSD, Literal, NamedNode, Quad

LINES = "".join(f'<http://ex/s{i}> <http://ex/p{i % 3}> "{i:03d}"^^<{XSD}integer> .\n' for i in range(200))


def statements(folder: Path) -> set[str]:
    return {str(quad) for quad in DataSet.open(folder).quads()}


def expected(text: str = LINES) -> set[str]:
    return {line.removesuffix(" .") for line in text.splitlines()}


def test_literals_stay_as_they_were_written(tmp_path: Path) -> None:
    (tmp_path / "a.nt").write_text(LINES)
    report = load(tmp_path / "set", [tmp_path / "a.nt"])
    assert (report.statements, report.read, report.files, report.bad) == (200, 200, 1, 0)
    assert statements(tmp_path / "set") == expected()


@pytest.mark.parametrize("ending, pack", [("gz", gzip.compress), ("bz2", bz2.compress), ("xz", lzma.compress)])
def test_compressed_files(tmp_path: Path, ending: str, pack: object) -> None:
    (tmp_path / f"a.nt.{ending}").write_bytes(pack(LINES.encode()))  # type: ignore[operator]
    load(tmp_path / "set", [tmp_path / f"a.nt.{ending}"])
    assert statements(tmp_path / "set") == expected()


DOCUMENTS = {
    "a.ttl": "<http://ex/a> <http://ex/p> 01 , [ <http://ex/q> 'x'@en ] .",
    "a.trig": "<http://ex/g> { <http://ex/a> <http://ex/p> 1.0 }",
    "a.nq": "<http://ex/a> <http://ex/p> <http://ex/b> <http://ex/g> .\n",
    "a.rdf": '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="http://ex/">'
    '<rdf:Description rdf:about="http://ex/a"><e:p>x</e:p></rdf:Description></rdf:RDF>',
    "a.jsonld": '{"@id": "http://ex/a", "http://ex/p": "x"}',
}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_format_is_read_as_a_document_of_it(tmp_path: Path, name: str) -> None:
    from headwater.terms.rdf_documents import read_quads

    (tmp_path / name).write_text(DOCUMENTS[name])
    load(tmp_path / "set", [tmp_path / name])
    assert statements(tmp_path / "set") == {str(quad) for quad in read_quads(tmp_path / name)}


def test_a_graph_for_what_stands_in_none(tmp_path: Path) -> None:
    (tmp_path / "a.nq").write_text("<http://ex/a> <http://ex/p> 'x' .\n".replace("'", '"') + DOCUMENTS["a.nq"])
    load(tmp_path / "set", [tmp_path / "a.nq"], graph="http://ex/mine")
    data = LinkedData([DataSet.open(tmp_path / "set")])
    assert {graph.value for graph in data.named_graphs()} == {"http://ex/mine", "http://ex/g"}
    assert not list(data.quads_for_pattern(None, None, None, DefaultGraph()))
    (quad,) = data.quads_for_pattern(None, None, None, NamedNode("http://ex/mine"))
    assert quad == Quad(NamedNode("http://ex/a"), NamedNode("http://ex/p"), Literal("x"), NamedNode("http://ex/mine"))


def test_bad_lines_are_reported_with_file_and_line_and_the_rest_is_loaded(tmp_path: Path) -> None:
    lines = LINES.splitlines(keepends=True)
    lines[6] = "this is no statement\n"
    lines[150] = "<http://ex/s> <http://ex/p> .\n"
    (tmp_path / "a.nt").write_text("".join(lines))
    report = load(tmp_path / "set", [tmp_path / "a.nt"])
    assert (report.statements, report.bad) == (198, 2)
    assert report.bad_lines is not None
    found = [json.loads(line) for line in report.bad_lines.read_text().splitlines()]
    assert [(one["file"], one["line"]) for one in found] == [(str(tmp_path / "a.nt"), 7), (str(tmp_path / "a.nt"), 151)]
    assert found[0]["text"] == "this is no statement" and found[0]["reason"]


def test_strict_stops_at_the_first_bad_line_and_nothing_counts(tmp_path: Path) -> None:
    (tmp_path / "a.nt").write_text(LINES + "broken\n")
    with pytest.raises(StrictLoadError, match=r"a\.nt:201: "):
        load(tmp_path / "set", [tmp_path / "a.nt"], strict=True)
    with pytest.raises(DataSetError, match="interrupted before its end"):
        DataSet.open(tmp_path / "set")


def test_a_document_that_breaks_off_is_left_out_as_a_whole(tmp_path: Path) -> None:
    (tmp_path / "a.ttl").write_text("<http://ex/a> <http://ex/p> 1 .\n<http://ex/b> <http://ex/p> }")
    (tmp_path / "b.ttl").write_text("<http://ex/b> <http://ex/p> 2 .")
    report = load(tmp_path / "set", [tmp_path])
    assert (report.statements, report.bad) == (1, 1)
    assert report.bad_lines is not None and json.loads(report.bad_lines.read_text())["line"] == 2


def test_an_interrupted_load_goes_on_where_it_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading, "PART_STATEMENTS", 50)
    monkeypatch.setattr("headwater.datasets.loading.statement_blocks.SLICE_BYTES", 1000)
    (tmp_path / "a.nt").write_text(LINES)
    (tmp_path / "b.ttl").write_text(DOCUMENTS["a.ttl"])
    seen: list[LoadProgress] = []

    def stop_half_way(progress: LoadProgress) -> None:
        seen.append(progress)
        if progress.statements > 120:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        load(tmp_path / "set", [tmp_path / "a.nt", tmp_path / "b.ttl"], on_progress=stop_half_way)
    with pytest.raises(DataSetError, match="interrupted before its end"):
        DataSet.open(tmp_path / "set")
    reads: list[LoadProgress] = []
    report = load(tmp_path / "set", [tmp_path / "a.nt", tmp_path / "b.ttl"], on_progress=reads.append)
    assert reads[0].statements > 100, "what the journal covers is not read again"
    assert (report.statements, report.read) == (203, 203)
    assert not (tmp_path / "set" / "loading").exists()


def test_a_file_that_changed_meanwhile_is_read_from_the_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading, "PART_STATEMENTS", 50)
    monkeypatch.setattr("headwater.datasets.loading.statement_blocks.SLICE_BYTES", 1000)
    (tmp_path / "a.nt").write_text(LINES)

    def stop(progress: LoadProgress) -> None:
        if progress.statements > 120:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        load(tmp_path / "set", [tmp_path / "a.nt"], on_progress=stop)
    other = LINES.replace("http://ex/s", "http://ex/other")
    (tmp_path / "a.nt").write_text(other)
    load(tmp_path / "set", [tmp_path / "a.nt"])
    assert statements(tmp_path / "set") == expected(other)


def test_another_load_leaves_nothing_of_one_that_was_interrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loading, "PART_STATEMENTS", 50)
    monkeypatch.setattr("headwater.datasets.loading.statement_blocks.SLICE_BYTES", 1000)
    (tmp_path / "a.nt").write_text(LINES)
    (tmp_path / "b.nt").write_text("<http://ex/b> <http://ex/p> <http://ex/c> .\n")

    def stop(progress: LoadProgress) -> None:
        if progress.statements > 120:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        load(tmp_path / "set", [tmp_path / "a.nt"], on_progress=stop)
    load(tmp_path / "set", [tmp_path / "b.nt"])
    assert statements(tmp_path / "set") == {"<http://ex/b> <http://ex/p> <http://ex/c>"}
    load(tmp_path / "set", [tmp_path / "a.nt"], graph="http://ex/g")
    assert DataSet.open(tmp_path / "set").statements == 201


def test_files_that_are_there_already_are_left_out_and_others_are_added(tmp_path: Path) -> None:
    (tmp_path / "a.nt").write_text(LINES)
    load(tmp_path / "set", [tmp_path / "a.nt"])
    data = DataSet.open(tmp_path / "set")
    data.insert([Quad(BlankNode("x"), NamedNode("http://ex/p"), Literal("more"))])
    again = load(tmp_path / "set", [tmp_path / "a.nt"])
    assert (again.files, again.known_files, again.version) == (0, 1, 1)
    (tmp_path / "b.nt").write_text("<http://ex/b> <http://ex/p> <http://ex/c> .")
    report = load(tmp_path / "set", [tmp_path / "a.nt", tmp_path / "b.nt"])
    assert (report.files, report.known_files, report.statements) == (1, 1, 202)
    assert report.version == 3
    assert data.changes_until() is None
    data.advance()
    assert data.statements == 202


def test_many_ranges_give_the_same_as_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headwater.datasets.statement_columns.ROWS_AT_A_TIME", 7)
    monkeypatch.setattr("headwater.datasets.stored_terms._BYTES_AT_A_TIME", 1000)
    monkeypatch.setattr(loading, "PART_STATEMENTS", 30)
    monkeypatch.setattr("headwater.datasets.loading.statement_blocks.SLICE_BYTES", 500)
    (tmp_path / "a.nt").write_text(LINES + LINES)
    assert load(tmp_path / "set", [tmp_path / "a.nt"]).statements == 200
    assert statements(tmp_path / "set") == expected()
    group = DataSet.open(tmp_path / "set").columns.base.groups
    assert sum(one.subjects for one in group.values()) == 200


def test_folders_that_are_no_data_sets_say_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(DataSetError, match="there is no folder"):
        DataSet.open(tmp_path / "absent")
    (tmp_path / "plain").mkdir()
    (tmp_path / "plain" / "a.txt").touch()
    with pytest.raises(DataSetError, match="is no data set: make one with headwater load"):
        DataSet.open(tmp_path / "plain")
    (tmp_path / "a.nt").write_text(LINES)
    with pytest.raises(DataSetError, match="holds other files"):
        load(tmp_path / "plain", [tmp_path / "a.nt"])
    with pytest.raises(DataSetError, match="there is no file"):
        load(tmp_path / "set", [tmp_path / "absent.nt"])
    with pytest.raises(DataSetError, match="no ending of an RDF file"):
        load(tmp_path / "set", [tmp_path / "plain" / "a.txt"])
    with pytest.raises(DataSetError, match="no RDF file in"):
        load(tmp_path / "set", [tmp_path / "plain"])


def test_a_data_set_of_another_format_version_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.nt").write_text(LINES)
    load(tmp_path / "set", [tmp_path / "a.nt"])
    manifest = tmp_path / "set" / MANIFEST
    for version, words in ((0, "an older version"), (99, "a newer version")):
        manifest.write_text(json.dumps({**json.loads(manifest.read_text()), "format": version}))
        with pytest.raises(DataSetError, match=f"{words} of Headwater.*load its files again"):
            DataSet.open(tmp_path / "set")
    manifest.write_text("{")
    with pytest.raises(DataSetError, match="no manifest"):
        DataSet.open(tmp_path / "set")


def test_a_compressed_file_that_was_cut_is_reported(tmp_path: Path) -> None:
    (tmp_path / "a.nt.gz").write_bytes(gzip.compress(b"".join(LINES.encode() for _ in range(1000)))[:-500])
    report = load(tmp_path / "set", [tmp_path / "a.nt.gz"])
    assert report.bad == 1 and report.bad_lines is not None
    assert "broken gzip file" in report.bad_lines.read_text()
