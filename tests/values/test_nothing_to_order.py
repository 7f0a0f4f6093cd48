"""LIMIT and OFFSET over solutions without a variable: there is nothing to order by, and nothing is."""

from __future__ import annotations

import pytest
from pyoxigraph import Store

from headwater.algebra.build import plan_query
from headwater.execution.program import Program
from headwater.execution.query_evaluators import MakeEvaluator
from headwater.execution.registered import RegisteredQuery
from headwater.kernel.kernel_evaluator import KernelEvaluator
from headwater.language.parser import parse
from headwater.reference.reference_evaluator import ReferenceEvaluator
from headwater.terms.model import Element, Literal, NamedNode, Triple
from headwater.windows.settings import resolve_settings

STREAM = "http://example.org/s"


@pytest.mark.parametrize("evaluator", [ReferenceEvaluator, KernelEvaluator])
@pytest.mark.parametrize(("cut", "expected"), [("LIMIT 1", 2), ("OFFSET 1", 0), ("OFFSET 0", 2)])
def test_a_sub_select_that_binds_nothing(evaluator: MakeEvaluator, cut: str, expected: int) -> None:
    one, two = (Triple(NamedNode("urn:a"), NamedNode("urn:p"), Literal(text)) for text in "xy")
    plan = plan_query(
        parse(
            f"""SELECT ?v FROM NAMED WINDOW <w> ON <{STREAM}> [RANGE 1s TUMBLING]
                WHERE {{ WINDOW <w> {{ <urn:a> <urn:p> ?v }} {{ SELECT * WHERE {{ <urn:a> <urn:q> 1 }} {cut} }} }}"""
        )
    )
    static = Store()
    static.update("INSERT DATA { <urn:a> <urn:q> 1 }")
    program = Program([RegisteredQuery(plan, resolve_settings(plan))], static, 0, evaluator)
    (answer,) = program.advance({STREAM: [Element(500_000, (one, two))]}, ended=[STREAM]).answers
    assert len(answer.rows) == expected
