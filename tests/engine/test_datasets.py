"""Engines over data sets: folders, changes during a run, files and addresses that are read again."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import headwater as hw
from headwater.datasets.dataset import DataSet
from headwater.datasets.errors import DataSetError
from headwater.datasets.loading.bulk_load import load
from headwater.engine.watched_data import RefreshedDataSet
from headwater.terms.model import Literal, NamedNode, Triple

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAME = NamedNode("http://ex/name")
QUERY = """PREFIX : <http://ex/>
SELECT ?car ?name WHERE { STREAM <http://ex/s> [RANGE 2s SLIDE 1s] { ?car :at ?gate } ?gate :name ?name }"""


def write_stream(folder: Path, seconds: int = 40, per_second: int = 4) -> str:
    times = [i * 1000 // per_second for i in range(seconds * per_second)]
    lines = [f"{time}\t<http://ex/car{i}> <http://ex/at> <http://ex/g{i % 2}> .\n" for i, time in enumerate(times)]
    (folder / "s.tnq").write_text("".join(lines))
    return str(folder / "s.tnq")


def write_data(folder: Path) -> Path:
    (folder / "gates.ttl").write_text(
        '<http://ex/g0> <http://ex/name> "north" . <http://ex/g1> <http://ex/name> "south" .'
    )
    return folder / "gates.ttl"


def an_engine(folder: Path, *, query: str = QUERY, batch_bytes: int | None = 300, **options: object) -> hw.Engine:
    engine = hw.Engine(in_process=True, batch_bytes=batch_bytes, **options)  # type: ignore[arg-type]
    engine.stream("http://ex/s", hw.files(write_stream(folder)))
    engine.register(query, name="q", emit="rstream")
    return engine


def names(answer: hw.Answer) -> set[str]:
    return {term.value for _, term in answer.rows if isinstance(term, Literal)}


@pytest.mark.parametrize("evaluator", ["auto", "reference"])
@pytest.mark.parametrize("on_disk", [True, False])
def test_a_change_is_seen_two_ticks_later_and_no_tick_mixes_versions(
    tmp_path: Path, evaluator: str, on_disk: bool
) -> None:
    engine = an_engine(tmp_path, evaluator=evaluator)
    file = write_data(tmp_path)
    if on_disk:
        load(tmp_path / "set", [file])
    data = engine.dataset(tmp_path / "set" if on_disk else file)
    answers: list[hw.Answer] = []
    named = {data.version: {"north", "south"}}
    changed_at: list[int] = []

    def change(answer: hw.Answer) -> None:
        answers.append(answer)
        if len(answers) % 5 == 0:
            # One name is replaced by another, in one version.
            old = Triple(NamedNode("http://ex/g0"), NAME, Literal(sorted(named[data.version] - {"south"})[0]))
            new = f"north-{len(answers)}"
            data.update(
                f'DELETE DATA {{ {old.subject} {NAME} {old.object} }}; INSERT DATA {{ {old.subject} {NAME} "{new}" }}'
            )
            named[data.version] = {new, "south"}
            changed_at.append(len(answers))

    engine.run(on_answer=change)
    assert [answer.time for answer in answers] == sorted({answer.time for answer in answers})
    assert len(answers) >= 40 and len(changed_at) >= 7
    for answer in answers:
        assert answer.data_version is not None
        if len(answer.rows) > 4:
            assert names(answer) == named[answer.data_version[0]]
    versions = [answer.data_version[0] for answer in answers if answer.data_version]
    assert versions == sorted(versions)
    for number, place in enumerate(changed_at[:-1]):
        assert versions[place + 1] >= number + 2, "seen at the second tick behind the change"


@pytest.mark.parametrize("per_second", [100, 1000])
def test_with_default_batches_a_change_is_seen_two_ticks_later(tmp_path: Path, per_second: int) -> None:
    engine = an_engine(tmp_path, batch_bytes=None)
    write_stream(tmp_path, per_second=per_second)
    data = engine.dataset(write_data(tmp_path))
    seen: list[int] = []
    made: list[int] = []

    def change(answer: hw.Answer) -> None:
        assert answer.data_version is not None
        seen.append(answer.data_version[0])
        made.append(data.insert([Triple(NamedNode(f"http://ex/g{len(seen)}"), NAME, Literal("more"))]))

    engine.run(on_answer=change)
    assert len(seen) >= 40
    # The first ticks are left out: the run is still starting.
    assert all(later >= version for version, later in zip(made[10:-3], seen[12:-1], strict=True))


def test_rows_that_a_change_removes_are_in_dstream(tmp_path: Path) -> None:
    engine = hw.Engine(in_process=True, batch_bytes=300)
    engine.stream("http://ex/s", hw.files(write_stream(tmp_path, 20)))
    engine.register(QUERY.replace("RANGE 2s", "RANGE 10s"), name="gone", emit="dstream")
    data = engine.dataset(write_data(tmp_path))
    gone: list[str] = []

    def change(answer: hw.Answer) -> None:
        if answer.time == 5_000_000:
            data.remove([Triple(NamedNode("http://ex/g1"), NAME, Literal("south"))])
        gone.extend(term.value for _, term in answer.rows if isinstance(term, Literal) and answer.time < 9_000_000)

    engine.run(on_answer=change)
    assert gone and set(gone) == {"south"}


def test_a_folder_that_is_no_data_set_says_what_to_do(tmp_path: Path) -> None:
    engine = an_engine(tmp_path)
    with pytest.raises(DataSetError, match="is no data set: make one with headwater load"):
        engine.dataset(tmp_path)
    load(tmp_path / "set", [write_data(tmp_path)])
    with pytest.raises(hw.SettingError, match="headwater load --graph"):
        engine.dataset(tmp_path / "set", graph="http://ex/g")


def test_a_missing_graph_in_from_is_an_error(tmp_path: Path) -> None:
    load(tmp_path / "set", [write_data(tmp_path)], graph="http://ex/gates")
    text = "SELECT * FROM <http://ex/{}> WHERE {{ ?s ?p ?o }}"
    engine = hw.Engine(in_process=True)
    engine.dataset(tmp_path / "set")
    (answer,) = engine.register(text.format("gates")).answers()
    assert len(answer.rows) == 2
    other = hw.Engine(in_process=True)
    other.dataset(tmp_path / "set")
    other.register(text.format("none"))
    with pytest.raises(hw.RegistrationError, match="no such graph is loaded"):
        other.run()


def test_several_data_sets_are_one(tmp_path: Path) -> None:
    load(tmp_path / "one", [write_data(tmp_path)])
    load(tmp_path / "two", [write_data(tmp_path)], graph="http://ex/gates")
    engine = hw.Engine(in_process=True)
    for name in ("one", "two"):
        engine.dataset(tmp_path / name)
    more = engine.dataset([Triple(NamedNode("http://ex/g0"), NAME, Literal("north"))])
    text = "SELECT ?g ?o WHERE { { ?s ?p ?o } UNION { GRAPH ?g { ?s ?p ?o } } }"
    (answer,) = engine.register(text).answers()
    assert len(answer.rows) == 4 and answer.data_version == (1, 1, 1)
    assert more.statements == 1


def test_a_later_run_from_a_checkpoint_goes_on_with_the_data_as_it_is(tmp_path: Path) -> None:
    load(tmp_path / "set", [write_data(tmp_path)])
    found: list[hw.Answer] = []
    for part in range(2):
        engine = hw.Engine(in_process=True, checkpoint=tmp_path / "checkpoint")
        lines = [f"{i * 250}\t<http://ex/car{i}> <http://ex/at> <http://ex/g{i % 2}> .\n" for i in range(40)]
        (tmp_path / f"s{part}.tnq").write_text("".join(lines[part * 20 : part * 20 + 20]))
        engine.stream("http://ex/s", hw.files(str(tmp_path / "s*.tnq")))
        engine.register(QUERY, name="q", emit="rstream")
        data = engine.dataset(tmp_path / "set")
        engine.run(on_answer=found.append, drain=part == 1)
        data.insert([Triple(NamedNode("http://ex/g0"), NAME, Literal("late"))])
    assert ["late" in names(answer) for answer in found] == [answer.time >= 5_000_000 for answer in found]


def test_a_file_is_read_again_when_it_has_changed(tmp_path: Path) -> None:
    engine = an_engine(tmp_path)
    file = write_data(tmp_path)
    data = engine.dataset(file, refresh="30ms")
    ((_, watched),) = engine._data._refreshed
    assert not watched.refresh()
    file.write_text('<http://ex/g0> <http://ex/name> "west" .')
    os.utime(file, ns=(1, 1))
    assert watched.refresh()
    data.advance()
    assert {str(quad.object) for quad in data.quads()} == {'"west"'}
    file.write_text("<http://ex/g0> <http://ex/name> ")
    assert not watched.refresh(), "what cannot be read leaves the data as it was"
    assert data.latest() == data.version


def test_a_run_looks_at_its_sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looked = threading.Event()
    monkeypatch.setattr(RefreshedDataSet, "refresh", lambda self: looked.set())
    engine = an_engine(tmp_path)
    engine.dataset(write_data(tmp_path), refresh=0.001)
    engine.run(on_answer=lambda _: looked.wait(5) and None)
    assert looked.is_set()
    with pytest.raises(ValueError, match="only files and addresses"):
        engine.dataset([], refresh=1.0)


@contextmanager
def serving(documents: list[bytes]) -> Iterator[str]:
    """A server that gives the first document until it is taken out of the list."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            tag = str(hash(documents[0]))
            self.send_response(304 if self.headers.get("If-None-Match") == tag else 200)
            self.send_header("ETag", tag)
            self.send_header("Content-Type", "text/turtle")
            body = b"" if self.headers.get("If-None-Match") == tag else documents[0]
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            return

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/gates"
    finally:
        server.shutdown()
        server.server_close()


def test_an_address_is_read_again_when_its_etag_changes(tmp_path: Path) -> None:
    documents = [b'<#a> <http://ex/name> "north" .', b'<#a> <http://ex/name> "south" .']
    with serving(documents) as address:
        engine = hw.Engine(in_process=True)
        data = engine.dataset(address, graph="http://ex/web", refresh=60)
        ((_, watched),) = engine._data._refreshed
        assert not watched.refresh()
        documents.pop(0)
        assert watched.refresh()
        data.advance()
        (quad,) = data.quads()
        assert (str(quad.object), str(quad.graph_name)) == ('"south"', "<http://ex/web>")
    with pytest.raises(hw.SourceError, match="check the address"):
        hw.Engine(in_process=True).dataset(address)


def test_the_command_loads_what_run_reads(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from typer.testing import CliRunner

    from headwater.cli import app

    write_data(tmp_path)
    done = CliRunner().invoke(app, ["load", str(tmp_path / "gates.ttl"), "--into", str(tmp_path / "set")])
    assert done.exit_code == 0 and "2 statements, version 1; 2 read from 1 files" in done.stdout
    (tmp_path / "bad.nt").write_text("broken\n")
    done = CliRunner().invoke(app, ["load", str(tmp_path / "bad.nt"), "--into", str(tmp_path / "set")])
    assert done.exit_code == 1 and "1 bad lines are listed in" in done.stdout
    assert "could not be read at all" in done.stderr
    done = CliRunner().invoke(app, ["load", str(tmp_path / "none.nt"), "--into", str(tmp_path / "set")])
    assert done.exit_code == 2 and "there is no file" in done.stderr
    (tmp_path / "q.rq").write_text(QUERY)
    arguments = ["run", str(tmp_path / "q.rq"), "--stream", f"http://ex/s={write_stream(tmp_path, 3)}"]
    done = CliRunner().invoke(app, [*arguments, "--data", str(tmp_path / "set"), "--in-process", "--format", "csv"])
    assert done.exit_code == 0 and "north" in done.stdout
    assert DataSet.open(tmp_path / "set").statements == 2


@pytest.mark.parametrize("shards", [1, 2])
def test_on_spark_all_shards_take_a_version_with_the_same_batch(
    spark: SparkSession, tmp_path: Path, shards: int
) -> None:
    load(tmp_path / "set", [write_data(tmp_path)])
    engine = hw.Engine(spark, batch_bytes=2000, shards=shards)
    engine.stream("http://ex/s", hw.files(write_stream(tmp_path)))
    engine.register(QUERY, name="q", emit="rstream")
    data = engine.dataset(tmp_path / "set")
    answers: list[hw.Answer] = []

    def change(answer: hw.Answer) -> None:
        answers.append(answer)
        if answer.time == 3_000_000:
            data.update(
                'DELETE DATA { <http://ex/g0> <http://ex/name> "north" }; '
                'INSERT DATA { <http://ex/g0> <http://ex/name> "west" }'
            )

    engine.run(on_answer=change)
    assert len(answers) >= 40
    expected: dict[tuple[int, ...], set[str]] = {(1,): {"north", "south"}, (2,): {"west", "south"}}
    full = [answer for answer in answers if len(answer.rows) > 4]
    assert [names(answer) for answer in full] == [expected[answer.data_version or ()] for answer in full]
    assert {answer.data_version for answer in full} == {(1,), (2,)}
