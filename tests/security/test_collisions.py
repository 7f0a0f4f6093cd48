"""Two terms that have one id by chance are never one: hashes of a few bits make that happen."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyoxigraph import Quad, Store

import headwater as hw
from headwater.algebra.build import plan_query
from headwater.datasets.dataset import DataSet
from headwater.datasets.linked_data import LinkedData
from headwater.datasets.loading.bulk_load import load
from headwater.datasets.loading.temporary_dataset import add_statements
from headwater.execution.program import Program
from headwater.execution.registered import RegisteredQuery
from headwater.kernel.kernel_evaluator import KernelEvaluator
from headwater.language.parser import parse
from headwater.terms.ids.term_ids import encode
from headwater.terms.model import Element, NamedNode, Triple
from headwater.terms.scanning.ranges import scan_range
from headwater.terms.scanning.scanner import scan
from headwater.windows.settings import resolve_settings
from tests.federation.servers import serving, sparql

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Collide = Callable[..., None]
BITS = 24
"""Few enough to find terms that collide, and enough for all others of a test not to."""


def colliding_iris(name: str, number: int = 2) -> list[str]:
    """IRIs that have one id now."""
    found: dict[int, list[str]] = {}
    for place in count():
        iri = f"urn:{name}:{place}"
        alike = found.setdefault(encode(NamedNode(iri)), [])
        alike.append(iri)
        if len(alike) == number:
            return alike
    raise AssertionError


@pytest.fixture
def pair(collide: Collide) -> Iterator[list[str]]:
    """Two IRIs that have one id."""
    collide(BITS)
    yield colliding_iris("x")


def engine_of(tmp_path: Path, streams: dict[str, str], batch_bytes: int | None = None) -> hw.Engine:
    """An engine that reads some texts as streams, and keeps dead letters."""
    engine = hw.Engine(in_process=True, dead_letters=tmp_path / "letters", batch_bytes=batch_bytes)
    for name, text in streams.items():
        path = tmp_path / f"{name}.tnq"
        path.write_text(text)
        engine.stream(name, hw.files(path))
    return engine


def run(
    tmp_path: Path, query: str, streams: dict[str, str], data: Sequence[Path] = ()
) -> tuple[list[list[object]], list[str]]:
    """The rows of all answers, and the texts of the dead letters."""
    engine = engine_of(tmp_path, streams)
    for one in data:
        engine.dataset(one)
    engine.register(query, emit="rstream")
    rows: list[list[object]] = []
    engine.run(on_batch=lambda batch: rows.extend(list(row.values()) for row in batch.to_arrow().to_pylist()))
    return rows, read_letters(tmp_path / "letters")


def read_letters(folder: Path) -> list[str]:
    found = [json.loads(line) for path in sorted(folder.glob("*.jsonl")) for line in path.read_text().splitlines()]
    assert all("same internal id" in letter["reason"] and letter["kind"] == "bad" for letter in found)
    return [letter["text"] for letter in found]


COUNT = "SELECT (COUNT(*) AS ?n) WHERE { STREAM <s> [RANGE 1h] { ?x <urn:p> ?y . ?y <urn:q> ?z } }"


def test_a_join_on_a_variable_that_no_answer_shows(tmp_path: Path, pair: list[str]) -> None:
    one, other = pair
    text = f"1000\t<urn:a> <urn:p> <{one}> .\n2000\t<{other}> <urn:q> <urn:b> .\n3000\t<{one}> <urn:q> <urn:c> .\n"
    rows, letters = run(tmp_path, COUNT, {"s": text})
    assert [row[-1] for row in rows] == [0, 0, 1, 0, 0, 0]  # the last three as the window empties
    assert letters == [f"<{other}> <urn:q> <urn:b> ."]


def test_a_join_on_a_variable_that_answers_show(tmp_path: Path, pair: list[str]) -> None:
    one, other = pair
    text = f"1000\t<urn:a> <urn:p> <{one}> .\n2000\t<{other}> <urn:q> <urn:b> .\n3000\t<{one}> <urn:q> <urn:c> .\n"
    query = "SELECT ?y ?z WHERE { STREAM <s> [RANGE 1h] { ?x <urn:p> ?y . ?y <urn:q> ?z } }"
    rows, letters = run(tmp_path, query, {"s": text})
    assert [row[-2:] for row in rows][-1:] == [[one, "urn:c"]]
    assert other not in {cell for row in rows for cell in row}
    assert letters == [f"<{other}> <urn:q> <urn:b> ."]


def test_two_streams(tmp_path: Path, pair: list[str]) -> None:
    one, other = pair
    query = """
        SELECT (COUNT(*) AS ?n)
        WHERE { STREAM <s> [RANGE 1h] { ?x <urn:p> ?y } STREAM <t> [RANGE 1h] { ?y <urn:q> ?z } }
    """
    streams = {"s": f"1000\t<urn:a> <urn:p> <{one}> .\n", "t": f"2000\t<{other}> <urn:q> <urn:b> .\n"}
    rows, letters = run(tmp_path, query, streams)
    assert {row[-1] for row in rows} == {0}
    assert len(letters) == 1


def test_a_stream_and_static_data(tmp_path: Path, pair: list[str]) -> None:
    one, other = pair
    data = tmp_path / "data.ttl"
    data.write_text(f"<{one}> <urn:q> <urn:b> .")
    query = "SELECT (COUNT(*) AS ?n) WHERE { STREAM <s> [RANGE 1h] { ?x <urn:p> ?y } ?y <urn:q> ?z }"
    text = f"1000\t<urn:a> <urn:p> <{other}> .\n2000\t<urn:b> <urn:p> <{one}> .\n"
    rows, letters = run(tmp_path, query, {"s": text}, data=[data])
    assert [row[-1] for row in rows] == [0, 1, 1, 0]  # the last two as the window empties
    assert letters == [f"<urn:a> <urn:p> <{other}> ."]


def test_a_constant_of_a_query(tmp_path: Path, pair: list[str]) -> None:
    one, other = pair
    query = f"SELECT ?x WHERE {{ STREAM <s> [RANGE 1h] {{ ?x <{one}> ?y }} }}"
    text = f"1000\t<urn:a> <{other}> <urn:b> .\n2000\t<urn:c> <{one}> <urn:b> .\n"
    rows, letters = run(tmp_path, query, {"s": text})
    assert [row[-1] for row in rows if row[-1] is not None][-1:] == ["urn:c"]
    assert "urn:a" not in {row[-1] for row in rows}
    assert letters == [f"<urn:a> <{other}> <urn:b> ."]


def test_triples_that_differ_in_a_term_that_no_answer_shows(tmp_path: Path, pair: list[str]) -> None:
    """A window is a graph, in which equal triples are one: those of two terms with one id would be."""
    one, other = pair
    query = "SELECT (COUNT(DISTINCT ?y) AS ?n) WHERE { STREAM <s> [RANGE 1h] { ?x <urn:p> ?y } }"
    text = f"1000\t<urn:a> <urn:p> <{one}> .\n2000\t<urn:a> <urn:p> <{other}> .\n3000\t<urn:a> <urn:p> <urn:z> .\n"
    rows, letters = run(tmp_path, query, {"s": text})
    assert [row[-1] for row in rows] == [1, 1, 2, 1, 1, 0]  # the last three as the window empties
    assert letters == [f"<urn:a> <urn:p> <{other}> ."]


def test_a_term_that_no_window_holds_any_more_has_given_up_its_id(tmp_path: Path, pair: list[str]) -> None:
    one, other = pair
    query = "SELECT ?y WHERE { STREAM <s> [RANGE 1s] { ?x <urn:p> ?y } }"
    text = "".join(f"{1000 * second}\t<urn:a> <urn:p> <{pair[second // 10 % 2]}> .\n" for second in range(1, 40))
    engine = engine_of(tmp_path, {"s": text}, batch_bytes=64)
    engine.register(query, emit="rstream")
    rows: list[object] = []
    engine.run(on_answer=lambda answer: rows.extend(str(row[0]) for row in answer.rows))
    # Each is refused while a window may hold the other: for a moment, of ten seconds.
    assert len(read_letters(tmp_path / "letters")) < 12
    assert {f"<{one}>", f"<{other}>"} == set(rows)


def test_names_of_graphs_tell_elements_apart(tmp_path: Path, pair: list[str]) -> None:
    """Two lines with one time and other graphs are two elements, wherever the file is cut."""
    one, other = pair
    text = f"1000\t<urn:a> <urn:p> <urn:b> <{one}> .\n1000\t<urn:a> <urn:p> <urn:c> <{other}> .\n"
    assert len(scan(text.encode()).element_times) == 2
    cut = len(text.splitlines(keepends=True)[0])
    path = tmp_path / "cut.tnq"
    path.write_text(text)
    assert [len(scan_range(path, start, end).element_times) for start, end in ((0, cut), (cut, None))] == [1, 1]


def test_a_restart_does_the_same(tmp_path: Path, pair: list[str]) -> None:
    _, other = pair
    lines = [f"{second}000\t<urn:a> <urn:p> <{pair[second % 2]}> .\n" for second in range(1, 9)]
    path = tmp_path / "s.tnq"
    for part in range(1, 5):
        path.write_text("".join(lines[: 2 * part]))
        engine = hw.Engine(in_process=True, dead_letters=tmp_path / "letters", checkpoint=tmp_path / "checkpoint")
        engine.stream("s", hw.files(path))
        engine.register("SELECT ?y WHERE { STREAM <s> [RANGE 1h] { ?x <urn:p> ?y } }", emit="rstream")
        rows: list[list[str]] = []
        engine.run(on_answer=lambda answer: rows.append([str(row[0]) for row in answer.rows]), drain=False)  # noqa: B023
        assert {row for some in rows for row in some} <= {f"<{other}>"}
    assert read_letters(tmp_path / "letters") == [line.partition("\t")[2].strip() for line in lines[1::2]]


def test_elements_that_are_objects(tmp_path: Path, pair: list[str]) -> None:
    one, other = pair
    p, q = NamedNode("urn:p"), NamedNode("urn:q")
    a, b = NamedNode("urn:a"), NamedNode("urn:b")
    elements = [
        Element(1_000_000, (Triple(a, p, NamedNode(one)),)),
        Element(2_000_000, (Triple(NamedNode(other), q, b), Triple(a, q, b))),
    ]
    engine = hw.Engine(in_process=True, dead_letters=tmp_path / "letters")
    engine.stream("s", hw.memory(elements))
    engine.register(COUNT, emit="rstream")
    counts: list[str] = []
    engine.run(on_answer=lambda answer: counts.extend(str(row[0]) for row in answer.rows))
    assert {count.partition("^")[0] for count in counts} == {'"0"'}
    assert read_letters(tmp_path / "letters") == [f"<{other}> <urn:q> <urn:b> .\n<urn:a> <urn:q> <urn:b> ."]


def test_a_load_leaves_the_statement_out_and_says_so(tmp_path: Path, pair: list[str]) -> None:
    one, other = pair
    (tmp_path / "a.nt").write_text(f"<{one}> <urn:p> <urn:b> .\n")
    (tmp_path / "b.nt").write_text(f"<urn:c> <urn:p> <{other}> .\n<urn:c> <urn:p> <urn:b> .\n")
    report = load(tmp_path / "data", [tmp_path / "a.nt", tmp_path / "b.nt"])
    assert (report.statements, report.bad) == (2, 1)
    assert report.bad_lines is not None
    (line,) = map(json.loads, report.bad_lines.read_text().splitlines())
    assert line["text"] == f"<urn:c> <urn:p> <{other}> ." and "same internal id" in line["reason"]
    with pytest.raises(hw.HeadwaterError, match="same internal id"):
        load(tmp_path / "strict", [tmp_path / "a.nt", tmp_path / "b.nt"], strict=True)
    (tmp_path / "c.ttl").write_text(f"<{other}> <urn:p> <urn:d> . <urn:e> <urn:p> <urn:d> .")
    report = load(tmp_path / "data", [tmp_path / "c.ttl"])
    assert (report.statements, report.bad) == (3, 1)


def test_an_insert_is_refused(tmp_path: Path, pair: list[str]) -> None:
    one, other = pair
    (tmp_path / "a.nt").write_text(f"<{one}> <urn:p> <urn:b> .\n")
    load(tmp_path / "data", [tmp_path / "a.nt"])
    data = DataSet.open(tmp_path / "data")
    triple = Triple(NamedNode(other), NamedNode("urn:p"), NamedNode("urn:b"))
    with pytest.raises(hw.HashCollision, match=other):
        data.insert([triple])
    with pytest.raises(hw.HashCollision, match=other):
        data.update(f"INSERT DATA {{ <{other}> <urn:p> <urn:b> }}")
    data.remove([triple])
    assert data.statements == 1
    pairs = [Triple(NamedNode(iri), NamedNode("urn:p"), NamedNode("urn:b")) for iri in colliding_iris("y")]
    with pytest.raises(hw.HashCollision):
        data.insert(pairs)
    assert DataSet.open(tmp_path / "data").statements == 1


def test_a_query_that_computes_such_a_term_is_suspended(tmp_path: Path, pair: list[str]) -> None:
    one, other = pair
    text = f"1000\t<urn:a> <urn:p> <{one}> .\n2000\t<urn:b> <urn:q> <urn:c> .\n"
    engine = engine_of(tmp_path, {"s": text})
    query = "SELECT ?z WHERE {{ STREAM <s> [RANGE 1h] {{ ?x <urn:{}> ?y }} BIND(IRI(CONCAT({})) AS ?z) }}"
    engine.register("REGISTER QUERY Bad AS " + query.format("q", f'"{other[:5]}", "{other[5:]}"'))
    engine.register("REGISTER QUERY Good AS " + query.format("p", '"urn:", "fine"'))
    rows: list[str] = []
    engine.run(on_answer=lambda answer: rows.extend(str(row[0]) for row in answer.rows))
    assert "<urn:fine>" in rows and f"<{other}>" not in rows


def test_shards_on_spark(tmp_path: Path, pair: list[str], spark: SparkSession) -> None:
    """Each shard leaves out what collides in it; the driver merges answers whose terms have one id in two shards."""
    others = colliding_iris("z", 3)
    path = tmp_path / "s.tnq"
    path.write_text(
        "".join(
            f"{1000 + place}\t<urn:s{place % 5}> <urn:p> <{iri}> .\n" for place, iri in enumerate((pair + others) * 3)
        )
    )
    engine = hw.Engine(spark, dead_letters=tmp_path / "letters", shards=2)
    engine.stream("s", hw.files(path))
    engine.register("SELECT ?x ?y WHERE { STREAM <s> [RANGE 1s] { ?x <urn:p> ?y } }", emit="rstream")
    rows: set[tuple[str, ...]] = set()
    engine.run(on_answer=lambda answer: rows.update(tuple(map(str, row)) for row in answer.rows))
    letters = read_letters(tmp_path / "letters")
    left_out = {tuple(line.split()[::2]) for text in letters for line in text.splitlines() if "<urn:p>" in line}
    all_rows = {(f"<urn:s{place % 5}>", f"<{iri}>") for place, iri in enumerate((pair + others) * 3)}
    assert letters
    assert rows <= all_rows
    assert all_rows - rows <= {row[:2] for row in left_out}


def test_solutions_of_an_endpoint(tmp_path: Path, pair: list[str], caplog: pytest.LogCaptureFixture) -> None:
    one, other = pair
    store = Store()
    p = NamedNode("urn:p")
    for number, iri in enumerate((one, other)):
        store.add(Quad(NamedNode(f"urn:a{number}"), p, NamedNode(iri)))
    text = f"1000\t<urn:s> <urn:o> <{one}> .\n1000\t<urn:a0> <urn:q> <urn:b> .\n1000\t<urn:a1> <urn:q> <urn:b> .\n"
    with serving(sparql(store)) as endpoint:
        engine = engine_of(tmp_path, {"s": text})
        engine.register(
            f"""SELECT ?x ?y FROM STREAM <s> [RANGE 4s STEP 4s]
                WHERE {{ ?x <urn:q> ?z . ?s <urn:o> ?o . SERVICE <{endpoint.url}> {{ ?x <urn:p> ?y }} }}"""
        )
        rows: set[tuple[str, ...]] = set()
        engine.run(on_answer=lambda answer: rows.update(tuple(map(str, row)) for row in answer.rows))
    assert rows == {("<urn:a0>", f"<{one}>")}
    assert "is left out" in caplog.text and other in caplog.text


def test_a_stream_that_a_query_produces(tmp_path: Path, pair: list[str]) -> None:
    """Its elements are claimed as others are; the second query joins it with a stream that has the other term."""
    one, other = pair
    streams = {
        "s": f"1000\t<urn:a> <urn:p> <{one}> .\n",
        "t": f"500\t<{other}> <urn:q> <urn:b> .\n9000\t<urn:a> <urn:r> <urn:b> .\n",
    }
    engine = engine_of(tmp_path, streams)
    engine.register(
        """REGISTER STREAM <made> AS CONSTRUCT { ?x <urn:m> ?y } FROM STREAM <s> [RANGE 2s STEP 2s]
           WHERE { ?x <urn:p> ?y }"""
    )
    engine.register(
        """REGISTER QUERY Joined AS SELECT (COUNT(*) AS ?n)
           WHERE { STREAM <made> [RANGE 20s] { ?x <urn:m> ?y } STREAM <t> [RANGE 20s] { ?y <urn:q> ?z } }"""
    )
    counts: set[str] = set()
    engine.run(on_answer=lambda answer: counts.update(str(row[0]) for row in answer.rows if answer.query == "Joined"))
    assert {count.partition("^")[0] for count in counts} <= {'"0"'}
    assert read_letters(tmp_path / "letters")


def test_data_that_changes_in_a_run(tmp_path: Path, pair: list[str]) -> None:
    """A term of the new version has the id of one that is in a window: the query is suspended, with the reason."""
    one, other = pair
    add_statements(tmp_path / "data", [Quad(NamedNode("urn:c"), NamedNode("urn:q"), NamedNode("urn:b"))])
    data = LinkedData([DataSet.open(tmp_path / "data")])
    text = "SELECT ?x WHERE { STREAM <urn:s> [RANGE 1h] { ?x <urn:p> ?y } ?y <urn:q> ?z }"
    plan = plan_query(parse(text), name="q", streams=["urn:s"])
    program = Program([RegisteredQuery(plan, resolve_settings(plan))], data, 0, KernelEvaluator)
    element = Element(1_000_000, (Triple(NamedNode("urn:a"), NamedNode("urn:p"), NamedNode(one)),))
    version = data.version
    program.advance({"urn:s": [element]}, version=version)
    DataSet.open(tmp_path / "data").insert([Triple(NamedNode(other), NamedNode("urn:q"), NamedNode("urn:b"))])
    later = replace(element, time=2_000_000, position=(1,))
    step = program.advance({"urn:s": [later]}, version=(version[0] + 1,))
    assert not any(answer.rows for answer in step.answers)
    assert "have the same id" in program.suspensions["q"].reason


def test_texts_of_late_elements_stay_out(tmp_path: Path, pair: list[str]) -> None:
    """A late element claims nothing, and its texts are not those of the ids that others own."""
    one, other = pair
    text = f"9000\t<urn:a> <urn:p> <{one}> .\n1000\t<urn:b> <urn:p> <{other}> .\n9500\t<urn:c> <urn:p> <{one}> .\n"
    engine = engine_of(tmp_path, {"s": text})
    engine.register("SELECT ?y WHERE { STREAM <s> [RANGE 1h] { ?x <urn:p> ?y } }", emit="rstream")
    rows: set[str] = set()
    engine.run(on_answer=lambda answer: rows.update(str(row[0]) for row in answer.rows))
    assert rows == {f"<{one}>"}
