"""`query.why`: what led to an answer, from Python, over streams and queries of every kind."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import headwater as hw
from headwater.terms.model import Literal, NamedNode, Triple

GATES = "".join(
    f"{1000 * second}\t<http://x/g{second % 2}> <http://x/registers> <http://x/car{second % 3}> .\n"
    for second in range(1, 15)
)
QUERY = """PREFIX : <http://x/>
SELECT ?street (COUNT(?car) AS ?cars) FROM STREAM <gates> [RANGE 5s STEP 5s]
WHERE { ?gate :registers ?car . ?gate :in ?street } GROUP BY ?street ORDER BY DESC(?street)"""


def node(name: str) -> NamedNode:
    return NamedNode("http://x/" + name)


def make_engine(folder: Path, **settings: object) -> hw.Engine:
    (folder / "gates.tnq").write_text(GATES)
    engine = hw.Engine(in_process=True, **settings)  # type: ignore[arg-type]
    engine.stream("gates", hw.files(folder / "gates.tnq"))
    engine.dataset([Triple(node("g0"), node("in"), node("oak")), Triple(node("g1"), node("in"), node("elm"))])
    return engine


def test_the_elements_and_static_triples_of_a_row(tmp_path: Path) -> None:
    query = make_engine(tmp_path).register(QUERY)
    for row in (1, {"street": "http://x/oak"}, {"street": node("oak")}):
        found = query.why("1970-01-01T00:00:10Z", row)
        assert found.rows == ((node("oak"), Literal(3)),)
        assert [(one.time, one.line) for one in found.elements] == [(6_000_000, 6), (8_000_000, 8), (10_000_000, 10)]
        assert [str(one.triple) for one in found.static] == ["<http://x/g0> <http://x/in> <http://x/oak>"]
        assert found.end is None
    everything = query.why(10_000_000)
    assert len(everything.rows) == 2
    assert len(everything.elements) == 5
    assert json.loads(everything.to_json())["elements"][0]["line"] == 6


@pytest.mark.parametrize(("content", "collapsed"), [("set", 1), ("bag", 0)])
def test_elements_that_are_one_triple_in_a_set(tmp_path: Path, content: str, collapsed: int) -> None:
    lines = [
        f'{1000 * second}\t<http://x/t1> <http://x/celsius> "{celsius}" .\n' for second, celsius in enumerate("577")
    ]
    (tmp_path / "readings.tnq").write_text("".join(lines))
    engine = hw.Engine(in_process=True)
    engine.stream("readings", hw.files(tmp_path / "readings.tnq"))
    query = engine.register(
        "SELECT (COUNT(?c) AS ?n) FROM STREAM <readings> [RANGE 5s STEP 5s] WHERE { ?s <http://x/celsius> ?c }",
        content=content,
    )
    found = query.why(5_000_000)
    assert len(found.elements) == 2
    assert len(found.collapsed) == collapsed
    assert ("collapsed" in json.loads(found.to_json())) == bool(collapsed)


NAMED = """1000\t<http://x/t1> <http://x/celsius> "21" <http://x/north> .
2000\t<http://x/t1> <http://x/celsius> "25" <http://x/south> .
3000\t<http://x/t1> <http://x/celsius> "22" .
"""


def test_the_graphs_of_a_window(tmp_path: Path) -> None:
    (tmp_path / "readings.tnq").write_text(NAMED)
    engine = hw.Engine(in_process=True)
    engine.stream("readings", hw.files(tmp_path / "readings.tnq"))
    query = engine.register(
        "PREFIX : <http://x/> PREFIX prov: <http://www.w3.org/ns/prov#> SELECT ?g ?at "
        "FROM NAMED WINDOW :w ON <readings> [RANGE PT4S STEP PT4S] "
        "WHERE { WINDOW :w { GRAPH ?g { ?s :celsius ?c } ?g prov:generatedAtTime ?at } }"
    )
    found = query.why(4_000_000, {"g": node("south")})
    assert [(one.time, one.line, len(one.triples)) for one in found.elements] == [(2_000_000, 2, 2)]
    assert [(step.text, step.solutions) for step in found.steps][:2] == [
        ("?s :celsius ?c", 2),
        ("graph: GRAPH ?g of the window", 2),
    ]


def test_the_step_at_which_solutions_end(tmp_path: Path) -> None:
    text = "PREFIX : <http://x/> SELECT ?car FROM STREAM <gates> [RANGE 5s STEP 5s] WHERE { ?g :registers ?car . @ }"
    for part, end in (
        ("?g :closed true", "?g :closed true"),
        ("?g :in ?s FILTER(?s = :ash)", "filter: ?s = :ash"),
        ("?car :in ?s", "graph pattern: ?g :registers ?car . ?car :in ?s"),
    ):
        query = make_engine(tmp_path).register(text.replace("@", part))
        found = query.why(5_000_000)
        assert found.rows == ()
        assert found.elements == ()
        assert found.end is not None
        assert found.end.text == end
        assert found.steps[-1].solutions == 0


def test_ask_and_copies_and_what_a_query_produced(tmp_path: Path) -> None:
    engine = make_engine(tmp_path)
    (tmp_path / "gates.tnq").write_text(GATES + GATES.splitlines(keepends=True)[-1])  # lines of one time: one element
    asked = engine.register("ASK FROM STREAM <gates> [RANGE 1s STEP 1s] WHERE { ?g <http://x/registers> ?car }")
    assert [one.line for one in asked.why(14_000_000).elements] == [14]
    engine.register(
        "REGISTER STREAM seen AS CONSTRUCT { ?car <http://x/seen> true } FROM STREAM <gates> [RANGE 5s STEP 5s] "
        "WHERE { ?g <http://x/registers> ?car }"
    )
    reader = engine.register("SELECT ?car FROM STREAM <seen> [RANGE 5s STEP 5s] WHERE { ?car <http://x/seen> ?b }")
    found = reader.why(5_000_000, row=1)
    assert [(one.stream, one.time, one.source) for one in found.elements] == [("headwater:/seen", 5_000_000, "")]


def test_rows_of_a_template_and_istream(tmp_path: Path) -> None:
    (tmp_path / "rows.json").write_text("".join(f'{{"at": {1000 * i}, "v": {i}}}\n' for i in range(1, 6)))
    integer = "http://www.w3.org/2001/XMLSchema#integer"
    (tmp_path / "rows.template").write_text(f'@time {{at}}\n<http://x/s> <http://x/value> "{{v}}"^^<{integer}> .\n')
    engine = hw.Engine(in_process=True)
    engine.stream("rows", hw.files(tmp_path / "rows.json", template=tmp_path / "rows.template"))
    query = engine.register(
        "PREFIX : <http://x/> SELECT ?v WHERE { STREAM <rows> [RANGE 2s] { ?s :value ?v } FILTER(?v > 2) }"
    )
    assert [one.line for one in query.why(4_000_000).elements] == [3, 4]


def test_what_the_run_put_aside_explains_nothing(tmp_path: Path) -> None:
    engine = make_engine(tmp_path, max_ahead="1h")
    lines = GATES.splitlines(keepends=True)
    ahead = "90000000\t<http://x/g0> <http://x/registers> <http://x/car9> .\n"
    (tmp_path / "gates.tnq").write_text("".join([*lines[:7], ahead, *lines[7:]]))
    query = engine.register(QUERY)
    (answer,) = [one for one in query.answers() if one.time == 10_000_000]
    found = query.why(10_000_000)
    assert found.rows == answer.rows
    assert [one.line for one in found.elements] == [6, 7, 9, 10, 11]


def test_what_cannot_be_explained(tmp_path: Path) -> None:
    query = make_engine(tmp_path).register(QUERY)
    with pytest.raises(hw.SettingError, match="is no tick of the query query; ticks near it: 1970"):
        query.why(6_000_000)
    with pytest.raises(hw.SettingError, match="no row has these values"):
        query.why(5_000_000, {"street": "http://x/ash"})
    with pytest.raises(hw.SettingError, match="row must be the number of a row, or values of variables"):
        query.why(5_000_000, ["oak"])  # type: ignore[arg-type]
    engine = hw.Engine(in_process=True)
    engine.stream("gates", hw.tcp("127.0.0.1", 9))
    with pytest.raises(hw.SourceError, match="cannot be read twice"):
        engine.register(QUERY).why(5_000_000)
