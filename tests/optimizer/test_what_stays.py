"""What no rule may touch, and on what grounds the rules decide."""

from __future__ import annotations

import pytest

from headwater.algebra.build import plan_query
from headwater.algebra.nodes import Filter, Service
from headwater.algebra.plan import QueryPlan
from headwater.algebra.scope import nodes_of
from headwater.language.expressions import Constant, Operation, VariableReference
from headwater.language.parser import parse
from headwater.optimizer.null_rejection import is_null_rejecting
from headwater.optimizer.optimise import optimise
from headwater.optimizer.rewrites.bind_equalities import is_equal_only_to_itself
from headwater.terms.model import Literal, NamedNode, Row, Variable
from tests.kernel.expression_pool import TERMS, reference_holds


def plan(where: str, select: str = "*") -> QueryPlan:
    windows = "FROM NAMED WINDOW :w0 ON :s0 [RANGE 10s TUMBLING]"
    return plan_query(parse(f"PREFIX : <http://example/> SELECT {select} {windows} WHERE {{ {where} }}"))


@pytest.mark.parametrize("call", ["RAND() < 0.5", "STRLEN(STRUUID()) = 3", "ISIRI(UUID())", "BOUND(?x) && NOW() > ?v"])
def test_chance_and_clocks_stay_where_they_are(call: str) -> None:
    given = plan(f"WINDOW :w0 {{ ?x :p ?v }} ?x :q ?w FILTER({call} || ?v = 1)")
    assert optimise(given).plan == given


def test_new_values_per_solution_are_made_as_often_as_before() -> None:
    given = plan("?x :p ?v BIND(BNODE() AS ?b) BIND(UUID() AS ?u) ?x :q ?w")
    assert optimise(given).plan == given


def test_what_goes_to_an_endpoint_is_as_it_was_written() -> None:
    given = plan(
        "SERVICE <http://end/point> { ?x :p ?v . ?x :q ?w BIND(1 + 1 AS ?k) FILTER(?v > 1 && 1 = 1) } FILTER(?v > 2)"
    )
    before, after = ([n for n in nodes_of(p.root) if isinstance(n, Service)] for p in (given, optimise(given).plan))
    assert before == after
    assert any(isinstance(node, Filter) and node.inner in after for node in nodes_of(optimise(given).plan.root))


def test_windows_variables_and_head_stay() -> None:
    given = plan("WINDOW :w0 { ?x :p ?v } FILTER(1 > 2)", "?v ?x")
    after = optimise(given).plan
    assert (after.windows, after.variables, after.text) == (given.windows, given.variables, given.text)


def test_a_query_too_deep_to_rewrite_stays_as_it_is() -> None:
    given = plan(f"?x :p ?v FILTER({' && '.join(f'?v != {number}' for number in range(400))})")
    assert optimise(given) == (given, ())


@pytest.mark.parametrize("value", [NamedNode("http://example/a"), Literal("abc"), Literal("2")])
def test_a_constant_stands_for_itself_only(value: NamedNode | Literal) -> None:
    """`=` is sameTerm for these: asked of the reference, for terms of every kind."""
    assert is_equal_only_to_itself(value)
    test = Operation("=", (VariableReference(Variable("t")), Constant(value)))
    holds = reference_holds(test, ("t",), [(term,) for term in TERMS])
    assert [term for term, held in zip(TERMS, holds, strict=True) if held] == [t for t in TERMS if t == value]


CONDITIONS = [
    *("?v > 1", "BOUND(?v)", "!BOUND(?v)", "?v", "!?v", "?v + 1 = 2", "ISIRI(?v)", "STR(?v) = 'a'", "sameTerm(?v, ?w)"),
    *("?v > 1 || ?w = 1", "?v > 1 || ?v < 0", "?v > 1 && ?w = 1", "!(?v > 1 && ?w = 1)", "!(?v > 1 || ?w = 2)"),
    *("COALESCE(?v, ?w) = 1", "IF(?v > 1, true, true)", "IF(?w = 1, ?v, true)", "IF(BOUND(?v), ?v, ?w) = 1"),
    *("?v IN (1, 2)", "?v NOT IN (1, 2)", "1 IN (?v, 1)", "?w IN (?v)", "!(?w IN (?v, 1))", "?v IN ()", "?v NOT IN ()"),
    *("!(!(?v = 1))", "(?v = 1) = true", "BOUND(?v) || BOUND(?w)", "REGEX(?v, 'a')", "xsd:integer(?v) = 1", "1 = 1"),
]


@pytest.mark.parametrize("text", CONDITIONS)
def test_a_condition_that_rejects_is_never_true_without_the_variable(text: str) -> None:
    """Asked of the reference: whatever ?w is, ?v being unbound."""
    prefix = "PREFIX xsd: <http://www.w3.org/2001/XMLSchema#> "
    given = plan_query(parse(f"{prefix}SELECT * {{ ?v ?p ?w FILTER({text}) }}"))
    (condition,) = (node.condition for node in nodes_of(given.root) if isinstance(node, Filter))
    rows: list[Row] = [(None, term) for term in TERMS]
    true_somewhere = any(reference_holds(condition, ("v", "w"), rows))
    assert not (is_null_rejecting(condition, Variable("v")) and true_somewhere)


def test_most_of_them_are_known_to_reject() -> None:
    known = 0
    for text in CONDITIONS:
        given = plan_query(
            parse(f"PREFIX xsd: <http://www.w3.org/2001/XMLSchema#> SELECT * {{ ?v ?p ?w FILTER({text}) }}")
        )
        (condition,) = (node.condition for node in nodes_of(given.root) if isinstance(node, Filter))
        known += is_null_rejecting(condition, Variable("v"))
    assert known > 12
