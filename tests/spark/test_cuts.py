"""However a stream is cut into batches, input partitions and shards, and shuffled within the allowed delay: the answers
of each tick are the same, byte by byte.

Most cuts go through everything that Spark goes through, without Spark: pieces, packed chunks, shards whose state is
taken from its store again and again, merged answers. Some go through Spark itself; `make soak` has them all there.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

import headwater as hw
from headwater.execution.answer_batch import AnswerBatch
from headwater.execution.answer_bytes import pack_answers, unpack_answers
from headwater.execution.answers import Answer
from headwater.running.evaluation import Evaluation
from headwater.running.program_description import ProgramDescription
from headwater.sharding.answer_merging import AnswerMerger
from headwater.sharding.shard_plan import ShardPlan, find_shard_keys
from headwater.sharding.shard_planning import plan_shards
from headwater.sinks.answer_text import format_answer_json
from headwater.sources.chunk_columns import with_columns
from headwater.sources.feed import Chunk, Feed
from headwater.sources.offsets import Offset
from headwater.spark.chunk_bytes import pack_chunk, unpack_chunk
from headwater.spark.stateful_step import segment_from_bytes
from headwater.terms.packing import pack
from tests.engine.programs import ANY, HOT, SENSORS, SLIDING, TUMBLING, integer, with_queries, write

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DELAY_MS = 5_000
LINES = 600
PAIRS = """
PREFIX : <http://ex/>
REGISTER QUERY pairs AS
SELECT ?sensor ?value ?unit FROM STREAM <http://ex/sensors> [RANGE 12s STEP 4s]
WHERE { ?sensor :value ?value OPTIONAL { ?sensor :unit ?unit } }
"""
NEW = """
PREFIX : <http://ex/>
REGISTER ISTREAM new AS
SELECT DISTINCT ?sensor ?unit FROM NAMED WINDOW <http://ex/w> ON <http://ex/sensors> [RANGE PT10S STEP PT5S]
WHERE { WINDOW <http://ex/w> { ?sensor :unit ?unit } }
"""
MEAN = """
PREFIX : <http://ex/>
REGISTER QUERY mean AS
SELECT (COUNT(*) AS ?n) (AVG(?value) AS ?mean) (SUM(?value * 0.1e0) AS ?tenths)
FROM STREAM <http://ex/sensors> [RANGE 12s STEP 4s]
WHERE { ?sensor :value ?value }
"""
UNITS = """
PREFIX : <http://ex/>
REGISTER QUERY units AS
SELECT (MAX(?value) AS ?most) (AVG(?value / 7) AS ?mean) FROM STREAM <http://ex/sensors> [RANGE 12s STEP 4s]
WHERE { ?sensor :value ?value ; :unit ?unit } GROUP BY ?unit HAVING (COUNT(*) > 1) ORDER BY DESC(?mean) LIMIT 2
"""
IN_PARTS = ("mean", "units")
QUERIES = (SLIDING, TUMBLING, HOT, ANY, PAIRS, NEW, MEAN, UNITS)


class Cut(NamedTuple):
    batches: int
    partitions: int
    shards: int
    shuffled: bool

    def __str__(self) -> str:
        order = "shuffled" if self.shuffled else "in order"
        return f"{self.batches} batches, {self.partitions} partitions, {self.shards} shards, {order}"


ALL_CUTS = [
    Cut(batches, partitions, shards, shuffled)
    for batches in (1, 7, 500)
    for partitions in (1, 4)
    for shards in (1, 2, 5)
    for shuffled in (False, True)
]
QUICK = [cut for cut in ALL_CUTS if cut.batches < 500 or cut in (Cut(500, 1, 1, False), Cut(500, 4, 5, True))]
ON_SPARK = [Cut(7, 4, 2, True)]


@cache
def lines(shuffled: bool) -> tuple[str, ...]:
    generator = random.Random(11)
    timed: list[tuple[int, str]] = []
    for number in range(LINES):
        time = number * 150
        subject = f"<http://ex/s{generator.randrange(9)}>"
        if number % 5:
            timed.append((time, f"{subject} <http://ex/value> {integer(generator.randrange(100))} ."))
        else:
            timed.append((time, f'{subject} <http://ex/unit> "{"CFK"[generator.randrange(3)]}" .'))
    if shuffled:
        # Nobody is overtaken by what is more than the delay younger.
        timed.sort(key=lambda pair: pair[0] + generator.randrange(DELAY_MS))
    return tuple(f"{time}\t{statement}" for time, statement in timed)


def files(folder: Path, cut: Cut) -> Path:
    """The stream in a folder: in one file, or in as many as there are partitions, one behind the other."""
    stream = lines(cut.shuffled)
    size = -(-len(stream) // cut.partitions)
    for number in range(cut.partitions):
        write(folder / f"{number}.tnq", stream[number * size : (number + 1) * size])
    return folder


def texts(answers: Iterable[Answer]) -> dict[tuple[str, int, int], bytes]:
    return {(a.query, a.time, a.part): format_answer_json(a, with_query=True).encode() for a in answers}


class Shard:
    """A shard of the stateful step: its durable state, and an evaluation that is thrown away from time to time."""

    def __init__(self, description: ProgramDescription) -> None:
        self._definition = description
        self._summary: bytes | None = None
        self._segments: dict[int, bytes] = {}
        self._live: Evaluation | None = None

    def step(self, chunks: list[bytes], *, forget: bool) -> AnswerBatch:
        if self._live is None or forget:
            self._live = Evaluation(self._definition.program())
            if self._summary is not None:
                self._live.resume(self._summary, map(segment_from_bytes, self._segments.values()))
        outcome = self._live.step(map(unpack_chunk, chunks))
        self._summary, changes = self._live.changes()
        for segment in changes.added:
            self._segments[segment.number] = pack(segment.to_plain())
            segment.elements = None
        for number in changes.removed:
            del self._segments[number]
        return outcome.answers


def without_spark(folder: Path, cut: Cut) -> list[Answer]:
    engine = hw.Engine(in_process=True, delay=DELAY_MS * 1000)
    engine.stream(SENSORS, files(folder, cut._replace(partitions=1)))
    description = with_queries(engine, QUERIES)._description()
    queries = description.queries
    feed = Feed({SENSORS: hw.files(folder)}, wanted=description.outline().wanted_patterns)
    feed.finish()
    found = plan_shards(queries, find_shard_keys(cut.shards), has_static_default=False)
    assert isinstance(found, ShardPlan), found
    assert found.partial_groups == set(IN_PARTS)
    cutting = found if cut.shards > 1 else None
    description = replace(description, sharding=cutting)
    shards = {key: Shard(description) for key in (cutting.keys if cutting else (0,))}
    merger = AnswerMerger(queries, found)
    total = sum(path.stat().st_size for path in folder.iterdir())
    limit = None if cut.batches == 1 else -(-total // cut.batches)
    offset, answers, batches = Offset(), list[Answer](), 0
    while (end := feed.next_offset(offset, limit)) != offset:
        size = -(-(limit or total) // cut.partitions)
        tasks = feed.read_tasks(offset, end, size)
        chunks = [chunk for task in tasks for chunk in feed.read(task)]
        parts = [pair for chunk in chunks for pair in _parts(chunk, cutting)]
        random.Random(batches).shuffle(parts)
        given = AnswerBatch()
        for key, shard in shards.items():
            mine = [pack_chunk(part) for to, part in parts if to == key]
            found_here = shard.step(mine, forget=batches % 97 == 3)
            for part in found_here.parts:
                given.append(unpack_answers(pack_answers(part)))
            given.order = found_here.order
        answers.extend(given if cutting is None else merger.merge(given))
        offset, batches = end, batches + 1
    assert batches >= cut.batches * 0.9
    return answers


def _parts(chunk: Chunk, cutting: ShardPlan | None) -> list[tuple[int, Chunk]]:
    return [(0, chunk)] if cutting is None else list(cutting.split(with_columns(chunk)))


def on_spark(spark: SparkSession, folder: Path, cut: Cut) -> list[Answer]:
    total = sum(len(line) + 1 for line in lines(cut.shuffled))
    size = None if cut.batches == 1 else -(-total // cut.batches)
    engine = hw.Engine(spark, delay=DELAY_MS * 1000, shards=cut.shards, batch_bytes=size)
    engine.stream(SENSORS, files(folder, cut))
    answers: list[Answer] = []
    summary = with_queries(engine, QUERIES).run(on_answer=answers.append)
    assert summary.late == summary.bad == 0
    assert summary.batches >= cut.batches * 0.9
    assert summary.queries["sliding"].shards == cut.shards
    return answers


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, int, int], bytes]:
    """The description, all at once."""
    engine = hw.Engine(in_process=True, delay=DELAY_MS * 1000, evaluator="reference")
    engine.stream(SENSORS, files(tmp_path_factory.mktemp("whole"), ALL_CUTS[0]))
    answers: list[Answer] = []
    with_queries(engine, QUERIES).run(on_answer=answers.append)
    found = texts(answers)
    assert len(found) > 90 and {query for query, _, _ in found} == {
        "sliding",
        "tumbling",
        "hot",
        "any",
        "pairs",
        "new",
        *IN_PARTS,
    }
    return found


@pytest.mark.parametrize(
    "cut", [pytest.param(cut, id=str(cut), marks=[] if cut in QUICK else pytest.mark.soak) for cut in ALL_CUTS]
)
def test_any_cut(cut: Cut, tmp_path: Path, expected: dict[tuple[str, int, int], bytes]) -> None:
    assert texts(without_spark(tmp_path, cut)) == expected


@pytest.mark.parametrize("cut", ON_SPARK, ids=str)
def test_some_cuts_on_spark(
    cut: Cut, spark: SparkSession, tmp_path: Path, expected: dict[tuple[str, int, int], bytes]
) -> None:
    assert texts(on_spark(spark, tmp_path, cut)) == expected


@pytest.mark.soak
@pytest.mark.parametrize("cut", ALL_CUTS, ids=str)
def test_any_cut_on_spark(
    cut: Cut, spark: SparkSession, tmp_path: Path, expected: dict[tuple[str, int, int], bytes]
) -> None:
    assert texts(on_spark(spark, tmp_path, cut)) == expected
