"""A checkpoint goes from one mode to the other and back, on disk: no broker and no Spark, which are played here."""

from __future__ import annotations

import json
import pickle
from collections.abc import Sequence
from dataclasses import replace
from itertools import cycle
from pathlib import Path
from threading import Event
from typing import Any

import pandas as pd
import pytest
from pyspark.sql.streaming.tws_tester import TwsTester

import headwater as hw
from headwater.engine.checkpoint_claims import ModeSwitch
from headwater.execution.window_log import LogSegment
from headwater.running.checkpoints import (
    IN_PROCESS,
    IN_REAL_TIME,
    ON_SPARK,
    REALTIME_STATE,
    SPARK_STATE,
    CheckpointClaim,
    CheckpointRecord,
    claim_checkpoint,
)
from headwater.running.ordered_evaluation import StreamPartitions
from headwater.running.program_description import ProgramDescription
from headwater.running.shipping import Shipped
from headwater.running.state_handover import to_ordered_state
from headwater.running.workload import Workload
from headwater.sources.chunk_columns import with_columns
from headwater.sources.feed import Chunk
from headwater.sources.offsets import ItemOffset, Offset, StreamOffset
from headwater.spark import stateful_step
from headwater.spark.chunk_bytes import pack_chunk
from headwater.spark.realtime import mode_switch
from headwater.spark.realtime.checkpoint_plan import SPARK_LOGS, CheckpointPlan
from headwater.spark.realtime.shard_snapshots import ShardSnapshots
from headwater.spark.realtime.shard_worker import DeadLetterFolder, ShardState
from headwater.spark.spark_handover import Handover, discard_handover
from headwater.spark.spark_logs import last_commit
from headwater.spark.stateful_step import EvaluationProcessor, rows_to_outcome, segment_from_bytes
from headwater.terms.model import Element, Literal, NamedNode, Triple
from headwater.windows.heartbeat import Heartbeat

S = "http://ex/s"
TOTALS = """PREFIX : <http://ex/>
REGISTER QUERY totals AS SELECT ?sensor (COUNT(?value) AS ?n) FROM STREAM <http://ex/s> [RANGE 20us STEP 4us]
WHERE { ?sensor :value ?value } GROUP BY ?sensor"""
LATER = TOTALS.replace("totals", "later")
FILES = "http://ex/files"
"""A stream of files that real-time mode does not read."""
UNREAD = {FILES: StreamOffset((ItemOffset("a.tnq", 7),)), S: StreamOffset(heartbeat=Heartbeat(1, 2))}
STREAMS = StreamPartitions({S: [0, 1]})
KAFKA = hw.kafka("localhost:9092", "in", format="ntriples")


def describe(*queries: str) -> ProgramDescription:
    engine = hw.Engine(in_process=True)
    engine.stream(S, hw.memory([]))
    for query in queries:
        engine.register(query)
    return replace(engine._description(), skews=((S, 1 << 50),))


def element(number: int) -> Element:
    """One of the elements that come in this order, to both partitions in turn; partition 1 is behind."""
    partition = number % 2
    triple = Triple(NamedNode(f"http://ex/{'abc'[number % 3]}"), NamedNode("http://ex/value"), Literal(str(number)))
    return Element(3 * number - 20 * partition, (triple,), None, (partition, number // 2))


def chunks(numbers: Sequence[int]) -> list[Chunk]:
    return [with_columns(Chunk(S, number % 2, "in", (element(number),))) for number in numbers]


class Checkpoint:
    """A checkpoint, the runs over it, and how far the topic was read by them."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.partitions = 2
        self.version: tuple[int, ...] = ()
        self.queries: tuple[str, ...] = (TOTALS,)
        self.source = KAFKA
        self.answers: dict[tuple[str, int], Any] = {}
        self.names: list[str] = []
        self.modes: list[str] = []
        self._tester: TwsTester | None = None
        monkeypatch.setattr(mode_switch, "plan_checkpoint", lambda spark, workload: self.plan)
        monkeypatch.setattr(mode_switch, "_count_partitions", lambda spark, sources: self.plan.topics)
        monkeypatch.setattr(mode_switch, "read_shard_state", self.read_shard_state)

    @property
    def plan(self) -> CheckpointPlan:
        return CheckpointPlan({S: {"in": self.partitions}}, self.version, 0, None, 1)

    @property
    def description(self) -> ProgramDescription:
        return describe(*self.queries)

    def claim(self, runner: str) -> CheckpointClaim:
        made = self.description
        workload = Workload(made, made.outline(), {S: self.source})
        nothing: Any = None
        switch = ModeSwitch(self.folder, lambda: nothing, workload, lambda run: nothing, Event())
        claim = claim_checkpoint(self.folder, made, runner, [S], switch=switch)
        self.names.append(claim.run)
        return claim

    def run(self, runner: str, first: int, count: int, batches: int = 2) -> None:
        """Run some batches of so many elements, from the one with this number on, in a mode."""
        claim = self.claim(runner)
        run = self._run_micro_batches if runner == ON_SPARK else self._run_in_real_time
        run(first, count, batches)
        self.modes.append(runner)
        claim.write()

    def _run_micro_batches(self, first: int, count: int, batches: int) -> None:
        logs = self.folder / SPARK_STATE
        handover = Handover.read(logs)
        if handover is not None:
            assert handover.starts == {S: {"in": {"0": first // 2, "1": first // 2}}}
            if ON_SPARK in self.modes:
                assert handover.unread == Offset({FILES: UNREAD[FILES]})
        if self._tester is None or handover is not None:
            folder = None if handover is None else handover.folder
            self._tester = TwsTester(EvaluationProcessor(Shipped(pickle.dumps(self.description)), None, folder))
        for _ in range(batches):
            # What a batch goes on with is in the store.
            stateful_step._LIVE_EVALUATIONS.clear()
            frame = pd.DataFrame(
                {"shard": 0, "chunk": [pack_chunk(one) for one in chunks(range(first, first + count))]}
            )
            result: Any = self._tester.testInPandas(0, frame)
            self._take(rows_to_outcome(result.to_dict("records")).answers)
            first += count
            self._commit(logs, first, [json.dumps(Offset(UNREAD, has_begun=True).to_json())])
            discard_handover(logs)

    def read_shard_state(self, spark: object, logs: Path, batch: int, key: int) -> tuple[bytes, list[LogSegment]]:
        assert self._tester is not None
        assert (batch, key) == (last_commit(self.folder / SPARK_STATE), 0)
        summary = self._tester.peekValueState("summary", 0)
        segments = self._tester.peekMapState("segments", 0).values()
        assert summary is not None
        return bytes(summary[0]), [segment_from_bytes(bytes(one[0])) for one in segments]

    def _run_in_real_time(self, first: int, count: int, batches: int) -> None:
        folder = self.folder / REALTIME_STATE
        plan, last = self.plan.begin_run(folder), last_commit(folder / SPARK_LOGS)
        state = ShardState(self.description, STREAMS, folder, 0)
        if plan.has_state(last):
            state.restore(plan.names.of(last), last)
            if last < 0:
                assert plan.starts == {S: {"in": {"0": first // 2, "1": first // 2}}}
        for batch in range(last + 1, last + 1 + batches):
            state.begin()
            for number in range(first, first + count):
                state.evaluation.note_read(S, number % 2, number // 2)
                outcome = state.evaluation.step(chunks([number]))
                self._take(outcome.answers)
                state.take(outcome)
            first += count
            state.finish(plan.names.current, batch, DeadLetterFolder(None, ""))
            self._commit(folder / SPARK_LOGS, first, [])

    def _commit(self, logs: Path, read: int, lines: list[str]) -> None:
        batch = last_commit(logs) + 1
        offsets = json.dumps({"in": {"0": read // 2, "1": read // 2}})
        for name, text in (("offsets", "\n".join(["v1", "{}", *lines, offsets])), ("commits", "v1\n{}")):
            (logs / name).mkdir(parents=True, exist_ok=True)
            (logs / name / str(batch)).write_text(text)

    def _take(self, answers: Any) -> None:
        for one in answers:
            rows = sorted(map(str, one.rows))
            assert self.answers.setdefault((one.query, one.time), rows) == rows


@pytest.fixture
def checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Checkpoint:
    return Checkpoint(tmp_path, monkeypatch)


@pytest.fixture
def expected(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> dict[tuple[str, int], Any]:
    """The answers of a run that stays in micro-batches."""
    with monkeypatch.context() as own:
        whole = Checkpoint(tmp_path_factory.mktemp("whole"), own)
        whole.run(ON_SPARK, 0, 10, 8)
        return whole.answers


@pytest.mark.parametrize("runners", [(ON_SPARK, IN_REAL_TIME), (IN_REAL_TIME, ON_SPARK)])
def test_it_goes_on_in_the_other_mode(
    checkpoint: Checkpoint, expected: dict[tuple[str, int], Any], runners: tuple[str, str]
) -> None:
    assert len(expected) > 40
    for first, runner in zip(range(0, 80, 20), cycle(runners), strict=False):
        checkpoint.run(runner, first, 10)
        assert (checkpoint.folder / REALTIME_STATE).exists() == (runner == IN_REAL_TIME)
        assert (checkpoint.folder / SPARK_STATE).exists() == (runner == ON_SPARK)
        record = CheckpointRecord.read(checkpoint.folder)
        assert record is not None
        assert (record.runner, record.run) == (runner, checkpoint.names[-1])
    assert checkpoint.answers == expected
    # Batches are counted anew in each mode; files have the name of the run besides.
    assert len(set(checkpoint.names)) == 4


def test_a_mode_that_has_committed_nothing_hands_on_what_it_got(
    checkpoint: Checkpoint, expected: dict[tuple[str, int], Any]
) -> None:
    checkpoint.run(ON_SPARK, 0, 10)
    for runner in (IN_REAL_TIME, ON_SPARK, IN_REAL_TIME):
        checkpoint.claim(runner)
    checkpoint.run(ON_SPARK, 20, 10)
    checkpoint.claim(IN_REAL_TIME)
    checkpoint.run(IN_REAL_TIME, 40, 10, 4)
    assert checkpoint.answers == expected


def test_a_checkpoint_without_a_batch_begins_anew_in_the_other_mode(
    checkpoint: Checkpoint, expected: dict[tuple[str, int], Any]
) -> None:
    for runner in (ON_SPARK, IN_REAL_TIME, ON_SPARK):
        checkpoint.claim(runner)
        assert Handover.read(checkpoint.folder / SPARK_STATE) is None
        assert CheckpointPlan.read(checkpoint.folder / REALTIME_STATE) is None
    checkpoint.run(IN_REAL_TIME, 0, 10, 8)
    assert checkpoint.answers == expected


class Killed(BaseException):
    """Stands for the end of the process."""


@pytest.mark.parametrize("runners", [(ON_SPARK, IN_REAL_TIME), (IN_REAL_TIME, ON_SPARK)])
@pytest.mark.parametrize("place", range(8))
def test_a_switch_that_was_killed_is_done_again(
    checkpoint: Checkpoint,
    expected: dict[tuple[str, int], Any],
    monkeypatch: pytest.MonkeyPatch,
    runners: tuple[str, str],
    place: int,
) -> None:
    before, after = runners
    checkpoint.run(before, 0, 10)
    checkpoint.run(after, 20, 10)
    checkpoint.run(before, 40, 10)
    left = [place]

    def strike_before(module: Any, name: str) -> None:
        original = getattr(module, name)

        def struck(*arguments: Any, **named: Any) -> Any:
            left[0] -= 1
            if left[0] < 0:
                raise Killed
            return original(*arguments, **named)

        patched.setattr(module, name, struck)

    with monkeypatch.context() as patched:
        # All that a switch writes, names or removes.
        strike_before(mode_switch, "remove_files")
        strike_before(ShardSnapshots, "_write_file")
        strike_before(CheckpointPlan, "write")
        strike_before(mode_switch, "write_starts")
        strike_before(CheckpointRecord, "write")
        if place < 6:
            with pytest.raises(Killed):
                checkpoint.claim(after)
        else:
            checkpoint.claim(after)
            assert left[0] == place - 6
    checkpoint.run(after, 60, 10)
    assert checkpoint.answers == expected


def test_queries_change_with_the_mode(checkpoint: Checkpoint) -> None:
    checkpoint.run(ON_SPARK, 0, 10)
    checkpoint.queries = (TOTALS, LATER)
    claim = checkpoint.claim(IN_REAL_TIME)
    assert claim.continued is not None
    assert (claim.continued.kept, claim.continued.new) == (("totals",), ("later",))
    checkpoint.run(IN_REAL_TIME, 20, 10)
    checkpoint.queries = (LATER,)
    claim = checkpoint.claim(ON_SPARK)
    assert claim.continued is not None
    assert claim.continued.dropped == ("totals",)
    checkpoint.run(ON_SPARK, 40, 10)
    by_query = {name: {time for query, time in checkpoint.answers if query == name} for name in ("totals", "later")}
    assert max(by_query["totals"]) < max(by_query["later"])
    for time in by_query["totals"] & by_query["later"]:
        assert checkpoint.answers["totals", time] == checkpoint.answers["later", time]
    assert len(by_query["totals"] & by_query["later"]) >= 5


def test_partitions_that_were_added_are_read_from_their_beginning(checkpoint: Checkpoint) -> None:
    checkpoint.run(IN_REAL_TIME, 0, 10)
    checkpoint.partitions = 3
    checkpoint.claim(ON_SPARK)
    handover = Handover.read(checkpoint.folder / SPARK_STATE)
    assert handover is not None
    assert handover.starts == {S: {"in": {"0": 10, "1": 10, "2": -2}}}
    checkpoint.claim(IN_REAL_TIME)
    plan = CheckpointPlan.read(checkpoint.folder / REALTIME_STATE)
    assert plan is not None
    assert plan.starts == handover.starts
    assert plan.topics == {S: {"in": 3}}


def test_the_offsets_of_a_checkpoint_come_before_all_other_starts() -> None:
    source = hw.kafka(
        "localhost:9092",
        "in",
        format="ntriples",
        start="latest",
        options={"StartingTimestamp": "7", "minPartitions": "3"},
    )
    options = source.start_at({"in": {"0": 4, "1": -2}})._options_with_start()
    assert json.loads(options.pop("startingOffsets")) == {"in": {"0": 4, "1": -2}}
    assert options == {"kafka.bootstrap.servers": "localhost:9092", "minPartitions": "3"}
    assert source.start_at(None)._options_with_start() == source._options_with_start()
    assert source._options_with_start()["startingOffsets"] == "latest"


@pytest.mark.parametrize(("found", "wanted"), [((4,), (4,)), (None, (9,)), ((4, 5), (9,))])
def test_the_linked_data_stay_at_the_version_of_the_state(
    checkpoint: Checkpoint, monkeypatch: pytest.MonkeyPatch, found: tuple[int, ...] | None, wanted: tuple[int, ...]
) -> None:
    checkpoint.run(ON_SPARK, 0, 10)
    checkpoint.version = (9,)
    convert = to_ordered_state
    monkeypatch.setattr(mode_switch, "to_ordered_state", lambda *state: replace(convert(*state), version=found))
    checkpoint.claim(IN_REAL_TIME)
    plan = CheckpointPlan.read(checkpoint.folder / REALTIME_STATE)
    assert plan is not None
    # One of other data sets says nothing.
    assert plan.version == wanted


@pytest.mark.parametrize("runners", [(ON_SPARK, IN_REAL_TIME), (IN_REAL_TIME, ON_SPARK)])
def test_another_topic_is_refused_and_the_checkpoint_stays(
    checkpoint: Checkpoint, expected: dict[tuple[str, int], Any], runners: tuple[str, str]
) -> None:
    """A wrong name in one start made a checkpoint useless in both modes."""
    first, second = runners
    checkpoint.run(first, 0, 10)
    checkpoint.source = hw.kafka("localhost:9092", "other", format="ntriples")
    with pytest.raises(hw.CheckpointError, match=r"from the topic in, and this run reads it from other"):
        checkpoint.claim(second)
    record = CheckpointRecord.read(checkpoint.folder)
    assert record is not None and record.runner == first
    checkpoint.source = KAFKA
    checkpoint.run(second, 20, 10, 6)
    assert checkpoint.answers == expected


def test_a_checkpoint_without_its_plan_is_refused(checkpoint: Checkpoint) -> None:
    """It was taken for one that has done nothing, and its records were lost without a word."""
    checkpoint.run(IN_REAL_TIME, 0, 10)
    (checkpoint.folder / REALTIME_STATE / "plan.json").unlink()
    with pytest.raises(hw.CheckpointError, match=r"has no .*plan\.json, although Spark has committed batches"):
        checkpoint.claim(ON_SPARK)
    with pytest.raises(hw.CheckpointError, match=r"has no .*plan\.json"):
        checkpoint.plan.begin_run(checkpoint.folder / REALTIME_STATE)
    assert (checkpoint.folder / REALTIME_STATE / SPARK_LOGS).exists()


@pytest.mark.parametrize("runners", [(ON_SPARK, IN_REAL_TIME), (IN_REAL_TIME, ON_SPARK)])
def test_logs_without_their_commits_are_refused(checkpoint: Checkpoint, runners: tuple[str, str]) -> None:
    first, second = runners
    checkpoint.run(first, 0, 10)
    logs = checkpoint.folder / (SPARK_STATE if first == ON_SPARK else f"{REALTIME_STATE}/{SPARK_LOGS}")
    for path in (logs / "commits").iterdir():
        path.unlink()
    with pytest.raises(hw.CheckpointError, match=r"has no .*commits/0, although Spark has planned the next batch"):
        checkpoint.claim(second)
    assert (logs / "offsets").exists()


def test_what_is_in_process_stays_there(checkpoint: Checkpoint) -> None:
    checkpoint.claim(IN_PROCESS)
    for runner in (ON_SPARK, IN_REAL_TIME):
        with pytest.raises(hw.CheckpointError, match=f"was made in process, and this run is {runner}: use another"):
            checkpoint.claim(runner)


def test_logs_without_offsets_of_topics_are_refused(checkpoint: Checkpoint) -> None:
    checkpoint.run(IN_REAL_TIME, 0, 10)
    logs = checkpoint.folder / REALTIME_STATE / SPARK_LOGS
    (logs / "offsets" / str(last_commit(logs))).write_text("v1\n{}\n7")
    with pytest.raises(hw.CheckpointError, match="damaged"):
        checkpoint.claim(ON_SPARK)
    # It is as it was.
    record = CheckpointRecord.read(checkpoint.folder)
    assert record is not None
    assert record.runner == IN_REAL_TIME
