"""Equal triples that collapse in windows that are sets: counted alike by the kernel and by the definition, and told."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

import headwater as hw
from headwater.algebra.aggregated_patterns import aggregated_patterns
from headwater.algebra.build import plan_query
from headwater.algebra.nodes import PathMatch
from headwater.algebra.scope import nodes_of
from headwater.execution.collapsed_triples import CollapsedTriples, add_collapsed
from headwater.execution.program import Program
from headwater.execution.query_evaluators import MakeEvaluator
from headwater.execution.registered import RegisteredQuery
from headwater.explain.notation import Notation
from headwater.kernel.compiling.unsupported import UnsupportedByKernel
from headwater.kernel.kernel_evaluator import KernelEvaluator
from headwater.language.parser import parse
from headwater.reference.reference_evaluator import ReferenceEvaluator
from headwater.terms.model import NamedNode, Triple
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
        has_paths = any(isinstance(node, PathMatch) for node in nodes_of(plan.root))
        if settings.content is Content.BAG or has_paths:
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
        assert found <= expected, f"case {number}: {case.text}"
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
    ],
)
def test_which_patterns_an_aggregate_counts(body: str, expected: set[str]) -> None:
    plan = plan_query(parse("PREFIX : <http://x/> " + body.replace("@", "FROM STREAM <s> [RANGE 5s STEP 5s]")))
    assert {Notation.of(plan).triple(one) for one in aggregated_patterns(plan.root)} == expected


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
