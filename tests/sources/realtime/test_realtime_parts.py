"""The parts of real-time mode that need neither Spark nor a broker: checks, the plan of a checkpoint, merging."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import headwater as hw
from headwater.engine.lifecycle import Takers
from headwater.execution.answers import Answer
from headwater.running.checkpoints import claim_checkpoint
from headwater.running.evaluation import BatchOutcome
from headwater.running.ordered_evaluation import OrderedEvaluation, StreamPartitions
from headwater.running.program_description import ProgramDescription
from headwater.running.workload import Workload
from headwater.sharding.shard_plan import ShardPlan, find_shard_keys
from headwater.sharding.shard_planning import plan_shards
from headwater.sources.feed import Chunk
from headwater.spark.realtime.answer_rows import PartMerger, PartRows, RecordRows
from headwater.spark.realtime.checkpoint_plan import SPARK_LOGS, CheckpointPlan
from headwater.spark.realtime.mode_checks import reason_against_queries, reason_against_workload
from headwater.spark.realtime.shard_worker import RunNames
from headwater.terms.model import Element, Literal, NamedNode, Triple

S = "http://ex/s"
TOTALS = """PREFIX : <http://ex/>
REGISTER QUERY totals AS SELECT ?sensor (COUNT(?value) AS ?n) FROM STREAM <http://ex/s> [RANGE 4s STEP 1s]
WHERE { ?sensor :value ?value } GROUP BY ?sensor ORDER BY DESC(?n) ?sensor LIMIT 3"""
REMOTE = """PREFIX : <http://ex/>
REGISTER QUERY remote AS SELECT ?x FROM STREAM <http://ex/s> [RANGE 4s STEP 1s]
WHERE { ?x :value ?value SERVICE <http://127.0.0.1:9/sparql> { ?x :is ?y } }"""
SECOND = 1_000_000
STREAMS = StreamPartitions({S: [0, 1]})


def description(*queries: str) -> ProgramDescription:
    engine = hw.Engine(in_process=True)
    engine.stream(S, hw.memory([]))
    for query in queries:
        engine.register(query)
    return engine._description()


def workload(source: Any, *queries: str, **settings: Any) -> Workload:
    made = replace(description(*queries), **settings)
    return Workload(made, made.outline(), {S: source})


KAFKA = hw.kafka("localhost:9092", "in", format="ntriples")
OUT = hw.KafkaSink("localhost:9092", "out")


@pytest.mark.parametrize(
    ("source", "sinks", "query", "settings", "reason"),
    [
        (hw.memory([]), [OUT], TOTALS, {}, "http://ex/s is no topic of Kafka"),
        (KAFKA, [], TOTALS, {}, "answers need a topic of Kafka"),
        (KAFKA, [OUT, hw.FileSink("somewhere")], TOTALS, {}, "something else than a topic"),
        (KAFKA, [OUT, hw.KafkaSink("localhost:9093", "out")], TOTALS, {}, "several Kafka clusters"),
        (KAFKA, [hw.KafkaSink("localhost:9092", "out", format="csv")], TOTALS, {}, "as JSON"),
        (KAFKA, [hw.KafkaSink("localhost:9092", "out", per="row")], TOTALS, {}, "whole and as JSON"),
        (KAFKA, [OUT], REMOTE, {}, "remote asks other endpoints"),
        (KAFKA, [OUT], TOTALS, {"idle": ((S, 3),)}, "a time of silence is set"),
        (KAFKA, [OUT], TOTALS, {}, None),
    ],
)
def test_a_run_that_cannot_be_in_the_mode_is_told_why(
    source: Any, sinks: list[hw.KafkaSink], query: str, settings: dict[str, Any], reason: str | None
) -> None:
    found = reason_against_workload(workload(source, query, **settings), sinks, are_answers_taken=True)
    assert found is None if reason is None else found is not None and reason in found


def test_queries_that_join_are_checked() -> None:
    assert reason_against_queries(description(TOTALS).queries) is None
    assert "SERVICE" in (reason_against_queries(description(REMOTE).queries) or "")


def test_in_process_there_is_no_such_mode() -> None:
    engine = hw.Engine(in_process=True)
    engine.stream(S, hw.memory([]))
    engine.register(TOTALS)
    with pytest.raises(hw.SettingError, match="leave out in_process"):
        engine.run(realtime=True)


def test_the_switch_is_a_flag() -> None:
    with pytest.raises(hw.SettingError, match="realtime"):
        Takers.check(None, None, None, (), realtime="yes")  # type: ignore[arg-type]


def commit(folder: Path, batch: int) -> None:
    path = folder / SPARK_LOGS / "commits" / str(batch)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("v1")


def test_the_plan_says_who_logged_a_batch(tmp_path: Path) -> None:
    plan = CheckpointPlan({S: {"in": 2}}, (3,), 0, None, 1)
    first = plan.begin_run(tmp_path)
    assert [batch for _, batch in first.runs] == [0]
    # It was killed before it had committed anything; then one commits two batches, and one commits none.
    second = plan.begin_run(tmp_path)
    commit(tmp_path, 0)
    commit(tmp_path, 1)
    third = plan.begin_run(tmp_path)
    fourth = replace(plan, version=(4,)).begin_run(tmp_path)
    assert [batch for _, batch in fourth.runs] == [0, 2]
    assert fourth.names.of(1) == second.names.current
    assert fourth.names.of(2) == fourth.names.current
    assert third.names.current not in dict(fourth.runs)
    # The data stay at the version with which the checkpoint was begun.
    assert fourth.version == (3,)


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"topics": {S: {"in": 3}}}, "the partitions of the topics"),
        ({"delay": 1}, "the delay"),
        ({"max_ahead": 5}, "max_ahead"),
        ({"shards": 2}, "the number of shards"),
    ],
)
def test_what_determines_answers_stays(tmp_path: Path, changed: dict[str, Any], reason: str) -> None:
    plan = CheckpointPlan({S: {"in": 2}}, (), 0, None, 1)
    plan.begin_run(tmp_path)
    commit(tmp_path, 0)
    with pytest.raises(hw.CheckpointError, match=f"{reason} cannot change"):
        replace(plan, **changed).begin_run(tmp_path)


@pytest.mark.parametrize("before", ["on Spark", "in process", "in real-time mode"])
@pytest.mark.parametrize("now", ["on Spark", "in real-time mode"])
def test_a_checkpoint_of_another_runner_is_refused_where_nothing_converts_it(
    tmp_path: Path, before: str, now: str
) -> None:
    first = claim_checkpoint(tmp_path, description(TOTALS), before)
    if before == now:
        assert claim_checkpoint(tmp_path, description(TOTALS), now).run == first.run
        return
    with pytest.raises(hw.CheckpointError, match=f"was made {before}, and this run is {now}: use another folder"):
        claim_checkpoint(tmp_path, description(TOTALS), now)


def test_the_last_run_that_began_before_logged_a_batch() -> None:
    names = RunNames((("a", 0), ("b", 4), ("c", 4), ("d", 9)))
    assert [names.of(batch) for batch in (0, 3, 4, 8, 9)] == ["a", "a", "c", "c", "d"]


def records(count: int) -> list[Element]:
    """The records of two partitions, interleaved somehow; the order of each partition is kept."""
    made = [
        Element(
            place * SECOND // 3,
            (Triple(NamedNode(f"http://ex/s{place * 7 % 11}"), NamedNode("http://ex/value"), Literal(str(place))),),
            None,
            (place % 2, place),
        )
        for place in range(count)
    ]
    return made


def chunks(some: list[Element]) -> list[Chunk]:
    return [Chunk(S, one.position[0], "topic", (one,)) for one in some]


def one_shard(elements: list[Element]) -> list[Answer]:
    evaluation = OrderedEvaluation(description(TOTALS), STREAMS)
    return [answer for one in elements for answer in evaluation.step(chunks([one])).answers]


def test_shards_that_read_in_other_orders_give_one_answer() -> None:
    elements = records(90)
    expected = one_shard(elements)
    assert len(expected) > 20
    whole = description(TOTALS)
    plan = plan_shards(whole.queries, find_shard_keys(2), has_static_default=False)
    assert isinstance(plan, ShardPlan)
    cut = replace(whole, sharding=plan)
    for seed in range(5):
        choose = random.Random(seed)
        shards = [OrderedEvaluation(cut, STREAMS, number) for number in range(2)]
        # Each shard has its own interleaving of the partitions, and its own steps.
        waiting = [[list(elements[0::2]), list(elements[1::2])] for _ in shards]
        merger, found = PartMerger(cut), []
        while any(any(rest) for rest in waiting):
            number = choose.choice([place for place, rest in enumerate(waiting) if any(rest)])
            rest = choose.choice([one for one in waiting[number] if one])
            some = rest[: choose.randint(1, 5)]
            del rest[: len(some)]
            outcome = shards[number].step(chunks(some))
            rows = PartRows().rows(outcome, number, 0)
            if rows is not None:
                found += list(merger.take(rows.to_pylist()))
        assert merger.waiting == 0
        assert [(one.time, one.rows) for one in found] == [(one.time, one.rows) for one in expected]


def test_a_suspended_query_has_a_notice_and_no_parts_of_answers() -> None:
    whole = description(TOTALS)
    plan = plan_shards(whole.queries, find_shard_keys(2), has_static_default=False)
    assert isinstance(plan, ShardPlan)
    cut = replace(whole, sharding=plan)
    merger = PartMerger(cut)
    elements = records(30)
    sound, ill = OrderedEvaluation(cut, STREAMS, 0), OrderedEvaluation(cut, STREAMS, 1)
    outcome = ill.step(chunks(elements))
    (answer, *_) = outcome.answers
    notice = replace(answer, rows=(), source=None, suspended="too much")
    measure = {name: replace(one, suspended="too much") for name, one in outcome.measure.queries.items()}
    broken = BatchOutcome(type(outcome.answers)([[notice]]), measure=replace(outcome.measure, queries=measure))
    found: list[Answer] = []
    for number, one in ((1, broken), (0, sound.step(chunks(elements))), (1, broken)):
        rows = PartRows().rows(one, number, 0)
        assert rows is not None
        found += list(merger.take(rows.to_pylist()))
    assert [one.suspended for one in found] == ["too much"]
    assert merger.waiting == 0


def test_answers_of_a_query_stay_in_one_partition() -> None:
    answers = one_shard(records(60))
    made = RecordRows([(OUT.records, 7), (replace(OUT.records, topic="other"), 1)])
    rows = made.records(answers, 4)
    assert rows is not None
    listed = rows.to_pylist()
    assert len({row["partition"] for row in listed if row["topic"] == "out"}) == 1
    assert {row["partition"] for row in listed if row["topic"] == "other"} == {0}
    keys = [row["key"].decode() for row in listed if row["topic"] == "out"]
    assert keys == [f"totals|{answer.time}|0" for answer in answers]
    assert made.records([], 4) is None
