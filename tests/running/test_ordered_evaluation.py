"""Records of partitions give the same answers however they are interleaved, cut into steps, or interrupted."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

import headwater as hw
from headwater.execution.answers import Answer
from headwater.running.evaluation import BatchOutcome
from headwater.running.ordered_evaluation import OrderedEvaluation, StreamPartitions, add_outcomes
from headwater.running.program_description import ProgramDescription
from headwater.sources.feed import Chunk
from headwater.spark.realtime.shard_snapshots import WINDOWS, ShardSnapshots, remove_leftovers
from headwater.spark.realtime.shard_worker import DeadLetterFolder, ShardState
from headwater.terms.model import Element, Literal, NamedNode, Triple

S = "http://ex/s"
QUERY = """PREFIX : <http://ex/>
REGISTER QUERY all AS
SELECT ?sensor (COUNT(?value) AS ?n) (GROUP_CONCAT(?value) AS ?values)
FROM STREAM <http://ex/s> [RANGE 10s STEP 2s] WHERE { ?sensor :value ?value } GROUP BY ?sensor"""
SECOND = 1_000_000


def description(delay: int = 0) -> ProgramDescription:
    engine = hw.Engine(in_process=True, delay=delay)
    engine.stream(S, hw.memory([]))
    engine.register(QUERY)
    return engine._description()


def records(count: int = 60) -> list[list[Element]]:
    """Two partitions; the times of both are the same, and some elements are late in their partition."""
    made: list[list[Element]] = [[], []]
    for place in range(count):
        for partition in (0, 1):
            time = (place - (7 if place % 10 == 9 else 0)) * SECOND // 2
            sensor = NamedNode(f"http://ex/{'ab'[place % 2]}")
            value = Literal(f"{partition}.{place}")
            triple = Triple(sensor, NamedNode("http://ex/value"), value)
            made[partition].append(Element(time, (triple,), None, (partition, place)))
    return made


def shuffled(seed: int) -> list[Element]:
    rest, choose = [list(one) for one in records()], random.Random(seed)
    found: list[Element] = []
    while any(rest):
        place = choose.choice([number for number, one in enumerate(rest) if one])
        found.append(rest[place].pop(0))
    return found


def steps(elements: list[Element], seed: int) -> Iterator[list[Chunk]]:
    choose = random.Random(seed)
    while elements:
        size = choose.randint(1, 9)
        some, elements = elements[:size], elements[size:]
        yield [
            Chunk(S, partition, f"topic[{partition}]", tuple(one for one in some if one.position[0] == partition))
            for partition in (0, 1)
        ]


STREAMS = StreamPartitions({S: [0, 1]})


def content(answers: list[Answer]) -> list[tuple[int, object]]:
    return [(one.time, one.rows) for one in answers]


def run(seed: int, delay: int = 0) -> tuple[list[Answer], BatchOutcome]:
    evaluation, total, answers = OrderedEvaluation(description(delay), STREAMS), BatchOutcome(), []
    for chunks in steps(shuffled(seed), seed):
        outcome = evaluation.step(chunks)
        answers += list(outcome.answers)
        total = add_outcomes(total, outcome)
    return answers, total


@pytest.mark.parametrize("delay", [0, 2 * SECOND])
def test_the_order_of_reading_changes_nothing(delay: int) -> None:
    expected, counts = run(0, delay)
    assert len(expected) > 10
    assert counts.elements == 120
    # Five of sixty in each partition are 3.5 s behind.
    assert sorted(one.position for one in counts.dead_letters if one.kind == "late") == [
        (partition, place) for partition in (0, 1) for place in (9, 19, 29, 39, 49, 59)
    ]
    for seed in range(1, 8):
        answers, other = run(seed, delay)
        assert content(answers) == content(expected)
        assert other.measure.elements == counts.measure.elements


def test_it_goes_on_from_snapshots_that_write_what_changed(tmp_path: Path) -> None:
    expected, _ = run(3)
    shard, answers, sizes = description(), [], []
    evaluation, snapshots = OrderedEvaluation(shard, STREAMS), ShardSnapshots(tmp_path)
    for batch, chunks in enumerate(steps(shuffled(3), 3)):
        outcome = evaluation.step(chunks)
        answers += list(outcome.answers)
        state, changes = evaluation.evaluation.changes()
        snapshots.note(changes)
        for stream, held in evaluation.held_changes().items():
            snapshots.note(held, stream)
        sizes.append(snapshots.write("run", batch, [state, evaluation.orders_to_plain(), BatchOutcome().to_plain()]))
        # A process of another run leaves files that nobody reads.
        (tmp_path / f"other-{batch:08d}.state").write_bytes(b"unfinished")
        evaluation, snapshots = OrderedEvaluation(shard, STREAMS), ShardSnapshots(tmp_path)
        assert remove_leftovers(tmp_path, "run", batch) == 1
        (state, orders, _), logs = snapshots.read("run", batch)
        evaluation.evaluation.resume(state, logs.pop(WINDOWS, []))
        evaluation.restore_orders(orders, logs)
    assert content(answers) == content(expected)
    names = sorted(path.name for path in tmp_path.iterdir())
    # The windows span ten seconds: the logs of older batches are gone, and all states but two.
    assert len([name for name in names if name.endswith(".state")]) == 2
    assert len(names) < len(sizes)


def test_a_snapshot_of_large_windows_writes_what_came(tmp_path: Path) -> None:
    def some(first: int, count: int) -> list[Chunk]:
        made = []
        for place in range(first, first + count):
            triple = Triple(NamedNode(f"http://ex/s{place}"), NamedNode("http://ex/value"), Literal(str(place)))
            made.append(Element(place * 100, (triple,), None, (place % 2, place)))
        return [Chunk(S, 0, "topic", tuple(made))]

    # The ten seconds of the windows hold all; of the second run's delay, all wait for their place.
    for delay in (0, 100 * SECOND):
        state = ShardState(description(delay), STREAMS, tmp_path / str(delay), 0)
        sizes, first = [], 0
        for batch, count in enumerate((20_000, 200, 200, 1)):
            state.begin()
            state.take(state.evaluation.step(some(first, count)))
            first += count
            state.finish("run", batch, DeadLetterFolder(None, ""))
            files = (tmp_path / str(delay) / "shard-0").glob(f"run-{batch:08d}.*")
            sizes.append(sum(path.stat().st_size for path in files))
        assert sizes[0] > 40 * sizes[1] > 40 * sizes[3], sizes
        assert sizes[2] < 1.2 * sizes[1], sizes
        restored = ShardState(description(delay), STREAMS, tmp_path / str(delay), 0)
        restored.restore("run", 3)
        states = [one.evaluation.evaluation.changes()[0] for one in (state, restored)]
        assert states[0] == states[1]
        assert restored.evaluation.held == state.evaluation.held > 0


def test_a_missing_snapshot_is_said(tmp_path: Path) -> None:
    with pytest.raises(hw.CheckpointError, match=r"has no .*run-00000004\.state"):
        ShardSnapshots(tmp_path).read("run", 4)


def test_a_damaged_snapshot_is_said(tmp_path: Path) -> None:
    ShardSnapshots(tmp_path).write("run", 1, [b"state", {}, None])
    path = tmp_path / "run-00000001.state"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(hw.CheckpointError, match="is damaged"):
        ShardSnapshots(tmp_path).read("run", 1)
