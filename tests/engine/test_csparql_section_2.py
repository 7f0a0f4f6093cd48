"""Section 2 of the C-SPARQL paper as a whole: all its queries over one repository and two streams of registrations.

By section 2.1 the predicate of the streams is fixed (`t:registers`); by 2.4 districts, streets and the places of
tollgates are in the repository, by 2.6 capacities are, and by 2.2 and 2.7 sensors and cameras are placed there.
"""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

import headwater as hw
from tests.commands.running import headwater
from tests.language.paper_queries import CITY, CSPARQL

GATES, CAMERAS = "http://streams.org/citytollgates.trdf", "http://streams.org/citycameras.trdf"
REPOSITORY = (
    CITY
    + """
c:gate1 c:placedIn c:oak . c:gate2 c:placedIn c:oak . c:gate3 c:placedIn c:oak .
c:gate4 c:placedIn c:oak . c:gate5 c:placedIn c:oak . c:gate6 c:placedIn c:oak . c:gate7 c:placedIn c:palm .
c:Distr1 c:contains c:oak . c:Distr2 c:contains c:palm .
c:oak c:hasCapacity 2 . c:palm c:hasCapacity 100 .
c:cam1 c:monitors c:Oak-Avenue ; c:placedAt c:light . c:cam2 c:monitors c:Palm-Street ; c:placedAt c:light .
c:light c:crossing c:oak .
"""
)
REGISTRATIONS = {
    GATES: [("gate1", "car1", 10), ("gate7", "car2", 20)],
    CAMERAS: [("cam2", "car1", 30), ("cam1", "car1", 40)],
}
EXPECTED = {
    "2.2": {("oak", "6")},
    "2.3": {("gate1", "1"), ("gate7", "1")},
    "2.4": {("Distr1", "1"), ("Distr2", "1")},
    "2.5": {("Distr1", "1"), ("Distr2", "1")},
    "2.6": {("oak", "3")},
    "2.7": {("car1",)},
}
SECTIONS = {name.split()[1].rstrip(","): text for name, text in CSPARQL.items() if name.startswith("section 2.")}


def make_engine(folder: Path, **options: object) -> hw.Engine:
    (folder / "repository.ttl").write_text(REPOSITORY)
    engine = hw.Engine(in_process=True, **options)  # type: ignore[arg-type]
    engine.dataset(folder / "repository.ttl")
    for stream, rows in REGISTRATIONS.items():
        city, traffic = "http://linkedurbandata.org/city#", "http://linkedurbandata.org/traffic#"
        lines = [f"{at}000\t<{city}{one}> <{traffic}registers> <{city}{car}> .\n" for one, car, at in rows]
        path = folder / f"{stream.rpartition('/')[2]}.tnq"
        path.write_text("".join(lines))
        engine.stream(stream, path)
    return engine


def short(term: object) -> str:
    return str(getattr(term, "value", term)).rpartition("#")[2]


def rows_of(answer: hw.Answer) -> set[tuple[str, ...]]:
    if answer.triples:
        return {(short(one.subject), short(one.object)) for one in answer.triples}
    return {tuple(map(short, row)) for row in answer.rows}


def test_section_2_has_a_query_for_each_of_its_examples() -> None:
    assert SECTIONS.keys() == EXPECTED.keys()


@pytest.mark.parametrize("evaluator", ["auto", "reference"])
@pytest.mark.parametrize("section", EXPECTED)
def test_section_2_answers_on_the_data_of_the_paper(
    section: str, evaluator: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    engine = make_engine(tmp_path, evaluator=evaluator)
    query = engine.register(SECTIONS[section])
    found = [rows_of(answer) for answer in query.answers()]
    assert EXPECTED[section] in found
    assert not caplog.records


def test_section_2_6_the_kernel_evaluates_full_streets(tmp_path: Path) -> None:
    engine = make_engine(tmp_path)
    query = engine.register(SECTIONS["2.6"])
    engine.run()
    assert query.progress.evaluator == "kernel"


def test_section_2_6_a_change_of_the_repository_reaches_what_graph_sees(tmp_path: Path) -> None:
    engine = make_engine(tmp_path)
    data = engine.dataset([])
    query = engine.register(SECTIONS["2.6"])
    data.update(CITY + "DELETE DATA { c:light c:crossing c:oak }")
    assert [rows_of(answer) for answer in query.answers()] == [set()]


WARNED = {
    "a graph that nobody loaded": (
        "SELECT * FROM STREAM <s> [RANGE 1s STEP 1s] WHERE { ?a ?b ?c GRAPH <gaets> { ?c <http://ex/p> ?d } }",
        "nothing can match ?c <http://ex/p> ?d: <gaets> is neither a stream of the query nor a loaded graph",
    ),
    "an empty default graph": (
        "SELECT * FROM NAMED STREAM <s> [RANGE 1s STEP 1s] WHERE { GRAPH <s> { ?a ?b ?c } ?c <http://ex/p> ?d }",
        "nothing can match ?c <http://ex/p> ?d: the default graph is empty, because no FROM STREAM puts a window there",
    ),
    "an empty default graph in CQELS-QL": (
        "SELECT * WHERE { STREAM <s> [NOW] { ?a ?b ?c } ?c <http://ex/p>/<http://ex/q>+ ?d }",
        "the default graph is empty",
    ),
    "an empty default graph in RSP-QL, inside NOT EXISTS": (
        "SELECT * FROM NAMED WINDOW <w> ON <s> [RANGE PT1S STEP PT1S] "
        "WHERE { WINDOW <w> { ?a ?b ?c } FILTER NOT EXISTS { ?c <http://ex/p> ?d } }",
        "the default graph is empty",
    ),
    "no graph at all": (
        "SELECT * WHERE { STREAM <s> [NOW] { ?a ?b ?c } GRAPH ?g { ?c <http://ex/p> ?d } }",
        "no named graph is loaded",
    ),
}


@pytest.mark.parametrize("case", WARNED)
def test_a_pattern_that_nothing_can_match_is_warned_of_once(
    case: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    text, words = WARNED[case]
    engine = hw.Engine(in_process=True)
    engine.stream("s", hw.memory([]))
    query = engine.register(text)
    engine.run()
    engine.run()
    (told,) = [record for record in caplog.records if words in record.getMessage()]
    assert told.levelno == logging.WARNING and query.name in told.getMessage()
    (tmp_path / "query.rq").write_text(text)
    (tmp_path / "empty.ttl").write_text("")
    checked = headwater("check", tmp_path / "query.rq", "--data", tmp_path / "empty.ttl")
    assert checked.exit_code == 0
    assert words in checked.stderr and checked.stderr.startswith("warning: ")


QUIET = [
    "SELECT * FROM STREAM <s> [RANGE 1s STEP 1s] WHERE { ?a ?b ?c . GRAPH <s> { ?a <http://ex/p> ?d } }",
    "SELECT * WHERE { STREAM <s> [NOW] { ?a ?b ?c } SERVICE <http://ex/e> { ?c <http://ex/p> ?d } }",
    "SELECT * WHERE { STREAM <s> [NOW] { ?a ?b ?c } ?c <http://ex/p>* ?d }",
    "SELECT * WHERE { STREAM ?s [NOW] { ?a ?b ?c } }",
]


@pytest.mark.parametrize("text", QUIET)
def test_what_can_match_is_not_warned_of(text: str, tmp_path: Path) -> None:
    (tmp_path / "query.rq").write_text(text)
    (tmp_path / "empty.ttl").write_text("")
    checked = headwater("check", tmp_path / "query.rq", "--data", tmp_path / "empty.ttl")
    assert (checked.exit_code, checked.stderr) == (0, "")


def test_check_without_data_warns_of_what_holds_whatever_is_loaded(tmp_path: Path) -> None:
    (tmp_path / "query.rq").write_text(
        "SELECT * FROM <a> FROM STREAM <s> [RANGE 1s STEP 1s] WHERE { GRAPH <b> { ?x <http://ex/p> ?y } }"
    )
    assert "its FROM clauses leave that graph out; add FROM NAMED" in headwater("check", tmp_path / "query.rq").stderr
    for text, _ in WARNED.values():
        (tmp_path / "query.rq").write_text(text)
        assert headwater("check", tmp_path / "query.rq").stderr == ""
