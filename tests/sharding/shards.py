"""Queries in shards without Spark: streams, how they are cut, and the answers of the shards put together."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from pyoxigraph import Literal, NamedNode, Quad, Store, Triple

from headwater.algebra.build import plan_query
from headwater.execution.answer_batch import AnswerBatch
from headwater.execution.answer_bytes import pack_answers, unpack_answers
from headwater.execution.answers import Answer
from headwater.execution.program import Program
from headwater.execution.query_evaluators import MakeEvaluator
from headwater.execution.registered import RegisteredQuery
from headwater.kernel.families.family_evaluator import find_families
from headwater.language.parser import parse
from headwater.sharding.answer_merging import AnswerMerger, query_of_shard
from headwater.sharding.shard_plan import ShardPlan
from headwater.sources.chunk_columns import with_columns
from headwater.sources.feed import Chunk
from headwater.terms.model import XSD, Element
from headwater.windows.settings import Options, resolve_settings
from tests.optimised_evaluators import make_optimised_evaluator

EX = "http://ex/"
A, B = EX + "a", EX + "b"
WINDOWS = (
    f"FROM NAMED WINDOW <{EX}w> ON <{A}> [RANGE PT4S STEP PT2S] "
    f"FROM NAMED WINDOW <{EX}v> ON <{B}> [RANGE PT3S STEP PT1S]"
)
PREFIX = f"PREFIX : <{EX}> "


def registered(text: str, name: str = "q") -> RegisteredQuery:
    plan = plan_query(parse(PREFIX + text if not text.startswith("REGISTER") else _prefixed(text)), name=name)
    return RegisteredQuery(plan, resolve_settings(plan, Options()))


def _prefixed(text: str) -> str:
    head, body = text.split(" AS ", 1)
    return f"{head} AS {PREFIX}{body}"


def static() -> Store:
    store = Store()
    for number in range(4):
        store.add(
            Quad(
                NamedNode(f"{EX}s{number}"),
                NamedNode(EX + "in"),
                NamedNode(f"{EX}r{number % 2}"),
                NamedNode(EX + "rooms"),
            )
        )
    return store


def small_integer(chance: random.Random) -> Literal:
    return Literal(str(chance.randrange(5)), datatype=NamedNode(XSD + "integer"))


def elements(
    seed: int, value: Callable[[random.Random], Literal | NamedNode] = small_integer
) -> dict[str, list[Element]]:
    chance = random.Random(seed)

    def observed(number: int) -> Element:
        o = NamedNode(f"{EX}o{chance.randrange(12)}")
        triples = [Triple(o, NamedNode(EX + "value"), value(chance))]
        if chance.random() < 0.7:
            triples.append(Triple(o, NamedNode(EX + "by"), NamedNode(f"{EX}s{chance.randrange(5)}")))
        time = number * 300_000 - chance.randrange(2) * 100_000
        return Element(time, tuple(triples), f"{EX}n{number % 3}" if number % 4 else None, (0, number))

    def mentioned(number: int) -> Element:
        o = NamedNode(f"{EX}o{chance.randrange(12)}")
        triple = Triple(NamedNode(f"{EX}x{number}"), NamedNode(EX + "about"), o)
        return Element(number * 500_000, (triple,), position=(0, number))

    return {A: [observed(n) for n in range(40)], B: [mentioned(n) for n in range(24)]}


def cut(streams: dict[str, list[Element]], pieces: int) -> list[list[Chunk]]:
    """Batches of chunks: each stream in so many pieces."""
    batches: list[list[Chunk]] = []
    for piece in range(pieces):
        chunks = []
        for stream, listed in streams.items():
            size = -(-len(listed) // pieces)
            chunks.append(Chunk(stream, elements=tuple(listed[piece * size : (piece + 1) * size])))
        batches.append(chunks)
    return batches


def whole_answers(
    query: RegisteredQuery,
    streams: dict[str, list[Element]],
    delay: int,
    make: MakeEvaluator = make_optimised_evaluator,
) -> list[Answer]:
    program = Program([query], static(), delay, make)
    wanted = {stream: streams[stream] for stream in program.inputs}
    return list(program.advance(wanted, ended=list(wanted)).answers)


def sharded_answers(
    query: RegisteredQuery,
    cutting: ShardPlan,
    batches: Sequence[Sequence[Chunk]],
    delay: int,
    make: MakeEvaluator = make_optimised_evaluator,
    others: Sequence[RegisteredQuery] = (),
) -> list[Answer]:
    """The answers of a query, and of others that run beside it, put together after each batch."""
    queries = [query, *others]
    parts_of = [query_of_shard(one, cutting) for one in queries]
    programs = {key: Program(parts_of, static(), delay, make, families=find_families) for key in cutting.keys}
    merger = AnswerMerger(queries, cutting)
    answers: list[Answer] = []
    for number, batch in enumerate(batches):
        found = AnswerBatch()
        parts: dict[int, dict[str, object]] = {key: {} for key in cutting.keys}
        for chunk in batch:
            for key, part in cutting.split(with_columns(chunk)):
                parts[key][str(chunk.stream)] = part.elements
        for key, program in programs.items():
            mine = {stream: part for stream, part in parts[key].items() if stream in program.inputs}
            ended = list(program.inputs) if number == len(batches) - 1 else []
            for some in program.advance(mine, ended=ended).answers.parts:  # type: ignore[arg-type]
                found.append(unpack_answers(pack_answers(some)))
        answers.extend(merger.merge(found))
    return answers
