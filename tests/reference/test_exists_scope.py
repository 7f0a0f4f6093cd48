"""EXISTS sees the solutions of its own group and nothing around it (SPARQL 1.1, section 18.6)."""

from __future__ import annotations

import pytest
from pyoxigraph import Store

from headwater.algebra.build import plan_query
from headwater.execution.program import Program
from headwater.execution.query_evaluators import MakeEvaluator
from headwater.execution.registered import RegisteredQuery
from headwater.kernel.evaluator_choice import make_evaluator
from headwater.kernel.kernel_evaluator import KernelEvaluator
from headwater.language.parser import parse
from headwater.reference.reference_evaluator import ReferenceEvaluator
from headwater.terms.model import Element, Literal, NamedNode, Triple
from headwater.windows.settings import resolve_settings

STREAM = "http://example.org/s"


@pytest.mark.parametrize("evaluator", [ReferenceEvaluator, KernelEvaluator])
@pytest.mark.parametrize(
    ("group", "expected"),
    [
        # ?v is bound around the group to 1; in the group it is free, and there is a 2.
        ("{ WINDOW <w> { ?x <urn:r> ?y } FILTER EXISTS { WINDOW <w> { ?x <urn:q> ?v } } }", 1),
        ("{ WINDOW <w> { ?x <urn:r> ?y } FILTER NOT EXISTS { WINDOW <w> { ?x <urn:q> ?v } } }", 0),
        # A sub-query that does not show ?v has one of its own, which nothing binds.
        (
            "WINDOW <w> { ?x <urn:r> 3 } FILTER EXISTS { SELECT ?x { WINDOW <w> { ?x <urn:q> 2 FILTER(BOUND(?v)) } } }",
            0,
        ),
        ("WINDOW <w> { ?x <urn:r> ?y } FILTER EXISTS { SELECT ?x { WINDOW <w> { ?x <urn:q> ?v } } }", 1),
        # In the same group it is bound, and there is no 1.
        ("WINDOW <w> { ?x <urn:r> ?y } FILTER EXISTS { WINDOW <w> { ?x <urn:q> ?v } }", 0),
        ("WINDOW <w> { ?x <urn:r> ?y } FILTER NOT EXISTS { WINDOW <w> { ?x <urn:q> ?v } }", 1),
    ],
)
def test_a_variable_of_the_same_name_around_the_group(evaluator: MakeEvaluator, group: str, expected: int) -> None:
    text = f"""SELECT * FROM NAMED WINDOW <w> ON <{STREAM}> [RANGE 1s TUMBLING]
               WHERE {{ WINDOW <w> {{ ?x <urn:p> ?v }} {group} }}"""
    plan = plan_query(parse(text))
    program = Program([RegisteredQuery(plan, resolve_settings(plan))], Store(), 0, evaluator)
    triples = (Triple(NamedNode("urn:x"), NamedNode(f"urn:{p}"), Literal(v)) for p, v in (("p", 1), ("q", 2), ("r", 3)))
    (answer,) = program.advance({STREAM: [Element(500_000, tuple(triples))]}, ended=[STREAM]).answers
    assert len(answer.rows) == expected


@pytest.mark.parametrize("evaluator", [ReferenceEvaluator, make_evaluator])
@pytest.mark.parametrize(
    ("inside", "expected"),
    [
        # Nothing in common with the left side: nothing is removed, whatever is bound around EXISTS.
        ("WINDOW <w> { ?x <urn:q> ?k } MINUS { WINDOW <w> { ?a <urn:r> ?b } }", 1),
        ("WINDOW <w> { ?x <urn:q> ?k } MINUS { WINDOW <w> { ?a <urn:q> ?k } }", 0),
        # The common variable is unbound on the left, then bound to another value, then to the same one.
        ("WINDOW <w> { ?x <urn:q> ?k OPTIONAL { ?x <urn:none> ?o } } MINUS { WINDOW <w> { ?a <urn:r> ?o } }", 1),
        ("WINDOW <w> { ?x <urn:q> ?k OPTIONAL { ?x <urn:q> ?o } } MINUS { WINDOW <w> { ?a <urn:r> ?o } }", 1),
        ("WINDOW <w> { ?x <urn:q> ?k OPTIONAL { ?x <urn:r> ?o } } MINUS { WINDOW <w> { ?a <urn:r> ?o } }", 0),
        # Unbound on the right.
        ("WINDOW <w> { ?x <urn:q> ?k } MINUS { WINDOW <w> { ?a <urn:r> ?b OPTIONAL { ?a <urn:none> ?k } } }", 1),
        # What is removed asks for a value from around EXISTS: 1 is below 2, and not above.
        (
            "WINDOW <w> { ?x <urn:q> ?k OPTIONAL { ?x <urn:r> ?o } } "
            "MINUS { WINDOW <w> { ?a <urn:r> ?o . ?a <urn:q> ?two FILTER(?v < ?two) } }",
            0,
        ),
        (
            "WINDOW <w> { ?x <urn:q> ?k OPTIONAL { ?x <urn:r> ?o } } "
            "MINUS { WINDOW <w> { ?a <urn:r> ?o . ?a <urn:q> ?two FILTER(?v > ?two) } }",
            1,
        ),
    ],
)
def test_a_minus_removes_only_what_has_something_in_common(
    evaluator: MakeEvaluator, inside: str, expected: int
) -> None:
    text = f"""SELECT * FROM NAMED WINDOW <w> ON <{STREAM}> [RANGE 1s TUMBLING]
               WHERE {{ WINDOW <w> {{ ?x <urn:p> ?v }} FILTER EXISTS {{ {inside} }} }}"""
    plan = plan_query(parse(text))
    program = Program([RegisteredQuery(plan, resolve_settings(plan))], Store(), 0, evaluator)
    triples = (Triple(NamedNode("urn:x"), NamedNode(f"urn:{p}"), Literal(v)) for p, v in (("p", 1), ("q", 2), ("r", 3)))
    (answer,) = program.advance({STREAM: [Element(500_000, tuple(triples))]}, ended=[STREAM]).answers
    assert len(answer.rows) == expected
