"""EXISTS sees the solutions of its own group and nothing around it (SPARQL 1.1, section 18.6)."""

from __future__ import annotations

import pytest
from pyoxigraph import Store

from headwater.algebra import plan_query
from headwater.kernel.evaluator import KernelEvaluator
from headwater.language import parse
from headwater.reference import MakeEvaluator, Program, ReferenceEvaluator, Registered
from headwater.terms.model import Element, Literal, NamedNode, Triple
from headwater.windows import settle

STREAM = "http://example.org/s"


@pytest.mark.parametrize("evaluator", [ReferenceEvaluator, KernelEvaluator])
@pytest.mark.parametrize(
    ("group", "expected"),
    [
        # ?v is bound around the group to 1; in the group it is free, and there is a 2.
        ("{ WINDOW <w> { ?x <urn:r> ?y } FILTER EXISTS { WINDOW <w> { ?x <urn:q> ?v } } }", 1),
        ("{ WINDOW <w> { ?x <urn:r> ?y } FILTER NOT EXISTS { WINDOW <w> { ?x <urn:q> ?v } } }", 0),
        # In the same group it is bound, and there is no 1.
        ("WINDOW <w> { ?x <urn:r> ?y } FILTER EXISTS { WINDOW <w> { ?x <urn:q> ?v } }", 0),
        ("WINDOW <w> { ?x <urn:r> ?y } FILTER NOT EXISTS { WINDOW <w> { ?x <urn:q> ?v } }", 1),
    ],
)
def test_a_variable_of_the_same_name_around_the_group(evaluator: MakeEvaluator, group: str, expected: int) -> None:
    text = f"""SELECT * FROM NAMED WINDOW <w> ON <{STREAM}> [RANGE 1s TUMBLING]
               WHERE {{ WINDOW <w> {{ ?x <urn:p> ?v }} {group} }}"""
    plan = plan_query(parse(text))
    program = Program([Registered(plan, settle(plan))], Store(), 0, evaluator)
    triples = (Triple(NamedNode("urn:x"), NamedNode(f"urn:{p}"), Literal(v)) for p, v in (("p", 1), ("q", 2), ("r", 3)))
    (answer,) = program.advance({STREAM: [Element(500_000, tuple(triples))]}, ended=[STREAM]).answers
    assert len(answer.rows) == expected


@pytest.mark.parametrize("evaluator", [ReferenceEvaluator, KernelEvaluator])
@pytest.mark.parametrize(
    ("removed", "expected"),
    [
        # Nothing in common with the left side: nothing is removed, whatever is bound around EXISTS.
        ("WINDOW <w> { ?a <urn:r> ?b }", 1),
        ("WINDOW <w> { ?a <urn:q> ?k }", 0),
    ],
)
def test_a_minus_with_nothing_in_common_removes_nothing(evaluator: MakeEvaluator, removed: str, expected: int) -> None:
    text = f"""SELECT * FROM NAMED WINDOW <w> ON <{STREAM}> [RANGE 1s TUMBLING]
               WHERE {{ WINDOW <w> {{ ?x <urn:p> ?v }}
                        FILTER EXISTS {{ WINDOW <w> {{ ?x <urn:q> ?k }} MINUS {{ {removed} }} }} }}"""
    plan = plan_query(parse(text))
    program = Program([Registered(plan, settle(plan))], Store(), 0, evaluator)
    triples = (Triple(NamedNode("urn:x"), NamedNode(f"urn:{p}"), Literal(v)) for p, v in (("p", 1), ("q", 2), ("r", 3)))
    (answer,) = program.advance({STREAM: [Element(500_000, tuple(triples))]}, ended=[STREAM]).answers
    assert len(answer.rows) == expected
