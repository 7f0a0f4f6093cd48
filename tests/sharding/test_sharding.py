"""Queries in shards: the same answers as in one piece, and a reason where that cannot be."""

from __future__ import annotations

import pytest

from headwater.algebra.partitioning import OneShard
from headwater.sharding.shard_plan import ShardPlan, find_shard_keys
from headwater.sharding.shard_planning import describe_sharding, plan_shards
from headwater.sources.chunk_columns import with_columns
from headwater.sources.feed import Chunk
from tests.sharding.shards import EX, WINDOWS, A, cut, elements, registered, sharded_answers, whole_answers

KEYED = {
    "star": f"SELECT ?v ?s {WINDOWS} WHERE {{ WINDOW :w {{ ?o :value ?v ; :by ?s }} }}",
    "streams": f"SELECT ?o ?v ?x {WINDOWS} WHERE {{ WINDOW :w {{ ?o :value ?v }} WINDOW :v {{ ?x :about ?o }} }}",
    "group": f"SELECT ?o (AVG(?v) AS ?m) {WINDOWS} WHERE {{ WINDOW :w {{ ?o :value ?v }} }} GROUP BY ?o",
    "distinct": f"SELECT DISTINCT ?o ?v {WINDOWS} WHERE {{ WINDOW :w {{ ?o :value ?v ; :by ?s }} }}",
    "optional": f"SELECT ?o ?v ?s {WINDOWS} WHERE {{ WINDOW :w {{ ?o :value ?v OPTIONAL {{ ?o :by ?s }} }} }}",
    "minus": f"SELECT ?o ?v {WINDOWS} WHERE {{ WINDOW :w {{ ?o :value ?v MINUS {{ ?o :by :s1 }} }} }}",
    "exists": f"SELECT ?o ?v {WINDOWS} WHERE {{ WINDOW :w {{ ?o :value ?v FILTER NOT EXISTS {{ ?o :by :s1 }} }} }}",
    "union": f"SELECT ?o ?v {WINDOWS} WHERE {{ WINDOW :w {{ {{ ?o :value ?v }} UNION {{ ?o :by ?v }} }} }}",
    "static": f"SELECT ?o ?r {WINDOWS} WHERE {{ WINDOW :w {{ ?o :value ?v ; :by ?s }} GRAPH :rooms {{ ?s :in ?r }} }}",
    "construct": f"CONSTRUCT {{ ?s :has ?v }} {WINDOWS} WHERE {{ WINDOW :w {{ ?o :value ?v ; :by ?s }} }}",
    "ask": f"ASK {WINDOWS} WHERE {{ WINDOW :w {{ ?o :value 3 ; :by :s2 }} }}",
    "changes": f"REGISTER ISTREAM q AS SELECT ?o ?v {WINDOWS} WHERE {{ WINDOW :w {{ ?o :value ?v }} }}",
    "distinct without its key": f"SELECT DISTINCT ?v {WINDOWS} WHERE {{ WINDOW :w {{ ?o :value ?v ; :by ?s }} }}",
    "ordered": f"SELECT ?o ?v {WINDOWS} WHERE {{ WINDOW :w {{ ?o :value ?v }} }} ORDER BY DESC(?v) ?o",
    "first rows": f"SELECT ?o ?v {WINDOWS} WHERE {{ WINDOW :w {{ ?o :value ?v }} }} ORDER BY ?v LIMIT 2",
    "some rows": f"SELECT ?s ?v {WINDOWS} WHERE {{ WINDOW :w {{ ?o :value ?v ; :by ?s }} }} OFFSET 2 LIMIT 3",
    "all but the first": f"""SELECT ?s {WINDOWS} WHERE {{ WINDOW :w {{ ?o :value ?v ; :by ?s }} }}
        ORDER BY ?s ?v OFFSET 1""",
    "by what is not shown": f"""SELECT ?s {WINDOWS} WHERE {{ WINDOW :w {{ ?o :value ?v ; :by ?s }} }}
        ORDER BY (-?v) LIMIT 3""",
    "the first different ones": f"""SELECT DISTINCT ?v ?s {WINDOWS} WHERE {{ WINDOW :w {{ ?o :value ?v ; :by ?s }} }}
        ORDER BY DESC(?v + 1) STR(?s) LIMIT 3 OFFSET 1""",
    "different by what is not shown": f"""SELECT DISTINCT ?s {WINDOWS} WHERE {{ WINDOW :w {{ ?o :value ?v ; :by ?s }} }}
        ORDER BY ?v LIMIT 2""",
    "reduced": f"SELECT REDUCED ?s {WINDOWS} WHERE {{ WINDOW :w {{ ?o :value ?v ; :by ?s }} }}",
    "triples of first rows": f"""CONSTRUCT {{ ?s :has ?v }} {WINDOWS}
        WHERE {{ WINDOW :w {{ ?o :value ?v ; :by ?s }} }} ORDER BY DESC(?v) LIMIT 2""",
    "an ordered group": f"""SELECT ?o (COUNT(*) AS ?n) {WINDOWS} WHERE {{ WINDOW :w {{ ?o :value ?v }} }}
        GROUP BY ?o ORDER BY DESC(?n) LIMIT 2""",
    "graphs": f"""SELECT ?g ?o ?v ?s {WINDOWS}
        WHERE {{ WINDOW :w {{ GRAPH ?g {{ ?o :value ?v OPTIONAL {{ ?o :by ?s }} }} }} }}""",
    "a graph": f"SELECT ?o ?v ?s {WINDOWS} WHERE {{ WINDOW :w {{ GRAPH :n1 {{ ?o :value ?v }} ?o :by ?s }} }}",
    "groups by graph": f"""SELECT ?g (SUM(?v) AS ?n) {WINDOWS}
        WHERE {{ WINDOW :w {{ GRAPH ?g {{ ?o :value ?v }} }} }} GROUP BY ?g""",
    # With :o3 in the patterns there would be no key; without the branch that gives nothing there is one.
    "a fixed key": f"SELECT ?o ?v {WINDOWS} WHERE {{ WINDOW :w {{ ?o :value ?v ; :by ?s }} FILTER(?o = :o3) }}",
    "an empty branch": f"""SELECT ?v {WINDOWS} WHERE {{ WINDOW :w {{
        {{ ?o :value ?v }} UNION {{ ?x :value ?v FILTER(1 = 2) }} }} }}""",
}
WHOLE = {
    "another key": (
        f"SELECT ?s (COUNT(DISTINCT ?v) AS ?n) {WINDOWS} WHERE {{ WINDOW :w {{ ?o :value ?v ; :by ?s }} }} GROUP BY ?s",
        "groups are not made by ?o, and COUNT(DISTINCT …) must see equal values of all parts together",
    ),
    "groups that look around": (
        f"""SELECT ?o ?k (COUNT(*) AS ?n) {WINDOWS} WHERE {{ WINDOW :w {{ ?o :value ?v ; :by ?s }} }}
        GROUP BY ?o (EXISTS {{ WINDOW :w {{ ?y :by ?s }} }} AS ?k)""",
        "the groups depend on EXISTS",
    ),
    "names of graphs": (
        f"SELECT ?g ?v {WINDOWS} WHERE {{ WINDOW :w {{ ?o :value ?v GRAPH ?g {{}} }} }}",
        "GRAPH in a window would be repeated in every shard",
    ),
    "times of graphs": (
        f"""SELECT ?o ?t {WINDOWS} WHERE {{ WINDOW :w {{ ?o :value ?v .
        ?o <http://www.w3.org/ns/prov#generatedAtTime> ?t }} }}""",
        "the times of graphs would be repeated in every shard",
    ),
    "no common variable": (
        f"SELECT ?v ?x {WINDOWS} WHERE {{ WINDOW :w {{ ?o :value ?v . ?s :by ?x }} }}",
        "not every triple pattern",
    ),
    "changes of first rows": (
        f"REGISTER ISTREAM q AS SELECT ?o ?v {WINDOWS} WHERE {{ WINDOW :w {{ ?o :value ?v }} }} ORDER BY ?v LIMIT 2",
        "needs all solutions in one place",
    ),
    "changes of what is distinct without its key": (
        f"REGISTER ISTREAM q AS SELECT DISTINCT ?v {WINDOWS} WHERE {{ WINDOW :w {{ ?o :value ?v ; :by ?s }} }}",
        "does not leave",
    ),
    "first rows of a sub-query": (
        f"SELECT ?o ?v {WINDOWS} WHERE {{ WINDOW :w {{ {{ SELECT ?o ?v WHERE {{ ?o :value ?v }} LIMIT 2 }} }} }}",
        "needs all solutions in one place",
    ),
    "an order by more than the row": (
        f"""SELECT ?o ?v {WINDOWS} WHERE {{ WINDOW :w {{ ?o :value ?v }} }}
        ORDER BY EXISTS {{ WINDOW :w {{ ?o :by :s1 }} }}""",
        "more than its row",
    ),
    "changes without their key": (
        f"REGISTER ISTREAM q AS SELECT ?v {WINDOWS} WHERE {{ WINDOW :w {{ ?o :value ?v ; :by ?s }} }}",
        "is not in the answer",
    ),
    "any predicate": (f"SELECT ?o {WINDOWS} WHERE {{ WINDOW :w {{ ?o ?p ?v }} }}", "a predicate is a variable"),
    "two places": (f"SELECT ?o {WINDOWS} WHERE {{ WINDOW :w {{ ?o :by ?v . ?x :by ?o }} }}", "two places"),
    "a path": (f"SELECT ?o {WINDOWS} WHERE {{ WINDOW :w {{ ?o :by+ ?v . ?o :value ?x }} }}", "property path"),
    "counting": (
        f"SELECT ?o FROM NAMED WINDOW <{EX}w> ON <{A}> [TRIPLES 3] WHERE {{ WINDOW :w {{ ?o :by ?v }} }}",
        "counts",
    ),
}


@pytest.mark.parametrize("name", KEYED)
@pytest.mark.parametrize("shards", [2, 5])
def test_shards_answer_as_one(name: str, shards: int) -> None:
    query = registered(KEYED[name])
    found = plan_shards([query], tuple(range(shards)), has_static_default=False)
    assert isinstance(found, ShardPlan), found
    rows = 0
    for seed, pieces in ((1, 1), (2, 3), (3, 8)):
        streams = elements(seed)
        expected = whole_answers(query, streams, 200_000)
        assert sharded_answers(query, found, cut(streams, pieces), 200_000) == expected
        rows += sum(len(answer.rows) + len(answer.triples) + bool(answer.boolean) for answer in expected)
    assert rows > 3


@pytest.mark.parametrize("name", WHOLE)
def test_what_cannot_be_cut_says_why(name: str) -> None:
    text, reason = WHOLE[name]
    found = plan_shards([registered(text)], (0, 1), has_static_default=False)
    assert isinstance(found, OneShard)
    assert reason in found.reason


def test_the_cut_is_said_in_words() -> None:
    text = (
        "SELECT {0} FROM NAMED WINDOW <w> ON <s> [RANGE PT1S STEP PT1S] WHERE {{ WINDOW <w> {{ ?o <urn:p> ?v }} }} {1}"
    )
    assert describe_sharding(registered(text.format("*", ""))) == "any number, by ?o (subject of its triples)"
    ordered = "any number, by ?o (subject of its triples); ORDER BY, DISTINCT and LIMIT after the merge"
    assert describe_sharding(registered(text.format("*", "ORDER BY ?v"))) == ordered
    counted = "any number, by ?o (subject of its triples); their groups are put together"
    assert describe_sharding(registered(text.format("(COUNT(*) AS ?n)", ""))) == counted
    joined = describe_sharding(registered(text.format("(GROUP_CONCAT(?v) AS ?n)", "")))
    assert joined == "one, because groups are not made by ?o, and GROUP_CONCAT depends on the order of all its values"


def test_triples_of_one_key_stay_together_and_the_shards_share_the_work() -> None:
    query = registered(KEYED["star"])
    found = plan_shards([query], (0, 1), has_static_default=False)
    assert isinstance(found, ShardPlan)
    chunk = with_columns(Chunk(A, elements=tuple(elements(4)[A])))
    parts = dict(found.split(chunk))
    subjects = [set(part.elements.triples[:, 0].tolist()) for part in parts.values()]  # type: ignore[union-attr]
    assert subjects[0] and subjects[1] and not subjects[0] & subjects[1]
    assert all(len(part.elements) == len(chunk.elements) for part in parts.values())


def test_queries_that_want_different_keys_stay_together() -> None:
    first = registered(f"SELECT ?o {WINDOWS} WHERE {{ WINDOW :w {{ ?o :by :s1 }} }}")
    second = registered(f"SELECT ?s {WINDOWS} WHERE {{ WINDOW :w {{ :o1 :by ?s }} }}")
    found = plan_shards([first, second], (0, 1), has_static_default=False)
    assert isinstance(found, OneShard)
    assert "different keys" in found.reason


@pytest.mark.parametrize("shards", [1, 2, 3, 7])
def test_keys_are_all_different(shards: int) -> None:
    assert len(set(find_shard_keys(shards))) == shards


@pytest.mark.parametrize("where", ["?o :in ?room", "GRAPH :a { ?o :in ?room }"])
def test_static_data_of_from_is_in_every_shard(where: str) -> None:
    """Each shard would answer the static rows, whatever is in the default graph of the loaded data."""
    text = f"SELECT ?o ?room FROM :rooms FROM STREAM :a [RANGE 4s STEP 2s] WHERE {{ {where} }}"
    found = plan_shards([registered(text)], (0, 1), has_static_default=False)
    assert isinstance(found, OneShard) and "merged with static data" in found.reason
    without = registered(text.replace("FROM :rooms ", ""))
    assert isinstance(plan_shards([without], (0, 1), has_static_default=False), ShardPlan)
