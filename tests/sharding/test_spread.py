"""A key with half of the stream: its triples are spread over the shards, and the answers are those of the reference."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import headwater as hw
from headwater.algebra.partitioning import OneShard
from headwater.reference.reference_evaluator import ReferenceEvaluator
from headwater.running.checkpoints import CheckpointError
from headwater.sharding.shard_plan import ShardPlan
from headwater.sharding.shard_planning import plan_shards
from headwater.sources.chunk_columns import with_columns
from headwater.terms.ids.term_ids import encode
from headwater.terms.model import Element, Literal, NamedNode, Triple
from tests.sharding.shards import EX, WINDOWS, A, B, cut, registered, sharded_answers, whole_answers
from tests.sharding.test_partial_groups import POOLS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DELAY = 200_000
LARGE = NamedNode(EX + "o0")
ONE = f"{WINDOWS} WHERE {{ WINDOW :w {{ ?o :value ?v }} }}"
ROOMS = f"{WINDOWS} WHERE {{ WINDOW :w {{ ?o :value ?v }} GRAPH :rooms {{ ?s :in ?r }} FILTER(STR(?o) != STR(?s)) }}"
EITHER = f"{WINDOWS} WHERE {{ {{ WINDOW :w {{ ?o :value ?v }} }} UNION {{ WINDOW :v {{ ?o :about ?v }} }} }}"
QUERIES = {
    "all aggregates": f"""SELECT ?o (COUNT(*) AS ?n) (SUM(?v) AS ?t) (AVG(?v) AS ?a) (MIN(?v) AS ?l) (MAX(?v) AS ?g)
        {ONE} GROUP BY ?o""",
    "one group": f"SELECT (COUNT(*) AS ?n) (AVG(?v) AS ?a) {ONE}",
    "having": f"SELECT ?o (AVG(?v) * 2 AS ?a) {ONE} GROUP BY ?o HAVING (COUNT(*) > 2)",
    "by the object": f"SELECT ?v (COUNT(?o) AS ?n) (SAMPLE(?o) AS ?s) {ONE} GROUP BY ?v",
    "ordered": f"SELECT ?o (AVG(?v) AS ?a) {ONE} GROUP BY ?o ORDER BY DESC(?a) ?o LIMIT 2",
    "with linked data": f"SELECT ?r (SUM(?v) AS ?t) (COUNT(*) AS ?n) {ROOMS} GROUP BY ?r",
    "of two streams": f"SELECT ?o (COUNT(?v) AS ?n) {EITHER} GROUP BY ?o",
    "rows": f"SELECT ?o ?v {ONE}",
    "different rows": f"SELECT DISTINCT ?v {ONE}",
    "triples": f"CONSTRUCT {{ ?o :seen ?v }} {ONE}",
    "a verdict": f"ASK {WINDOWS} WHERE {{ WINDOW :w {{ ?o :value 3 }} }}",
}
KEYED = {
    "a star": f"SELECT ?o (COUNT(*) AS ?n) {WINDOWS} WHERE {{ WINDOW :w {{ ?o :value ?v ; :by ?s }} }} GROUP BY ?o",
    "optional triples": f"""SELECT ?o (COUNT(?s) AS ?n) {WINDOWS}
        WHERE {{ WINDOW :w {{ ?o :value ?v OPTIONAL {{ ?o :by ?s }} }} }} GROUP BY ?o""",
    "what must not be there": f"""SELECT ?o (COUNT(*) AS ?n) {WINDOWS}
        WHERE {{ WINDOW :w {{ ?o :value ?v FILTER NOT EXISTS {{ ?o :by ?s }} }} }} GROUP BY ?o""",
    "different values": f"SELECT ?o (COUNT(DISTINCT ?v) AS ?n) {ONE} GROUP BY ?o",
    "changes": f"REGISTER DSTREAM q AS SELECT ?o (COUNT(*) AS ?n) {ONE} GROUP BY ?o",
}


def skewed(seed: int, pool: list[Literal | NamedNode]) -> dict[str, list[Element]]:
    """Half of the readings are of one subject; equal readings come more than once within a window."""
    chance = random.Random(seed)

    def observed(number: int, stream_place: int) -> Element:
        subject = LARGE if chance.random() < 0.5 else NamedNode(f"{EX}o{chance.randrange(1, 9)}")
        predicate = NamedNode(EX + ("value", "about")[stream_place])
        triples = (Triple(subject, predicate, chance.choice(pool)), Triple(subject, predicate, chance.choice(pool)))
        return Element(number * 200_000 - chance.randrange(2) * 100_000, triples, position=(0, number))

    return {A: [observed(n, 0) for n in range(50)], B: [observed(n, 1) for n in range(50)]}


@pytest.mark.parametrize("name", QUERIES)
def test_spread_triples_give_the_answers_of_the_reference(name: str) -> None:
    query = registered(QUERIES[name])
    first = list(QUERIES).index(name)
    for number in (first, first + 1, len(POOLS) - 1):
        streams = skewed(number, list(POOLS.values())[number % len(POOLS)])
        expected = whole_answers(query, streams, DELAY, ReferenceEvaluator)
        assert any(not answer.is_empty for answer in expected)
        for shards, large in ((2, ()), (5, (encode(LARGE),)), (3, (encode(LARGE), encode(NamedNode(EX + "o1"))))):
            keys = tuple(range(shards))
            found = plan_shards([query], keys, has_static_default=False, spreads=True, large=large)
            assert isinstance(found, ShardPlan) and found.spreads
            assert sharded_answers(query, found, cut(streams, 1 + shards // 2), DELAY) == expected


@pytest.mark.parametrize("name", KEYED)
def test_what_cannot_be_spread_is_divided_by_its_key(name: str) -> None:
    found = plan_shards([registered(KEYED[name])], (0, 1, 2), has_static_default=False, spreads=True)
    assert isinstance(found, OneShard) or not found.spreads
    assert isinstance(found, OneShard) is isinstance(
        plan_shards([registered(KEYED[name])], (0, 1, 2), has_static_default=False), OneShard
    )


def test_shards_have_equally_much() -> None:
    pool: list[Literal | NamedNode] = [Literal(str(number)) for number in range(10_000)]
    query = registered(QUERIES["all aggregates"])
    elements = [Element(n, (Triple(LARGE if n % 2 else NamedNode(f"{EX}o{n}"), NamedNode(EX + "value"), one),))
                for n, one in enumerate(pool)]  # fmt: skip
    (chunk,) = cut({A: elements}, 1)[0]
    largest: dict[str, float] = {}
    for name, spreads, large in (("key", False, ()), ("all", True, ()), ("large", True, (encode(LARGE),))):
        plan = plan_shards([query], (0, 1, 2, 3), has_static_default=False, spreads=spreads, large=large)
        assert isinstance(plan, ShardPlan)
        sizes = Counter({key: len(part.elements.triples) for key, part in plan.split(with_columns(chunk))})  # type: ignore[union-attr]
        assert sizes.total() == len(pool)
        largest[name] = max(sizes.values()) / len(pool)
    assert largest["key"] > 0.6 and largest["all"] < 0.27 and largest["large"] < 0.27


def test_a_run_on_spark_spreads_what_it_is_told_to(spark: SparkSession, tmp_path: Path) -> None:
    lines = [f'{n * 100}\t<{EX}o{n if n % 2 else 0}> <{EX}value> "{n % 7}"^^<{EX}t> .\n' for n in range(400)]
    (tmp_path / "in.tnq").write_text("".join(lines))
    text = f"""PREFIX : <{EX}> REGISTER QUERY counts AS SELECT ?o (COUNT(?v) AS ?n) (MIN(?v) AS ?l)
    FROM STREAM <{A}> [RANGE 20s STEP 5s] WHERE {{ ?o :value ?v }} GROUP BY ?o"""

    def run(engine: hw.Engine) -> tuple[list[hw.Answer], float]:
        engine.stream(A, hw.files(tmp_path / "in.tnq"))
        engine.register(text)
        answers: list[hw.Answer] = []
        return answers, engine.run(on_answer=answers.append).largest_shard

    expected, _ = run(hw.Engine(in_process=True))
    found, share = run(hw.Engine(spark, shards=2, spread=[LARGE.value], checkpoint=tmp_path / "state"))
    assert found == expected and share < 0.72
    # The state stays cut as it is, whatever a later run asks for.
    assert run(hw.Engine(spark, checkpoint=tmp_path / "state"))[0] == []
    for other in (True, ["http://ex/another"]):
        with pytest.raises(CheckpointError, match="another setting of spread"):
            run(hw.Engine(spark, spread=other, checkpoint=tmp_path / "state"))
    with pytest.raises(CheckpointError):
        run(hw.Engine(spark, shards=3, spread=True, checkpoint=tmp_path / "state"))
