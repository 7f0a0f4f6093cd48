"""Which aggregations can be computed in parts, shown by computing them in parts."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from headwater.algebra.nodes import Aggregation, Extend, Group, Node, Project
from headwater.algebra.plan import QueryPlan
from headwater.algebra.scope import nodes_of
from headwater.optimizer.distribution import (
    AggregateSplit,
    NotDistributable,
    PartiallyDistributable,
    TotallyDistributable,
    distribution_of,
    groups_of_clauses,
)
from headwater.terms.model import Element, Term, Triple, Variable
from headwater.values.aggregates import aggregate
from tests.optimizer.answers import answers
from tests.optimizer.random_queries import PREFIXES, Case, Maker
from tests.optimizer.traps import MERGED, WINDOWS

PARTS = 3


def plan_of(query: str, source: str = WINDOWS) -> QueryPlan:
    return case_over(query, source, 0).plan()


def case_over(query: str, source: str, seed: int) -> Case:
    made = Maker(seed).case()
    head, where, tail = query.partition("WHERE")
    return replace(made, text=f"{PREFIXES}{head}{source} {where}{tail}")


def grouping(plan: QueryPlan) -> Group:
    return next(node for node in nodes_of(plan.root) if isinstance(node, Group))


def names(keys: frozenset[Variable]) -> set[str]:
    return {key.value for key in keys}


@pytest.mark.parametrize(
    ("query", "keys"),
    [
        ("SELECT ?x (SUM(?v) AS ?n) WHERE { WINDOW :w0 { ?x :p ?v } } GROUP BY ?x", {"x"}),
        ("SELECT ?x (COUNT(DISTINCT ?v) AS ?n) WHERE { WINDOW :w0 { ?x :p ?v . ?x :q ?w } } GROUP BY ?x ?w", {"x"}),
        (
            "SELECT ?x (AVG(?v) AS ?n) WHERE { WINDOW :w0 { ?x :p ?v } WINDOW :w1 { ?x :q ?w } ?x :q ?k } GROUP BY ?x",
            {"x"},
        ),
        (
            "SELECT ?x (MAX(?v) AS ?n) WHERE { { WINDOW :w0 {?x :p ?v} } UNION { WINDOW :w1 {?x :q 1} } } GROUP BY ?x",
            {"x"},
        ),
    ],
)
def test_totally(query: str, keys: set[str]) -> None:
    plan = plan_of(query)
    found = distribution_of(plan, grouping(plan))
    assert isinstance(found, TotallyDistributable)
    assert names(found.keys) == keys


@pytest.mark.parametrize(
    ("query", "partials"),
    [
        ("SELECT ?v (COUNT(*) AS ?n) WHERE { WINDOW :w0 { ?x :p ?v . ?x :q ?w } } GROUP BY ?v", ["COUNT"]),
        (
            "SELECT (AVG(?v) AS ?n) (MIN(?w) AS ?m) WHERE { WINDOW :w0 { ?x :p ?v . ?x :q ?w } }",
            ["PARTIAL_SUM", "MIN"],
        ),
        ("SELECT ?k (SUM(?v) AS ?n) WHERE { WINDOW :w0 { ?x :p ?v } ?x :q ?k } GROUP BY ?k", ["PARTIAL_SUM"]),
    ],
)
def test_partially(query: str, partials: list[str]) -> None:
    plan = plan_of(query)
    found = distribution_of(plan, grouping(plan))
    assert isinstance(found, PartiallyDistributable)
    assert "x" in names(found.keys)
    assert [split.partial.function for split in found.splits] == partials


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("SELECT ?v (COUNT(DISTINCT ?w) AS ?n) WHERE { WINDOW :w0 { ?x :p ?v . ?x :q ?w } } GROUP BY ?v", "DISTINCT"),
        ("SELECT (GROUP_CONCAT(?v) AS ?n) WHERE { WINDOW :w0 { ?x :p ?v } }", "order"),
        (
            "SELECT ?w (COUNT(*) AS ?n) WHERE { WINDOW :w0 { ?x :p ?v } WINDOW :w1 { ?y :q ?w } } GROUP BY ?w",
            "every triple",
        ),
        ("SELECT ?x (COUNT(*) AS ?n) WHERE { WINDOW :w0 { ?x :p+ ?v } } GROUP BY ?x", "path"),
        ("SELECT ?x (COUNT(*) AS ?n) WHERE { ?x :p ?v } GROUP BY ?x", "no triple pattern"),
        ("SELECT ?x (COUNT(*) AS ?n) WHERE { { ?x :p ?v } UNION { WINDOW :w0 { ?x :p ?v } } } GROUP BY ?x", "repeated"),
        ("SELECT ?x (COUNT(*) AS ?n) WHERE { ?x :p ?v OPTIONAL { WINDOW :w0 { ?x :q ?w } } } GROUP BY ?x", "repeated"),
        (
            "SELECT ?x (COUNT(*) AS ?n) WHERE { { SELECT ?x ?v { WINDOW :w0 { ?x :p ?v } } LIMIT 3 } } GROUP BY ?x",
            "Slice",
        ),
    ],
)
def test_not_and_why(query: str, reason: str) -> None:
    plan = plan_of(query)
    found = distribution_of(plan, grouping(plan))
    assert isinstance(found, NotDistributable)
    assert reason in found.reason


def test_a_grouping_inside_a_window_reads_that_window() -> None:
    plan = plan_of("SELECT * WHERE { WINDOW :w0 { { SELECT ?x (COUNT(*) AS ?n) { ?x :p ?v } GROUP BY ?x } } }")
    assert isinstance(distribution_of(plan, grouping(plan)), TotallyDistributable)


def test_aggregate_clauses_are_groupings() -> None:
    plan = plan_of("SELECT * WHERE { ?x :p ?v } AGGREGATE { (?n, SUM(?v), {?x}) (?m, COUNT(?x), {?v}) }", MERGED)
    (node,) = (node for node in nodes_of(plan.root) if isinstance(node, Aggregation))
    assert [distribution_of(plan, group) for group in groups_of_clauses(node)] == [
        TotallyDistributable(frozenset({Variable("x")})),
        TotallyDistributable(frozenset({Variable("v")})),
    ]


def part_of(case: Case, number: int) -> Case:
    """The case with the triples of a part: those whose subject falls to it."""

    def mine(elements: tuple[Element, ...]) -> tuple[Element, ...]:
        return tuple(replace(e, triples=tuple(t for t in e.triples if _owner(t) == number)) for e in elements)

    return replace(case, elements=(mine(case.elements[0]), mine(case.elements[1])))


def _owner(triple: Triple) -> int:
    return sum(map(ord, str(triple.subject))) % PARTS


@pytest.mark.parametrize("seed", range(6))
def test_parts_that_hold_whole_groups_are_united(seed: int) -> None:
    query = (
        "SELECT ?x (SUM(?v) AS ?n) (COUNT(DISTINCT ?w) AS ?m) (GROUP_CONCAT(?v) AS ?t) "
        "WHERE { WINDOW :w0 { ?x :p ?v . ?x :q ?w } } GROUP BY ?x"
    )
    case = case_over(query, WINDOWS, seed)
    plan = case.plan()
    assert isinstance(distribution_of(plan, grouping(plan)), TotallyDistributable)
    parts = [answers(part_of(case, number), plan) for number in range(PARTS)]
    united = Counter(row for part in parts for _, rows in part for row in rows)
    assert united == Counter(row for _, rows in answers(case, plan) for row in rows)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("by", ["GROUP BY ?w", ""])
def test_partial_aggregates_are_put_together(by: str, seed: int) -> None:
    query = (
        f"SELECT {'?w' if by else ''} (COUNT(?v) AS ?a) (SUM(STRLEN(STR(?v))) AS ?b) (AVG(STRLEN(STR(?v))) AS ?c) "
        f"(MIN(?v) AS ?d) (MAX(?v) AS ?e) WHERE {{ WINDOW :w0 {{ ?x :p ?v . ?x :q ?w }} }} {by}"
    )
    case = case_over(query, WINDOWS, seed)
    plan = case.plan()
    group = grouping(plan)
    found = distribution_of(plan, group)
    assert isinstance(found, PartiallyDistributable)
    held: dict[tuple[object, ...], list[dict[AggregateSplit, list[Term | None]]]] = {}
    for number in range(PARTS):
        for key, values in partial_states(part_of(case, number), plan, group, found.splits).items():
            held.setdefault(key, []).append(values)
    merged = [
        (*key, *(merge(split, [part[split] for part in parts]) for split in found.splits))
        for key, parts in held.items()
    ]
    expected = [row for _, rows in answers(case, plan) for row in rows]
    if by or any(held):
        assert Counter(map(str, merged)) == Counter(map(str, expected))


def partial_states(
    case: Case, plan: QueryPlan, group: Group, splits: tuple[AggregateSplit, ...]
) -> dict[tuple[object, ...], dict[AggregateSplit, list[Term | None]]]:
    """For each group of a part the values of each aggregate; a part without solutions has no groups at all."""
    keys = tuple(variable for variable, _ in group.keys)
    rows: Node = group.inner
    names = [Variable(f"argument{i}") for i, _ in enumerate(splits)]
    for name, split in zip(names, splits, strict=True):
        assert split.aggregate.argument is not None
        rows = Extend(rows, name, split.aggregate.argument)
    asked = replace(plan, root=Project(rows, (*keys, *names)), variables=(*keys, *names))
    found: dict[tuple[object, ...], dict[AggregateSplit, list[Term | None]]] = {}
    for _, solutions in answers(case, asked):
        for row in solutions:
            values = found.setdefault(row[: len(keys)], {split: [] for split in splits})
            for split, value in zip(splits, row[len(keys) :], strict=True):
                # An argument with an error has no value.
                assert value is None or isinstance(value, Term)
                values[split].append(value)
    return found


def merge(split: AggregateSplit, parts: list[list[Term | None]]) -> Term | None:
    """The partial aggregates of each part first, then what puts them together."""
    partial = (aggregate(split.partial.function, Counter(part)) for part in parts)
    return aggregate(split.merge, Counter(partial))
