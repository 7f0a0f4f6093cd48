"""Equal triples that collapse in windows that are sets: counted alike by the kernel and by the definition, and told."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest

import headwater as hw
from headwater.algebra.aggregated_patterns import aggregated_patterns
from headwater.algebra.build import plan_query
from headwater.execution.collapsed_triples import CollapsedTriples, add_collapsed
from headwater.execution.program import Program
from headwater.execution.query_evaluators import MakeEvaluator
from headwater.execution.registered import RegisteredQuery
from headwater.explain.notation import Notation
from headwater.kernel.compiling.unsupported import UnsupportedByKernel
from headwater.kernel.kernel_evaluator import KernelEvaluator
from headwater.language.parser import parse
from headwater.reference.reference_evaluator import ReferenceEvaluator
from headwater.terms.model import Literal, NamedNode, Triple
from headwater.windows.settings import Content
from tests.kernel.generated_queries import STREAMS, Case, a_case
from tests.kernel.generated_runs import Way, pieces

CASES = 270


def _collapsed(
    case: Case, registered: RegisteredQuery, evaluator: MakeEvaluator, way: Way, number: int
) -> set[CollapsedTriples]:
    program = Program([registered], case.store(), 0, evaluator)
    (running,) = program.evaluators.values()
    found: tuple[CollapsedTriples, ...] = ()
    for piece in pieces(case, way, Random(number)):
        program.advance(dict(piece))
        found = add_collapsed(found, running.take_collapsed())
    program.advance({}, ended=list(STREAMS))
    return set(add_collapsed(found, running.take_collapsed()))


def test_the_kernel_counts_what_the_definition_counts() -> None:
    compared = counted = equal = 0
    for number in range(CASES):
        case = a_case(Random(number))
        plan, settings = case.plan()
        if settings.content is Content.BAG:
            continue
        registered = RegisteredQuery(plan, settings)
        cut = Random(number).choice([None, 1, 2, 5])
        whole, cut_up = (Way(size, False, False, False, False) for size in (None, cut))
        try:
            found = _collapsed(case, registered, _KernelThatMovesAlways, cut_up, number)
        except UnsupportedByKernel:
            continue
        expected = _collapsed(case, registered, ReferenceEvaluator, whole, number)
        # The kernel does not read what changes nothing: a MINUS without a common variable, a FILTER that is never true.
        # And of what no aggregate counts, it need not look at copies that a FILTER leaves out.
        counts = {(one.window, one.pattern): one.count for one in expected}
        for one in found:
            in_all = counts.get((one.window, one.pattern), 0)
            is_right = one.count == in_all if one.is_aggregated else one.count <= in_all
            assert is_right, f"case {number}: {case.text}: {one}, {in_all}"
        equal += found == expected
        compared += 1
        counted += bool(expected)
    assert compared > 80
    assert equal > 0.95 * compared
    assert counted > 60


class _KernelThatMovesAlways(KernelEvaluator):
    """The kernel without skipped ticks: what enters and leaves between two ticks is never seen."""

    @property
    def _can_skip_ticks(self) -> bool:
        return False


def test_an_aggregate_of_a_user_counts_copies() -> None:
    hw.Engine(in_process=True).function("http://x/median", len, aggregate=True)
    text = "PREFIX : <http://x/> SELECT (:median(@?v) AS ?m) FROM STREAM <s> [RANGE 5s STEP 5s] WHERE { ?s :value ?v }"
    assert len(aggregated_patterns(plan_query(parse(text.replace("@", ""))).root)) == 1
    assert not aggregated_patterns(plan_query(parse(text.replace("@", "DISTINCT "))).root)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("SELECT (AVG(?v) AS ?m) @ WHERE { ?s a :T ; :value ?v }", {"?s :value ?v"}),
        ("SELECT (AVG(?c) AS ?m) @ WHERE { ?s :value ?v BIND(?v / 2 AS ?c) }", {"?s :value ?v"}),
        ("SELECT (COUNT(*) AS ?n) @ WHERE { ?s a :T ; :value ?v }", {"?s :value ?v"}),
        ("SELECT (COUNT(?s) AS ?n) @ WHERE { ?s a :T }", {"?s a :T"}),
        ("SELECT (MAX(?v) AS ?m) @ WHERE { ?s :value ?v }", set()),
        ("SELECT (COUNT(DISTINCT ?v) AS ?n) @ WHERE { ?s :value ?v }", set()),
        ("SELECT ?s @ WHERE { ?s :value ?v } AGGREGATE { (?n, COUNT, {?s}) }", {"?s :value ?v"}),
        ("SELECT ?s ?v @ WHERE { ?s :value ?v }", set()),
        ("SELECT (COUNT(?v) AS ?n) @ WHERE { ?s (:value|:other) ?v }", {"?s :value ?v", "?s :other ?v"}),
        ("SELECT (COUNT(?v) AS ?n) @ WHERE { ?s :by/:value ?v }", {"_:1 :value ?v"}),
        ("SELECT (COUNT(?v) AS ?n) @ WHERE { ?s !:value ?v }", set()),
        ("SELECT (COUNT(?v) AS ?n) @ WHERE { ?s :value* ?v }", set()),
        ("SELECT (COUNT(?v) AS ?n) @ WHERE { { SELECT DISTINCT ?v { ?s :value ?v } } }", set()),
        ("SELECT (COUNT(?v) AS ?n) @ WHERE { ?s :value ?v MINUS { ?s :off ?v } }", {"?s :value ?v"}),
    ],
)
def test_which_patterns_an_aggregate_counts(body: str, expected: set[str]) -> None:
    plan = plan_query(parse("PREFIX : <http://x/> " + body.replace("@", "FROM STREAM <s> [RANGE 5s STEP 5s]")))
    assert {Notation.of(plan).triple(one) for one in aggregated_patterns(plan.root)} == expected


READINGS = [
    (1, "s1", 20.5),
    (40, "s2", 19.0),
    (130, "s1", 21.5),
    (140, "s1", 21.5),
    (150, "s2", 19.0),
    (365, "s3", 25.5),
]
WINDOW = "FROM STREAM <r> [RANGE 5m STEP 5m]"


def _run(texts: list[str], evaluator: str, **options: Any) -> tuple[list[tuple[str, int, bool]], tuple[str, ...]]:
    """What collapsed in the first of some queries, and what is warned of."""
    decimal = NamedNode("http://www.w3.org/2001/XMLSchema#decimal")
    elements = []
    for second, sensor, value in READINGS:
        reading = Literal(str(value), datatype=decimal)
        triples = (
            Triple(NamedNode(f"http://b/{sensor}"), NamedNode("http://b/value"), reading),
            Triple(NamedNode(f"http://b/{sensor}"), NamedNode("http://b/in"), NamedNode("http://b/hall")),
        )
        elements.append(hw.Element(second * 1_000_000, triples))
    engine = hw.Engine(in_process=True, evaluator=evaluator)  # type: ignore[arg-type]
    engine.stream("r", hw.memory(elements))
    queries = [engine.register("PREFIX : <http://b/> " + text, **options) for text in texts]
    warnings = engine.run().warnings
    collapsed = [(one.pattern, one.count, one.is_aggregated) for one in queries[0].progress.collapsed]
    return sorted(collapsed), warnings


@pytest.mark.parametrize("evaluator", ["auto", "reference"])
@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT (COUNT(?c) AS ?n) @ WHERE { ?s :value ?c FILTER(?c > 20) }", [("?s :value ?c", 2, True)]),
        ("SELECT (COUNT(?c) AS ?n) @ WHERE { ?s (:value|:none) ?c }", [("?s :value ?c", 2, True)]),
        (
            "SELECT ?room (AVG(?c) AS ?m) @ WHERE { ?s :value ?c . ?s :in ?room FILTER(?c > 20) } GROUP BY ?room",
            [("?s :in ?room", 3, False), ("?s :value ?c", 2, True)],
        ),
    ],
)
def test_a_filter_or_a_path_hides_no_copies(evaluator: str, query: str, expected: list[tuple[str, int, bool]]) -> None:
    collapsed, warnings = _run([query.replace("@", WINDOW)], evaluator)
    assert collapsed == expected
    (warning,) = (one for one in warnings if "equal one" in one)
    assert "2 triples of ?s :value ?c came" in warning


def test_a_filter_below_which_nobody_counts_keeps_only_what_passes() -> None:
    collapsed, warnings = _run([f"SELECT ?s ?c {WINDOW} WHERE {{ ?s :value ?c FILTER(?c > 20) }}"], "auto")
    assert collapsed == [("?s :value ?c", 1, False)]
    assert not warnings


@pytest.mark.parametrize("evaluator", ["auto", "reference"])
def test_queries_of_one_form_tell_of_copies(evaluator: str) -> None:
    text = "SELECT (COUNT(?c) AS ?n) @ WHERE { ?s :value ?c FILTER(?s = :s%d) }".replace("@", WINDOW)
    _, warnings = _run([text % number for number in (1, 2, 3)], evaluator)
    assert len(warnings) == 3
    assert not any("hwf" in warning for warning in warnings)


@pytest.mark.parametrize("evaluator", ["auto", "reference"])
def test_copies_are_told_of_where_a_reader_of_the_answers_counts(evaluator: str) -> None:
    def made(name: str, source: str, value: str) -> str:
        stream = f"FROM STREAM <{source}> [RANGE 1m STEP 1m]"
        return f"REGISTER STREAM {name} AS CONSTRUCT {{ ?s :mid ?c }} {stream} WHERE {{ ?s :{value} ?c }}"

    count = "SELECT (COUNT(?c) AS ?n) FROM STREAM <Last> [RANGE 5m STEP 5m] WHERE { ?s :mid ?c }"
    chain = [made("First", "r", "value"), made("Last", "First", "mid")]
    collapsed, warnings = _run([*chain, count], evaluator)
    assert collapsed == [("?s :value ?c", 1, True)]
    assert [warning for warning in warnings if "1 triple of ?s :value ?c" in warning and "own" in warning]
    # The cure of a bag is none here: what a template makes is a set.
    assert not any("--content bag" in warning for warning in warnings if "?s :value ?c" in warning)
    assert not _run([*chain, count.replace("COUNT(?c)", "MAX(?c)")], evaluator)[1]


VALUES = "".join(f'{1000 + i}\t<http://x/s> <http://x/value> "{i % 3}" .\n' for i in range(10))
QUERY = "SELECT (COUNT(?v) AS ?n) FROM STREAM <values> [RANGE 5s STEP 5s] WHERE { ?s <http://x/value> ?v }"


@pytest.mark.parametrize("evaluator", ["auto", "reference"])
def test_a_run_counts_and_warns_once(evaluator: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "values.tnq").write_text(VALUES + VALUES.replace("100", "600"))
    engine = hw.Engine(in_process=True, batch_bytes=100, evaluator=evaluator)  # type: ignore[arg-type]
    engine.stream("values", hw.files(tmp_path / "values.tnq"))
    query = engine.register(QUERY)
    summary = engine.run()
    assert summary.batches > 2
    assert [(one.window, one.count, one.is_aggregated) for one in query.progress.collapsed] == [("values", 14, True)]
    assert '"collapsed": [{"window": "values"' in summary.to_json()
    assert [record.getMessage() for record in caplog.records if "--content bag" in record.getMessage()] == [
        *summary.warnings
    ]
    assert len(summary.warnings) == 1


@pytest.mark.parametrize("evaluator", ["auto", "reference"])
@pytest.mark.parametrize(("name", "count"), [("?g", 3), ("<urn:north>", 2)])
def test_triples_collapse_in_each_graph_of_a_window(evaluator: str, name: str, count: int) -> None:
    triples = (Triple(NamedNode("urn:x"), NamedNode("urn:p"), NamedNode("urn:y")),)
    graphs = ("urn:north", "urn:north", "urn:south", "urn:north", "urn:south", None)
    engine = hw.Engine(in_process=True, evaluator=evaluator)  # type: ignore[arg-type]
    engine.stream("s", hw.memory([hw.Element(1000 + i, triples, graph) for i, graph in enumerate(graphs)]))
    query = engine.register(
        "SELECT (COUNT(*) AS ?n) FROM NAMED WINDOW <w> ON <s> [RANGE PT5S STEP PT5S] "
        f"WHERE {{ WINDOW <w> {{ GRAPH {name} {{ ?x ?p ?y }} }} }}"
    )
    assert len(engine.run().warnings) == 1
    assert [one.count for one in query.progress.collapsed] == [count]


def test_a_bag_collapses_nothing(tmp_path: Path) -> None:
    (tmp_path / "values.tnq").write_text(VALUES)
    engine = hw.Engine(in_process=True)
    engine.stream("values", hw.files(tmp_path / "values.tnq"))
    query = engine.register(QUERY, content="bag")
    assert engine.run().warnings == ()
    assert query.progress.collapsed == ()
