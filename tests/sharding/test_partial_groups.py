"""Groups that are spread over shards: put together they are the groups of the whole, to the last digit."""

from __future__ import annotations

import random

import pytest

from headwater.algebra.partitioning import OneShard
from headwater.algebra.wanted_patterns import wanted_patterns_of
from headwater.execution.typed_cells import plain_text
from headwater.reference.reference_evaluator import ReferenceEvaluator
from headwater.sharding.shard_plan import ShardPlan
from headwater.sharding.shard_planning import plan_shards
from headwater.terms.model import XSD, Literal, NamedNode
from tests.optimised_evaluators import make_optimised_evaluator
from tests.sharding.shards import EX, WINDOWS, cut, elements, registered, sharded_answers, whole_answers

STAR = f"{WINDOWS} WHERE {{ WINDOW :w {{ ?o :value ?v ; :by ?s }} }}"
MAYBE = f"{WINDOWS} WHERE {{ WINDOW :w {{ ?o :value ?v OPTIONAL {{ ?o :by ?s }} }} }}"
STREAMS = f"{WINDOWS} WHERE {{ WINDOW :w {{ ?o :value ?v }} WINDOW :v {{ ?x :about ?o }} }}"
ROOMS = f"{WINDOWS} WHERE {{ WINDOW :w {{ ?o :value ?v ; :by ?s }} GRAPH :rooms {{ ?s :in ?r }} }}"

QUERIES = {
    "count of all": f"SELECT (COUNT(*) AS ?n) {STAR}",
    "count of what is bound": f"SELECT (COUNT(?s) AS ?n) (COUNT(*) AS ?m) {MAYBE}",
    "sum": f"SELECT (SUM(?v) AS ?n) {STAR}",
    "average by another key": f"SELECT ?s (AVG(?v) AS ?n) {STAR} GROUP BY ?s",
    "average of what may be unbound": f"SELECT ?v (AVG(STRLEN(STR(?s))) AS ?n) {MAYBE} GROUP BY ?v",
    "a key that may be unbound": f"SELECT ?s (COUNT(*) AS ?n) (SUM(?v) AS ?t) {MAYBE} GROUP BY ?s",
    "least and greatest": f"SELECT ?s (MIN(?v) AS ?a) (MAX(?v) AS ?b) {STAR} GROUP BY ?s",
    "least of nothing": f"SELECT (MIN(?v) AS ?a) (MAX(?v) AS ?b) (SAMPLE(?v) AS ?c) {STAR}",
    "sample": f"SELECT ?s (SAMPLE(?v) AS ?a) {STAR} GROUP BY ?s",
    "sample of what may be unbound": f"SELECT ?v (SAMPLE(?s) AS ?a) {MAYBE} GROUP BY ?v",
    "arguments that are computed": f"SELECT ?s (SUM(?v * 2) AS ?a) (COUNT(?v + 1) AS ?b) {STAR} GROUP BY ?s",
    "no errors": f"SELECT ?s (AVG(COALESCE(?v + 0, 0.5)) AS ?a) (SUM(COALESCE(?v + 0, 1)) AS ?b) {STAR} GROUP BY ?s",
    "keys that are computed": f"SELECT ?k (COUNT(*) AS ?n) {STAR} GROUP BY (isNumeric(?v) AS ?k)",
    "keys that are not shown": f"SELECT (AVG(?v) AS ?n) {STAR} GROUP BY ?s",
    "two keys": f"SELECT ?s ?v (COUNT(*) AS ?n) {STAR} GROUP BY ?s ?v",
    "expressions of groups": f"""SELECT ?s (AVG(?v) * 2 + COUNT(*) AS ?n) (CONCAT(STR(?s), '!') AS ?t) {STAR}
        GROUP BY ?s""",
    "having": f"SELECT ?s (COUNT(*) AS ?n) {STAR} GROUP BY ?s HAVING (COUNT(*) > 2 && MIN(?v) < 3)",
    "having without keys": f"SELECT (COUNT(*) AS ?n) {STAR} HAVING (COUNT(*) > 2)",
    "ordered": f"SELECT ?s (SUM(?v) AS ?n) {STAR} GROUP BY ?s ORDER BY DESC(?n) ?s",
    "the first": f"SELECT ?s (COUNT(*) AS ?n) {STAR} GROUP BY ?s ORDER BY DESC(?n) DESC(?s) LIMIT 2 OFFSET 1",
    "ordered by what is not shown": f"SELECT ?s {STAR} GROUP BY ?s ORDER BY DESC(COUNT(*)) ?s LIMIT 2",
    "different": f"SELECT DISTINCT (COUNT(*) AS ?n) {STAR} GROUP BY ?s",
    "of two streams": f"SELECT ?x (AVG(?v) AS ?n) {STREAMS} GROUP BY ?x",
    "of two streams, all": f"SELECT (SUM(?v) AS ?t) (COUNT(*) AS ?n) {STREAMS}",
    "with linked data": f"SELECT ?r (AVG(?v) AS ?n) (COUNT(*) AS ?m) {ROOMS} GROUP BY ?r",
    "triples": f"CONSTRUCT {{ ?s :seen true }} {STAR} GROUP BY ?s HAVING (COUNT(*) > 1)",
    "a verdict": f"ASK {STAR} GROUP BY ?s HAVING (COUNT(*) > 3)",
    "no aggregate": f"SELECT ?s {STAR} GROUP BY ?s",
    "the present": f"SELECT ?t (COUNT(*) AS ?n) {STAR} GROUP BY (NOW() AS ?t)",
}
WHOLE = {
    "different values": (f"SELECT (COUNT(DISTINCT ?v) AS ?n) {STAR}", "COUNT(DISTINCT …) must see equal values"),
    "texts in order": (f"SELECT (GROUP_CONCAT(?v) AS ?n) {STAR}", "depends on the order of all its values"),
    "changes": (f"REGISTER ISTREAM q AS SELECT (COUNT(*) AS ?n) {STAR}", "ISTREAM and DSTREAM compare whole groups"),
    "the present of a group": (f"SELECT (NOW() AS ?t) (COUNT(*) AS ?n) {STAR}", "asks for more than a group"),
    "groups that look around": (
        f"SELECT ?k (COUNT(*) AS ?n) {STAR} GROUP BY (EXISTS {{ WINDOW :w {{ ?y :by ?s }} }} AS ?k)",
        "depend on EXISTS",
    ),
    "a grouping below a join": (
        f"""SELECT ?s ?n {WINDOWS} WHERE {{ GRAPH :rooms {{ ?s :in ?r }}
        {{ SELECT ?s (COUNT(*) AS ?n) WHERE {{ WINDOW :w {{ ?o :value ?v ; :by ?s }} }} GROUP BY ?s }} }}""",
        "not every triple pattern over a stream has ?s",
    ),
}


def typed(text: str, datatype: str) -> Literal:
    return Literal(text, datatype=NamedNode(XSD + datatype))


def mixed(*texts: tuple[str, str]) -> list[Literal | NamedNode]:
    return [typed(*text) for text in texts]


INTEGERS: list[Literal | NamedNode] = [typed(str(n), "integer") for n in range(5)]
EXACT = mixed(
    ("1", "integer"), ("0.1", "decimal"), ("-2.75", "decimal"), ("3", "int"), ("0.000000000000000001", "decimal")
)
ROUNDED = mixed(("0.1", "double"), ("1e16", "double"), ("-1e16", "double"), ("1e-300", "double"), ("3", "double"))
ALL = [*EXACT, *ROUNDED, *mixed(("0.1", "float"), ("INF", "double"), ("16777217", "float"))]
LARGE = mixed(("9223372036854775807", "integer"), ("-9223372036854775807", "integer"), ("5", "integer"))
WITH_ERRORS = [*INTEGERS, *INTEGERS, *ROUNDED, Literal("text"), NamedNode(EX + "thing"), typed("no", "integer")]
POOLS: dict[str, list[Literal | NamedNode]] = {
    "integers": INTEGERS,
    "exact": EXACT,
    "rounded": ROUNDED,
    "all": ALL,
    "large": LARGE,
    "errors": WITH_ERRORS,
}
DELAY = 200_000


@pytest.mark.parametrize("name", QUERIES)
def test_shards_answer_as_one(name: str) -> None:
    query = registered(QUERIES[name])
    # Each pool in turn, and values that are no numbers for all.
    first = list(QUERIES).index(name)
    for number in (first, first + 1, first + 2, len(POOLS) - 1):
        pool = list(POOLS.values())[number % len(POOLS)]
        streams = elements(number, lambda chance: chance.choice(pool))  # noqa: B023
        expected = whole_answers(query, streams, DELAY)
        assert whole_answers(query, streams, DELAY, ReferenceEvaluator) == expected
        for shards, pieces in ((2, 1), (5, 3)):
            found = plan_shards([query], tuple(range(shards)), has_static_default=False)
            assert isinstance(found, ShardPlan), found
            assert found.partial_groups == {"q"}
            make = ReferenceEvaluator if (number + shards) % 3 == 0 else make_optimised_evaluator
            assert sharded_answers(query, found, cut(streams, pieces), DELAY, make) == expected
        assert any(not answer.is_empty for answer in expected)


@pytest.mark.parametrize("name", WHOLE)
def test_what_cannot_be_put_together_says_why(name: str) -> None:
    text, reason = WHOLE[name]
    found = plan_shards([registered(text)], (0, 1), has_static_default=False)
    assert isinstance(found, OneShard)
    assert reason in found.reason


def test_without_solutions_there_is_one_group_without_keys_and_none_with_them() -> None:
    streams = {stream: [e for e in listed if e.time > 10_000_000] for stream, listed in elements(1).items()}
    nothing = f"{WINDOWS} WHERE {{ WINDOW :w {{ ?o :value ?v ; :by :nobody }} }}"
    for head, tail, row in (
        ("(COUNT(*) AS ?n) (SUM(?v) AS ?t) (AVG(?v) AS ?a) (MIN(?v) AS ?m)", "", ("0", "0", "0", None)),
        ("?v (COUNT(*) AS ?n)", "GROUP BY ?v", None),
    ):
        query = registered(f"SELECT {head} {nothing} {tail}")
        found = plan_shards([query], (0, 1, 2), has_static_default=False)
        assert isinstance(found, ShardPlan)
        answers = sharded_answers(query, found, cut(streams, 2), DELAY)
        assert answers and answers == whole_answers(query, streams, DELAY)
        wanted = [] if row is None else [row]
        for answer in answers:
            assert [tuple(map(plain_text, one)) for one in answer.rows] == wanted


def test_a_sum_is_rounded_once() -> None:
    """In two shards of rounded sums 1e16 + 0.25 + 0.25 + … would lose every quarter."""
    query = registered(f"SELECT (SUM(?v) AS ?n) {WINDOWS} WHERE {{ WINDOW :w {{ ?o :value ?v }} }}")
    pool = [typed("10000000000000000", "double"), *[typed("0.25", "double")] * 9]
    found = plan_shards([query], (0, 1), has_static_default=False)
    assert isinstance(found, ShardPlan)
    chance = random.Random(7)
    streams = elements(7, lambda _: chance.choice(pool))
    expected = whole_answers(query, streams, DELAY, ReferenceEvaluator)
    assert sharded_answers(query, found, cut(streams, 2), DELAY) == expected
    assert len({answer.rows for answer in expected}) > 3


def test_groups_are_whole_in_a_shard_unless_another_query_wants_another_key() -> None:
    mentions = f"{WINDOWS} WHERE {{ WINDOW :v {{ ?x :about ?o }} }} GROUP BY ?o"
    counted = registered(f"SELECT ?o (COUNT(*) AS ?n) {mentions}", "counted")
    alone = plan_shards([counted], (0, 1), has_static_default=False)
    assert isinstance(alone, ShardPlan)
    assert (alone.variables, alone.partial_groups) == ({"counted": "o"}, frozenset())
    other = registered(f"SELECT ?x {WINDOWS} WHERE {{ WINDOW :v {{ ?x :about :o1 }} }}", "other")
    together = plan_shards([other, counted], (0, 1), has_static_default=False)
    assert isinstance(together, ShardPlan)
    assert (together.variables, together.partial_groups) == ({"other": "x", "counted": "x"}, frozenset({"counted"}))
    streams = elements(5)
    expected = whole_answers(counted, streams, DELAY)
    assert sharded_answers(counted, together, cut(streams, 3), DELAY) == expected


@pytest.mark.parametrize("tail", ["", "GROUP BY ?v ORDER BY DESC(?n) LIMIT 2"])
def test_queries_that_differ_in_a_constant_are_one_family_in_every_shard(tail: str) -> None:
    first, *others = (
        registered(
            f"SELECT (COUNT(*) AS ?n) (AVG(?v) AS ?m) (MIN(?v) AS ?l) {WINDOWS} "
            f"WHERE {{ WINDOW :w {{ ?o :value ?v ; :by :s{number} }} }} {tail}",
            f"q{number}",
        )
        for number in range(4)
    )
    found = plan_shards([first, *others], (0, 1, 2), has_static_default=False)
    assert isinstance(found, ShardPlan) and len(found.partial_groups) == 4
    streams = elements(3, lambda chance: chance.choice(EXACT))
    answers = sharded_answers(first, found, cut(streams, 3), DELAY, others=others)
    for query in (first, *others):
        mine = [answer for answer in answers if answer.query == query.plan.name]
        assert mine == whole_answers(query, streams, DELAY)


def test_keys_that_nobody_sees_are_read_with_their_texts() -> None:
    """The shards' answers have them, and whoever puts groups together tells them apart by the terms."""
    plan = registered(f"SELECT (COUNT(*) AS ?n) {STAR} GROUP BY ?s").plan
    places = {pattern.predicate: pattern.texts for pattern in wanted_patterns_of(plan) or ()}
    assert places == {NamedNode(EX + "value"): "p", NamedNode(EX + "by"): "po"}
