"""A bag counts the occurrences of a triple, also within one element."""

from __future__ import annotations

import pytest
from pyoxigraph import Store

from headwater.algebra.build import plan_query
from headwater.kernel.kernel_evaluator import KernelEvaluator
from headwater.language.parser import parse
from headwater.language.stream_clauses import StreamOperator
from headwater.reference.reference_evaluator import ReferenceEvaluator
from headwater.terms.model import SECOND, Element, Literal, NamedNode, Triple
from headwater.windows.settings import Content, Options, resolve_settings

A = NamedNode("http://example.org/a")
TWICE = Triple(A, A, A)
OTHER = Triple(A, A, NamedNode("http://example.org/b"))
STREAM = "http://example.org/s"
PLAIN = f"SELECT (COUNT(*) AS ?n) WHERE {{ STREAM <{STREAM}> [RANGE 2s] {{ ?x ?y ?z }} }}"
WITH_PATH = f"""SELECT (COUNT(*) AS ?n) WHERE {{
  STREAM <{STREAM}> [RANGE 2s] {{ ?x ?y ?z FILTER EXISTS {{ ?x <{A.value}>* ?w }} }} }}"""


@pytest.mark.parametrize(
    ("text", "evaluator"),
    [(PLAIN, KernelEvaluator), (PLAIN, ReferenceEvaluator), (WITH_PATH, ReferenceEvaluator)],
    ids=["kernel", "reference", "reference with a path"],
)
@pytest.mark.parametrize(("content", "expected"), [(Content.BAG, [3, 4]), (Content.SET, [2, 2])])
def test_a_triple_that_arrives_twice_at_one_instant(
    text: str, evaluator: type[KernelEvaluator | ReferenceEvaluator], content: Content, expected: list[int]
) -> None:
    plan = plan_query(parse(text))
    options = Options(content=content, emit=StreamOperator.RSTREAM)
    running = evaluator(plan, resolve_settings(plan, options), Store())
    elements = [Element(0, (TWICE, TWICE, OTHER)), Element(SECOND, (TWICE,))]
    answers = running.advance({key: elements for key in running.keys}, SECOND + 1)
    assert [answer.rows for answer in answers] == [((Literal(count),),) for count in expected]
