"""Chaos runs on Spark from Kafka to files and Kafka, while the broker is killed, stopped and cut off.

A topic is what was written into it, in the order of its partition; a producer that does not know whether a record was
taken writes it twice, and then there are two. So the definition reads a file that has, line by line, what the topic
has. What is promised (docs/how-to/kafka.md): the files have each answer once; the topic of answers has them at least
once, those of one key are the same, and one record of each key is each answer once. A run that does not follow may end
with an error when its broker is away, and another one goes on from its checkpoint.
"""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import headwater as hw
from tests.chaos.broker_keeper import KeptBroker
from tests.chaos.broker_plans import BrokerFault, a_broker_fault
from tests.chaos.chaos_runs import Story, check_what_was_seen
from tests.chaos.lives import Life, noting
from tests.chaos.oracle import (
    ChaosError,
    Outcome,
    comparable_answer,
    compare,
    compare_counts,
    evaluate_definition,
    statements_of,
)
from tests.chaos.random_programs import RandomProgram, a_program
from tests.chaos.spark_runs import KINDS, a_life_on_spark, live_on_spark, read_ending
from tests.kernel.generated_queries import STREAMS
from tests.sources.kafka_broker import put, taken

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SOURCE_TIMES = {
    "kafka.default.api.timeout.ms": "1500",
    "kafka.request.timeout.ms": "1000",
    "fetchOffset.numRetries": "1",
}
"""So that a reader gives up soon."""
_SINK_TIMES = {
    "kafka.max.block.ms": "3000",
    "kafka.request.timeout.ms": "1000",
    "kafka.delivery.timeout.ms": "3000",
    "kafka.linger.ms": "0",
}
_FIRST = "-20000\t<http://example.org/a> <http://example.org/p> <http://example.org/b> ."
"""An element long before all others, for a topic that would have none at the start, and so would not be there."""


@dataclass(frozen=True)
class KafkaLife:
    """One run: what happens to it, and to the broker; with `follow` it goes on until everything has happened."""

    life: Life
    faults: tuple[BrokerFault, ...]
    follow: bool
    patience: float
    """For how many seconds a run that follows goes on then."""

    @classmethod
    def of(cls, random: Random, kinds: tuple[str, ...]) -> KafkaLife:
        life = a_life_on_spark(random, kinds) if random.randrange(2) else Life()
        faults = [a_broker_fault(random) for _ in range(random.choice([0, 1, 1, 2]))]
        happen = [replace(one, sleep=random.choice([0.0, 0.3, 1.0, 2.0])) for one in faults if one.kind != "twice"]
        return cls(life, tuple(happen), random.randrange(2) == 0, random.choice([1.0, 3.0]))


@dataclass(frozen=True)
class KafkaTopics:
    """The topics of a run."""

    servers: str
    name: str
    streams: tuple[str, ...]

    def topic(self, stream: str) -> str:
        return f"{self.name}-{STREAMS.index(stream)}"

    @property
    def answers(self) -> str:
        return f"{self.name}-answers"

    def sources(self, *, is_patient: bool) -> dict[str, Any]:
        options = {} if is_patient else _SOURCE_TIMES
        return {
            stream: hw.kafka(self.servers, self.topic(stream), format="tnq", per_batch=8, options=options)
            for stream in self.streams
        }

    def sink(self, *, is_patient: bool) -> hw.KafkaSink:
        return hw.KafkaSink(self.servers, self.answers, options={} if is_patient else _SINK_TIMES)

    def write_part(self, spark: SparkSession, program: RandomProgram, number: int) -> None:
        """Write the records of a part, each of them a line, into one partition of each topic."""
        for stream in self.streams:
            if lines := program.parts[stream][number]:
                put(spark, self.servers, self.topic(stream), [line.encode() for line in lines])

    def check_answers(self, spark: SparkSession, program: RandomProgram, wanted: Outcome) -> int:
        """Compare one record of each key with what was expected; gives how many keys there more than once."""
        by_key: dict[bytes, tuple[str, str]] = {}
        repeated = 0
        for record in taken(spark, self.servers, self.answers):
            if record.key is None:
                continue
            answer = json.loads(record.value)
            said = answer["query"], comparable_answer(answer)
            repeated += record.key in by_key
            if by_key.setdefault(bytes(record.key), said) != said:
                raise ChaosError(f"{record.key} stands in Kafka with {by_key[bytes(record.key)]} and with {said}")
        for query in program.queries:
            own = Counter(text for name, text in by_key.values() if name == query.name)
            compare_counts(f"{query.name} in Kafka", own, wanted.answers.get(query.name, Counter()))
        return repeated


def run_over_kafka(
    seed: int, folder: Path, spark: SparkSession, broker: KeptBroker, *, kills_driver: bool
) -> Counter[str]:
    """Run a seed on Spark with Kafka, or go on with it; gives what there was to see."""
    random = Random(f"kafka {seed}")
    kinds = (*KINDS, "kill-before", "kill-after") if kills_driver else KINDS
    lives = [KafkaLife.of(random, kinds) for _ in range(random.randint(1, 2))]
    lives.append(KafkaLife(Life(), (), follow=False, patience=0.0))
    streams = tuple(random.choice([STREAMS, STREAMS[:1], STREAMS[1:]]))
    program = a_program(random, len(lives))
    # In files lines that follow each other are one element, and a record of Kafka is one of its own.
    program = replace(
        program,
        parts=_records(random, program, streams),
        batch_bytes=2000,
        changes_data=False,
        format=random.choice(["json", "json", program.format]),
    )
    shards = 1 if program.visitor is not None else random.randint(1, 2)
    story, run = Story(seed, program), folder / "run"
    if not run.exists():
        run.mkdir(parents=True)
        program.write_data(run)
        (folder / "topics").write_text(f"chaos-{seed}-{time.time_ns()}")
    topics = KafkaTopics(f"127.0.0.1:{broker.port}", (folder / "topics").read_text(), streams)
    to_kafka = program.format == "json"
    try:
        for number, one in enumerate(lives):
            notes, is_last = folder / f"life-{number}", number == len(lives) - 1
            if not notes.exists():
                broker.order("calm")
                program.write_part(run, number)
                topics.write_part(spark, program, number)
                if number == 0 and to_kafka:
                    put(spark, topics.servers, topics.answers, [b"begin"])
                notes.mkdir()
                live_on_spark(
                    program,
                    folder,
                    number,
                    one.life,
                    spark,
                    shards,
                    is_last=is_last,
                    sources=topics.sources(is_patient=is_last),
                    sinks=[topics.sink(is_patient=is_last)] if to_kafka else [],
                    follow=one.follow,
                    beside=_happening(broker, one, notes),
                )
            ending = read_ending(notes)
            story.lives.append((one.life, ending))
            if not ending.is_expected:
                raise ChaosError(f"life {number} {ending.how}: {ending.text}")
            check_what_was_seen(program, folder)
        if ending.how != "done":
            raise ChaosError(f"the last run, without a fault, {ending.how}: {ending.text}")
        evaluate_definition(program, folder)
        wanted = compare(program, folder, endpoint_failed=False, change_letters=_placeless)
        repeated = topics.check_answers(spark, program, wanted) if to_kafka else 0
    except ChaosError as error:
        happened = "\n".join(f"  life {number}: {one}" for number, one in enumerate(lives))
        raise ChaosError(f"over Kafka with {shards} shards: {error}\n{story.tell()}\n{happened}") from None
    found = story.counts(wanted)
    found.update(f"fault {fault.kind} of a broker" for one in lives for fault in one.faults)
    found["runs with answers in Kafka"] += to_kafka
    found["keys in Kafka that were written again"] += repeated
    return Counter({f"over Kafka, {name}": count for name, count in found.items()})


def _records(
    random: Random, program: RandomProgram, streams: tuple[str, ...]
) -> dict[str, tuple[tuple[str, ...], ...]]:
    """The parts of a program, some records of topics twice, as by a producer that has seen no answer."""
    found = dict(program.parts)
    for stream in streams:
        first, *rest = program.parts[stream]
        parts = [first or (_FIRST,), *rest]
        found[stream] = tuple(
            tuple(line for one in part for line in [one] * (2 if random.randrange(20) == 0 else 1)) for part in parts
        )
    return found


def _placeless(letter: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """A dead letter for each of its statements, without its place, which is a file or a partition."""
    return ({**one, "source": None} for one in statements_of(letter))


def _happening(broker: KeptBroker, one: KafkaLife, notes: Path) -> Callable[[hw.Engine], AbstractContextManager[None]]:
    """What happens to the broker while an engine runs; one that follows is stopped in the end."""

    @contextmanager
    def happen(engine: hw.Engine) -> Iterator[None]:
        note, over = noting(notes / "struck"), threading.Event()

        def work() -> None:
            for fault in one.faults:
                over.wait(fault.sleep)
                note("broker")
                broker.order(fault.kind, fault.value)
            over.wait(one.patience)
            if one.follow:
                engine.stop()

        thread = threading.Thread(target=work)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    return happen
