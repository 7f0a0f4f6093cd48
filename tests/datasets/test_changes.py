"""Changes of a data set: one version each, all or nothing, seen by a reader when it advances."""

from __future__ import annotations

import fcntl
from pathlib import Path

import pytest
from pyoxigraph import Quad, Store

from headwater.datasets.change_log import IdQuad
from headwater.datasets.dataset import DataSet
from headwater.datasets.errors import DataSetError
from headwater.datasets.loading.bulk_load import load
from headwater.datasets.loading.temporary_dataset import add_statements
from headwater.datasets.version_watch import VersionWatch
from headwater.terms.model import XSD, Literal, NamedNode, Triple

A, B, P, G = (NamedNode(f"http://ex/{name}") for name in "abpg")
ONE = Literal("01", datatype=NamedNode(XSD + "integer"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    add_statements(tmp_path / "set", [Quad(A, P, ONE), Quad(A, P, B, G)])
    return tmp_path / "set"


def content(data: DataSet) -> set[str]:
    return {str(quad) for quad in data.quads()}


def test_each_change_is_a_version_and_readers_see_it_when_they_advance(folder: Path) -> None:
    writer, reader = DataSet.open(folder), DataSet.open(folder)
    assert writer.insert([Triple(B, P, A), Triple(B, P, B)], graph="http://ex/new") == 2
    assert writer.remove([Quad(A, P, ONE)]) == 3
    assert (reader.version, reader.latest(), reader.statements) == (1, 3, 2)
    reader.advance(2)
    assert (reader.version, reader.statements) == (2, 4)
    assert NamedNode("http://ex/new") in set(reader.named_graphs())
    reader.advance()
    assert content(reader) == content(writer) and reader.statements == 3
    assert VersionWatch(folder).newest_version() == 3
    assert DataSet.open(folder, version=2).statements == 4


def test_what_is_there_already_changes_nothing(folder: Path) -> None:
    data = DataSet.open(folder)
    data.insert([Quad(A, P, ONE)])
    data.remove([Quad(B, P, ONE)])
    assert data.statements == 2
    data.change(added=[Quad(B, P, B)], removed=[Quad(B, P, B)])
    assert data.statements == 3, "what is removed and added is there"
    data.remove([Quad(B, P, B)])
    data.insert([Quad(A, P, ONE)])
    data.remove([Quad(A, P, ONE)])
    data.insert([Quad(A, P, ONE)])
    assert content(data) == content(DataSet.open(folder)) and data.statements == 2


def test_a_sparql_update_is_one_version(folder: Path) -> None:
    data = DataSet.open(folder)
    text = """PREFIX : <http://ex/>
        DELETE { ?s :p ?o } INSERT { ?s :q ?o ; :was "01"^^<http://www.w3.org/2001/XMLSchema#string> }
        WHERE { ?s :p ?o };
        INSERT DATA { GRAPH :g { :b :p :b } }"""
    assert data.update(text) == 2
    assert content(data) == {
        f"{A} <http://ex/q> {ONE}",
        f'{A} <http://ex/was> "01"',
        f"{A} {P} {B} {G}",
        f"{B} {P} {B} {G}",
    }


@pytest.mark.parametrize(
    "text",
    [
        "DELETE { ?s :p ?o } WHERE { ?s :p ?o FILTER(isIRI(?o)) }",
        "DELETE WHERE { GRAPH ?g { ?s :p ?o } }",
        "WITH :g DELETE { ?s :p ?o } INSERT { ?s :q ?o } WHERE { ?s :p ?o }",
        "INSERT { ?o :b ?s } WHERE { ?s :p ?o } ; DELETE DATA { GRAPH :g { :a :p :b } } ; DELETE WHERE { ?x :b ?y }",
        "DELETE { ?s ?what ?o } WHERE { ?s :q ?x . ?s ?what ?o }",
        "DELETE { ?s :r ?o } INSERT { ?s :p ?o } WHERE { ?s :q ?x OPTIONAL { ?s :r ?o } }",
        "CLEAR GRAPH :g",
        "COPY :g TO :h",
    ],
)
def test_an_update_does_what_it_does_to_a_store(tmp_path: Path, text: str) -> None:
    names = [NamedNode(f"http://ex/{name}") for name in "abcpqr"]
    quads = [Quad(s, p, o) for s in names[:3] for p in names[3:] for o in names[:2]]
    quads += [Quad(s, names[3], o, G) for s in names[:2] for o in names[:3]]
    add_statements(tmp_path / "set", quads)
    store = Store()
    store.extend(quads)
    store.update(f"PREFIX : <http://ex/> {text}")
    data = DataSet.open(tmp_path / "set")
    data.update(f"PREFIX : <http://ex/> {text}")
    assert content(data) == {str(quad) for quad in store} != {str(quad) for quad in quads}


def test_an_update_that_copies_too_many_statements_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headwater.datasets.updates.LARGEST_COPY", 1)
    data = DataSet.open(folder)
    with pytest.raises(DataSetError, match="more than 1 statements"):
        data.update("DELETE WHERE { ?s ?p ?o }")
    assert data.update("PREFIX : <http://ex/> INSERT { :b :q ?o } WHERE { :a :q ?o }") == 1


def test_data_in_an_update_stays_as_it_is_written(folder: Path) -> None:
    data = DataSet.open(folder)
    data.update('PREFIX : <http://ex/> INSERT DATA { :b :p "007"^^<http://www.w3.org/2001/XMLSchema#integer> }')
    assert any('"007"' in text for text in content(data))
    data.update('PREFIX : <http://ex/> DELETE DATA { :b :p "007"^^<http://www.w3.org/2001/XMLSchema#integer> . }')
    assert data.statements == 2


@pytest.mark.parametrize(
    "text",
    [
        "PREFIX : <http://ex/> INSERT DATA { :b :p :c } ; INSERT DATA { :b :p }",
        "PREFIX : <http://ex/> INSERT DATA { :b :p :c } ; LOAD <http://127.0.0.1:9/none.ttl>",
        "nonsense",
    ],
)
def test_an_update_that_fails_half_way_does_nothing(folder: Path, text: str) -> None:
    data = DataSet.open(folder)
    before = content(data)
    with pytest.raises(DataSetError, match="nothing is changed"):
        data.update(text)
    assert content(DataSet.open(folder)) == before and data.version == 1


def test_a_line_that_was_not_written_to_its_end_does_not_count(folder: Path) -> None:
    data = DataSet.open(folder)
    data.insert([Quad(B, P, A)])
    (log,) = folder.glob("changes-*.log")
    with open(log, "ab") as stream:
        stream.write(b'{"version": 3, "added": "<http://ex/a')
    assert DataSet.open(folder).version == 2
    assert VersionWatch(folder).newest_version() == 2
    assert DataSet.open(folder).insert([Quad(B, P, ONE)]) == 3
    assert DataSet.open(folder).statements == 4


def test_only_one_process_changes_at_a_time(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headwater.datasets.dataset.LOCK_WAIT_SECONDS", 0.01)
    with open(folder / "lock", "w") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(DataSetError, match="another process"):
            DataSet.open(folder).insert([Quad(B, P, B)])


def test_compacting_keeps_the_statements(folder: Path) -> None:
    data, reader = DataSet.open(folder), DataSet.open(folder)
    data.insert([Quad(B, P, Literal("new"))])
    data.remove([Quad(A, P, ONE)])
    before = content(data)
    assert data.compact() == 4 and data.log_bytes == 0
    assert reader.changes_until() is None
    reader.advance()
    assert content(data) == content(reader) == content(DataSet.open(folder)) == before
    assert data.insert([Quad(B, P, B)]) == 5


def test_a_version_that_does_not_exist_is_refused(folder: Path) -> None:
    with pytest.raises(DataSetError, match="has no version 7"):
        DataSet.open(folder, version=7)


def test_a_load_keeps_the_changes_before_it(folder: Path, tmp_path: Path) -> None:
    data = DataSet.open(folder)
    data.remove([Quad(A, P, ONE)])
    data.insert([Triple(B, P, Literal("new text"))], graph=G)
    before = content(data)
    (tmp_path / "a.nt").write_text("<http://ex/x> <http://ex/p> <http://ex/y> .")
    load(folder, [tmp_path / "a.nt"])
    assert content(DataSet.open(folder)) == before | {"<http://ex/x> <http://ex/p> <http://ex/y>"}


def test_the_names_of_the_version_before_work_with_a_warning(folder: Path) -> None:
    data, heard = DataSet.open(folder), list[tuple[IdQuad, int]]()
    quad = next(data.id_quads(None, None, None, None))
    DataSet.open(folder).insert([Quad(B, P, B)])
    with pytest.deprecated_call():
        assert data.ahead() == data.changes_until()
    with pytest.deprecated_call():
        data.advance(tell=lambda statement, count: heard.append((statement, count)))
    assert [count for _, count in heard] == [1]
    with pytest.deprecated_call():
        counts = data.counts()
    assert counts == data.predicate_counts()
    with pytest.deprecated_call():
        assert counts[None][P].literals
    with pytest.deprecated_call():
        assert data.has(quad)
    with pytest.deprecated_call(match="use base_name"):
        assert data.base == data.base_name
    with pytest.deprecated_call():
        assert data.term_of(number=quad[1]) == data.term_of(quad[1])
