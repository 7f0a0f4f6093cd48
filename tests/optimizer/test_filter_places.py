"""Filters go down as far as their meaning allows and no further; generated cases see that answers stay the same."""

from __future__ import annotations

import pytest

from headwater.algebra.build import plan_query
from headwater.algebra.nodes import Bgp, Filter, Node, Project
from headwater.algebra.scope import nodes_of
from headwater.algebra.to_sparql import expression_to_sparql
from headwater.language.parser import parse
from headwater.optimizer.optimise import optimise
from headwater.optimizer.rewrites import join_filters, push_filters, split_filters


def places(pattern: str) -> list[tuple[str, str]]:
    """For each filter of the plan what it tests, and what stands below it."""
    text = f"SELECT * WHERE {{ {pattern} }}".replace(":", "x:")
    plan = plan_query(parse("PREFIX x: <http://example.org/> " + text))
    moving = (split_filters.RULE, push_filters.RULE)
    root = optimise(plan, rewrites=moving, finishing=(join_filters.RULE,)).plan.root
    assert isinstance(root, Project)
    return [
        (expression_to_sparql(node.condition), shown(node.inner)) for node in nodes_of(root) if isinstance(node, Filter)
    ]


def shown(node: Node) -> str:
    if isinstance(node, Bgp):
        return " . ".join(str(getattr(t.predicate, "value", t.predicate))[-1] for t in node.triples)
    return type(node).__name__


@pytest.mark.parametrize(
    ("pattern", "below"),
    [
        ("?x :p ?v . ?x :q ?w FILTER(?v > 1)", ["p"]),
        ("?x :p ?v . ?x :q ?v FILTER(?v > 1)", ["p", "q"]),
        ("?x :p ?v . ?x :q ?w FILTER(?v > ?w)", ["Bgp of 2"]),
        ("?x :p ?v . ?x :q ?w FILTER(?v > 1 && ?w > 2)", ["p", "q"]),
        ("{ ?x :p ?v } UNION { ?x :q ?v } FILTER(?v > 1)", ["p", "q"]),
        ("{ { ?x :p ?v } UNION { ?x :q ?v } } ?x :r ?v FILTER(?v > 1)", ["p", "q", "r"]),
        ("{ SELECT ?v { ?x :p ?v } } ?y :q ?v FILTER(?v > 1)", ["p", "q"]),
        ("?x :p ?v OPTIONAL { ?x :q ?w } FILTER(?v > 1)", ["p"]),
        ("?x :p ?v OPTIONAL { ?x :q ?w } FILTER(?w > 1)", ["LeftJoin"]),
        ("?x :p ?v OPTIONAL { ?x :q ?w FILTER(?w > 1) }", ["q"]),
        ("?x :p ?v OPTIONAL { ?x :q ?w FILTER NOT EXISTS { ?w :r ?z } }", ["q"]),
        ("?x :p ?v MINUS { ?x :q ?w } FILTER(?v > 1)", ["p"]),
        ("?x :p ?v BIND(?v + 1 AS ?w) FILTER(?v > 1)", ["p"]),
        ("?x :p ?v BIND(?v + 1 AS ?w) FILTER(?w > 1)", ["Extend"]),
        ("GRAPH :g { ?x :p ?v } FILTER(?v > 1)", ["p"]),
        ("GRAPH ?g { ?x :p ?v } FILTER(?g = :g)", ["Graph"]),
        ("{ SELECT ?v { ?x :p ?v } LIMIT 1 } FILTER(?v > 1)", ["Slice"]),
        ("?x :p ?v . ?y :q ?w OPTIONAL { ?x :r ?w } FILTER(?z > 1)", ["LeftJoin"]),
        ("?x :p ?v . ?x :q ?w FILTER(?v < NOW())", ["Bgp of 2"]),
        ("?x :p ?v . ?x :q ?w FILTER EXISTS { ?x :r ?v }", ["p"]),
        ("{ ?x :p ?v } { ?x :q ?w OPTIONAL { ?x :r ?v } } FILTER(?v > 1)", ["p"]),
        ("{ ?x :p ?y } { ?x :q ?w OPTIONAL { ?x :r ?v } } FILTER(?v > 1)", ["LeftJoin"]),
        ("{ ?y :p ?z OPTIONAL { ?z :s ?v } } { ?x :q ?w OPTIONAL { ?x :r ?v } } FILTER(?v > 1)", ["Join"]),
    ],
)
def test_a_filter_stands_where_its_variables_are_settled(pattern: str, below: list[str]) -> None:
    found = [what if " . " not in what else f"Bgp of {what.count(' . ') + 1}" for _, what in places(pattern)]
    assert found == below


def test_an_optional_keeps_the_condition_that_looks_at_both_sides() -> None:
    assert places("?x :p ?v OPTIONAL { ?x :q ?w FILTER(?w > ?v) }") == []
    assert [what for _, what in places("?x :p ?v OPTIONAL { ?x :q ?w FILTER(?w > ?v && ?w > 1) }")] == ["q"]
