"""Queries over the same windows say together what each says alone: on generated sets with equal parts, in any cut,
after restarts, and while queries come and go."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from random import Random

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from pyoxigraph import Store

from headwater.algebra.build import plan_query
from headwater.algebra.nodes import Distinct, Project
from headwater.algebra.plan import QueryKind, QueryPlan
from headwater.execution.answers import Answer
from headwater.execution.program import Program
from headwater.execution.query_evaluators import MakeEvaluator
from headwater.execution.registered import RegisteredQuery
from headwater.kernel import moving_windows
from headwater.kernel.sharing.find_shared import find_common_windows
from headwater.kernel.sharing.shared_evaluator import SharedEvaluator
from headwater.language.parser import parse
from headwater.reference.reference_evaluator import ReferenceEvaluator
from headwater.terms.model import Element
from headwater.windows.settings import Content, Options, Report, resolve_settings
from tests.kernel.generated_queries import EX, STREAMS, Writer, a_stream
from tests.optimised_evaluators import make_optimised_evaluator

SEEDS = st.integers(0, 1 << 32)
some = settings(max_examples=max(10, settings().max_examples // 3))
Batch = dict[str, list[Element]]


class WindowWriter(Writer):
    """Writes queries whose patterns all stand in windows."""

    def pick(self, *choices: str) -> str:
        return super().pick(*([one for one in choices if one.startswith("WINDOW")] or choices))


def a_set(random: Random, count: int) -> list[RegisteredQuery]:
    """Queries over the same windows, whose patterns are from a few texts: with other names, or less in the answers."""
    specs = ["[RANGE 2s STEP 1s]", "[RANGE 1s TUMBLING]", "[RANGE 1500ms STEP 1s]"]
    dataset = " ".join(f"FROM NAMED WINDOW :w{i} ON :s{i} {random.choice(specs)}" for i in range(2))
    report = random.choice([None, None, Report.PERIODIC, Report.EAGER])
    options = Options(report=report, content=random.choice(list(Content)))
    texts = [WindowWriter(random, "rspql").query(1 + random.randrange(2)) for _ in range(random.randint(1, 3))]
    queries: list[RegisteredQuery] = []
    for number in range(count):
        text = random.choice(texts).replace("@DATASET@", dataset)
        if random.randrange(2):
            text = re.sub(r"\?(\w+)", r"?other_\1", text)
        if random.randrange(4) == 0:
            text = text.replace(":w1", ":second")
        plan = plan_query(parse(f"PREFIX : <{EX}> {text}"), name=f"q{number}", streams=STREAMS)
        queries.append(RegisteredQuery(_with_less(plan, random), resolve_settings(plan, options)))
    return queries


def _with_less(plan: QueryPlan, random: Random) -> QueryPlan:
    """The plan, or one whose solutions are each there once, or have fewer variables."""
    if plan.kind is not QueryKind.SELECT or not isinstance(plan.root, Project) or random.randrange(2):
        return plan
    if random.randrange(2):
        return replace(plan, root=Distinct(plan.root))
    shown = plan.variables[: random.randint(1, len(plan.variables))]
    return replace(plan, root=Project(plan.root, shown), variables=shown)


def streams_of(random: Random) -> Batch:
    return {stream: list(a_stream(random)) for stream in STREAMS}


def batches(elements: Batch, random: Random) -> Iterator[Batch]:
    rest = elements
    while any(rest.values()):
        size = random.randint(1, 4)
        yield {stream: some_of[:size] for stream, some_of in rest.items()}
        rest = {stream: some_of[size:] for stream, some_of in rest.items()}


def together(queries: Sequence[RegisteredQuery]) -> Program:
    return Program(queries, Store(), 0, make_optimised_evaluator, families=find_common_windows)


def alone(queries: Sequence[RegisteredQuery], make: MakeEvaluator = ReferenceEvaluator) -> Program:
    return Program(queries, Store(), 0, make)


def in_order(answers: list[Answer]) -> list[Answer]:
    return sorted(answers, key=lambda answer: (answer.time, answer.query, answer.part))


def is_shared(program: Program) -> bool:
    return any(isinstance(one, SharedEvaluator) for one in program.evaluators.values())


@some
@given(SEEDS)
def test_together_as_alone(seed: int) -> None:
    random = Random(seed)
    queries, elements = a_set(random, random.randint(2, 5)), streams_of(random)
    program = together(queries)
    assume(is_shared(program))
    expected = alone(queries).advance(elements, ended=STREAMS).answers
    with pytest.MonkeyPatch.context() as patch:
        # One tick at a time, or many in one step.
        patch.setattr(moving_windows, "_WORTH_A_RUN", random.choice([1, 2, 8]))
        assert program.advance(elements, ended=STREAMS).answers == expected


@some
@given(SEEDS)
def test_in_pieces_with_restarts(seed: int) -> None:
    random = Random(seed)
    queries, elements = a_set(random, random.randint(2, 5)), streams_of(random)
    running, found = together(queries), list[Answer]()
    assume(is_shared(running))
    expected = alone(queries).advance(elements, ended=STREAMS).answers
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(moving_windows, "_WORTH_A_RUN", random.choice([1, 8]))
        for batch in batches(elements, random):
            found += running.advance(batch).answers
            if random.randrange(2):
                saved = running.snapshot()
                running = together(queries)
                running.restore(saved)
        found += running.advance({}, ended=STREAMS).answers
    assert in_order(found) == in_order(list(expected))


@some
@given(SEEDS)
def test_queries_come_and_go(seed: int) -> None:
    random = Random(seed)
    queries, elements = a_set(random, 6), streams_of(random)
    running = together(queries[:3])
    assume(is_shared(together(queries)))
    expected, found = alone(queries[:3]), list[Answer]()
    wanted: list[Answer] = []
    for batch in batches(elements, random):
        found += running.advance(batch).answers
        wanted += expected.advance(batch).answers
        if random.randrange(2):
            chosen = random.sample(queries, random.randint(1, 5))
            programs = together(chosen), alone(chosen)
            for fresh, before in zip(programs, (running, expected), strict=True):
                fresh.resume(before.state(), before.log)
            running, expected = programs
    found += running.advance({}, ended=STREAMS).answers
    wanted += expected.advance({}, ended=STREAMS).answers
    assert in_order(found) == in_order(wanted)
