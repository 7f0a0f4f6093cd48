"""The choices of a join can be seen, and switched off."""

from __future__ import annotations

import pytest
from pyoxigraph import Store

from headwater.algebra.build import plan_query
from headwater.kernel.kernel_evaluator import KernelEvaluator
from headwater.language.parser import parse
from headwater.running.named_evaluators import EvaluatorName, evaluator_by_name
from headwater.terms.model import Element, Literal, NamedNode, Triple
from headwater.windows.settings import resolve_settings

STREAM = "http://example.org/s"
QUERY = f"""SELECT ?x ?a ?b ?c WHERE {{ STREAM <{STREAM}> [RANGE 1m]
            {{ ?x <urn:a> ?a . ?x <urn:b> ?b . ?x <urn:c> ?c }} }}"""


def stated(subject: int, predicate: str, value: int) -> Triple:
    return Triple(NamedNode(f"urn:x{subject}"), NamedNode(f"urn:{predicate}"), Literal(value))


def evaluator() -> KernelEvaluator:
    plan = plan_query(parse(QUERY))
    return KernelEvaluator(plan, resolve_settings(plan), Store())


def feed(running: KernelEvaluator) -> None:
    """Subject 0 has one b and three c, subject 1 the other way round; then each gets an a."""
    many = [stated(0, "b", 1), *(stated(0, "c", n) for n in range(3)), stated(1, "c", 1)]
    many += [stated(1, "b", n) for n in range(3)]
    running.advance({running.keys[0]: [Element(1_000, tuple(many))]}, 2_000)
    for subject in (0, 1):
        time = 2_000 + subject
        running.advance({running.keys[0]: [Element(time, (stated(subject, "a", 0),))]}, time + 1)


def test_each_mapping_goes_where_it_has_the_fewest_partners_and_that_is_seen() -> None:
    running = evaluator()
    feed(running)
    (join,) = running.joins
    by_name = {one.variables[1]: one for one in join.inputs}
    assert not join.has_fixed_order
    assert join.results == 6
    assert {name: one.rows for name, one in by_name.items()} == {"a": 2, "b": 4, "c": 4}
    assert by_name["b"].chosen == (1, 1)
    assert by_name["c"].chosen == (1, 1)
    assert [index.variables for index in by_name["b"].indexes] == [("x",)]


def test_a_fixed_order_sends_all_the_same_way() -> None:
    running = evaluator()
    running.fix_orders()
    feed(running)
    (join,) = running.joins
    assert join.has_fixed_order
    assert join.results == 6
    assert [one.chosen for one in join.inputs if "b" in one.variables] == [(2, 0)]


@pytest.mark.parametrize(("name", "is_fixed"), [("auto", False), ("fixed-order", True)])
def test_the_name_of_the_evaluator_is_the_switch(name: EvaluatorName, is_fixed: bool) -> None:
    plan = plan_query(parse(QUERY))
    running = evaluator_by_name(name)(plan, resolve_settings(plan), Store())
    assert isinstance(running, KernelEvaluator)
    assert [join.has_fixed_order for join in running.joins] == [is_fixed]
