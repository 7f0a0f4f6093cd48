"""What queries over the same windows have in common, and that one of them which fails leaves the others alone."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from pyoxigraph import Store

from headwater.algebra.build import plan_query
from headwater.execution.program import Program
from headwater.execution.query_evaluators import no_families
from headwater.execution.registered import RegisteredQuery
from headwater.kernel.join_measures import operators
from headwater.kernel.operators.filter import FilterOperator
from headwater.kernel.operators.triple_patterns import PatternOperator, TripleSourceOperator
from headwater.kernel.sharing.find_shared import can_share_windows, find_common_windows, find_shared_evaluators
from headwater.kernel.sharing.query_member import QueryMember
from headwater.kernel.sharing.shared_evaluator import SharedEvaluator
from headwater.language.parser import parse
from headwater.terms.model import XSD, Element, Literal, NamedNode, Triple
from headwater.values.query_limits import QueryLimits
from headwater.windows.settings import Options, Report, resolve_settings
from tests.optimised_evaluators import make_optimised_evaluator

EX = "http://example.org/"
SECOND = 1_000_000
WINDOW = "FROM NAMED WINDOW {label} ON :s [RANGE 4s STEP 1s]"
READINGS = "?o :by ?s . ?o :value ?v"


def query(
    name: str,
    select: str,
    where: str = READINGS,
    after: str = "",
    *,
    label: str = ":w",
    limits: QueryLimits | None = None,
) -> RegisteredQuery:
    head = f"REGISTER RSTREAM :{name} AS SELECT {select} {WINDOW.format(label=label)}"
    text = f"PREFIX : <{EX}> {head} WHERE {{ WINDOW {label} {{ {where} }} }} {after}"
    plan = plan_query(parse(text), name=name)
    return RegisteredQuery(plan, resolve_settings(plan, Options(t0=0)), limits or QueryLimits())


def readings(low: int, high: int) -> dict[str, list[Element]]:
    """Two readings at each second."""
    elements = []
    for number in range(2 * low, 2 * high):
        reading = NamedNode(f"{EX}o{number}")
        value = Literal(str(number % 7), datatype=NamedNode(f"{XSD}integer"))
        triples = (
            Triple(reading, NamedNode(f"{EX}by"), NamedNode(f"{EX}s{number % 3}")),
            Triple(reading, NamedNode(f"{EX}value"), value),
        )
        elements.append(Element(number * SECOND // 2 + 1, triples))
    return {f"{EX}s": elements}


def program(queries: Sequence[RegisteredQuery], *, is_shared: bool = True) -> Program:
    families = find_shared_evaluators if is_shared else no_families
    return Program(queries, Store(), 0, make_optimised_evaluator, families=families)


MEAN = query("mean", "?s (AVG(?v) AS ?m)", f"{READINGS} FILTER(?v > 2)", "GROUP BY ?s")
COUNT = query("count", "(COUNT(*) AS ?n)", "?x :by ?y . ?x :value ?z FILTER(?z > 2)", label=":other")
ROWS = query("rows", "?s ?v")


def test_equal_parts_are_one_operator() -> None:
    (shared,) = find_common_windows([MEAN, COUNT, ROWS], Store())
    members = [one for one in map(shared.evaluator_of, shared.names) if isinstance(one, QueryMember)]
    assert len(members) == 3
    own = {id(one): one for member in members for one in operators(member.root)}
    kinds = [type(one) for one in own.values()]
    assert kinds.count(TripleSourceOperator) == 1
    assert kinds.count(FilterOperator) == 1
    assert kinds.count(PatternOperator) <= 2


def test_the_answers_are_those_of_each_alone() -> None:
    queries = [MEAN, COUNT, ROWS]
    together, apart = program(queries), program(queries, is_shared=False)
    assert len(set(together.evaluators.values())) == 1
    for low, high in ((0, 6), (6, 8), (8, 30)):
        found, expected = (one.advance(readings(low, high)).answers for one in (together, apart))
        assert found == expected and len(found)
    labels = {answer.query: answer.inputs[0].label for answer in found}
    assert labels == {answer.query: answer.inputs[0].label for answer in expected}


def test_a_query_that_exceeds_its_limit_goes_alone() -> None:
    limits = QueryLimits(rows=5)
    queries = [
        query("mean", "?s (AVG(?v) AS ?m)", after="GROUP BY ?s", limits=limits),
        query("rows", "?s ?v", limits=limits),
    ]
    together, apart = program(queries), program(queries, is_shared=False)
    assert len(set(together.evaluators.values())) == 1
    for low, high in ((0, 4), (4, 9)):
        found, expected = (one.advance(readings(low, high)).answers for one in (together, apart))
        assert found == expected
        assert {name: one.reason for name, one in together.suspensions.items()} == {
            name: one.reason for name, one in apart.suspensions.items()
        }
    assert list(together.suspensions) == ["rows"]
    assert together.evaluators["mean"].names == ("mean",)


def test_a_common_part_that_fails_ends_the_queries_that_read_it(monkeypatch: pytest.MonkeyPatch) -> None:
    together = program([MEAN, COUNT, ROWS])
    together.advance(readings(0, 6))

    def fail(*_: object) -> None:
        raise ZeroDivisionError("the filter is broken")

    monkeypatch.setattr(FilterOperator, "apply", fail)
    found = together.advance(readings(6, 9)).answers
    assert sorted(together.suspensions) == ["count", "mean"]
    assert [one.time for one in found if one.query == "rows" and not one.suspended] == [n * SECOND for n in range(6, 9)]


def test_state_is_held_to_its_limit_query_by_query() -> None:
    running = program([MEAN, COUNT, ROWS])
    running.advance(readings(0, 20))
    shared = next(iter(set(running.evaluators.values())))
    assert isinstance(shared, SharedEvaluator)
    held = shared.bytes_by_query()
    assert set(held) == {"mean", "count", "rows"}
    assert abs(sum(held.values()) - (shared.size().bytes or 0)) < 100


@pytest.mark.parametrize(
    ("text", "report"),
    [
        ("SELECT * FROM NAMED WINDOW :w ON :s [RANGE 4s STEP 1s] WHERE { WINDOW :w { ?x :p ?y } ?y :q ?z }", None),
        ("SELECT * FROM NAMED WINDOW :w ON :s [TRIPLES 4] WHERE { WINDOW :w { ?x :p ?y } }", None),
        ("SELECT * FROM NAMED WINDOW :w ON :s [RANGE 4s STEP 1s] WHERE { WINDOW :w { ?x :p ?y } }", Report.CHANGE),
        ("SELECT * FROM STREAM :s [RANGE 4s STEP 1s] WHERE { ?x :p ?y FILTER(f:timestamp(?x, :p, ?y) > 3) }", None),
    ],
)
def test_which_queries_are_evaluated_by_themselves(text: str, report: Report | None) -> None:
    plan = plan_query(parse(f"PREFIX : <{EX}> PREFIX f: <http://larkc.eu/csparql/sparql/jena/ext#> {text}"))
    assert not can_share_windows(plan, resolve_settings(plan, Options(report=report)))
