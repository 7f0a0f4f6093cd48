"""A batch in ticks, each given out before the next one is answered, says what it says as a whole."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pytest
from pyoxigraph import Store

from headwater.algebra.build import plan_query
from headwater.execution.answers import Answer
from headwater.execution.program import Program
from headwater.execution.query_evaluators import MakeEvaluator
from headwater.execution.registered import RegisteredQuery
from headwater.language.parser import parse
from headwater.reference.reference_evaluator import ReferenceEvaluator
from headwater.terms.model import Element, NamedNode, Triple
from headwater.windows.element_sequences import Elements
from headwater.windows.settings import Options, resolve_settings
from tests.optimised_evaluators import make_optimised_evaluator

EX = "http://ex/"
CHAIN = (
    "REGISTER STREAM <http://ex/quick> COMPUTED EVERY 1s AS PREFIX : <http://ex/> "
    "CONSTRUCT { ?car :seen ?gate } FROM STREAM <http://ex/s> [RANGE 2s STEP 1s] WHERE { ?car :at ?gate }",
    "REGISTER STREAM <http://ex/slow> COMPUTED EVERY 3s AS PREFIX : <http://ex/> "
    "CONSTRUCT { ?gate :busy ?car } FROM STREAM <http://ex/quick> [RANGE 3s STEP 3s] WHERE { ?car :seen ?gate }",
    "REGISTER QUERY Last COMPUTED EVERY 1s AS PREFIX : <http://ex/> SELECT ?gate (COUNT(*) AS ?n) "
    "FROM STREAM <http://ex/slow> [RANGE 4s STEP 1s] WHERE { ?gate :busy ?car } GROUP BY ?gate",
    "PREFIX : <http://ex/> SELECT * WHERE { STREAM <http://ex/s> [NOW] { ?car :at ?gate } }",
)


READER = (
    "REGISTER QUERY Reader COMPUTED EVERY 1s AS PREFIX : <http://ex/> SELECT * "
    "FROM STREAM <http://ex/quick> [RANGE 2s STEP 1s] WHERE { ?car :seen ?gate }"
)


def program(evaluator: MakeEvaluator, texts: Sequence[str] = CHAIN) -> Program:
    plans = [plan_query(parse(text)) for text in texts]
    return Program([RegisteredQuery(plan, resolve_settings(plan, Options())) for plan in plans], Store(), 0, evaluator)


def batches(random: Random) -> list[dict[str, Elements]]:
    times = sorted(random.choice([random.randrange(25_000_000), 4_000_000]) for _ in range(30))
    at = NamedNode(f"{EX}at")
    elements = [
        Element(
            time,
            (Triple(NamedNode(f"{EX}car{random.randrange(4)}"), at, NamedNode(f"{EX}g{random.randrange(3)}")),),
            None,
            (position,),
        )
        for position, time in enumerate(times)
    ]
    cuts = sorted(random.sample(range(31), random.randint(0, 4)))
    return [{f"{EX}s": elements[a:b]} for a, b in zip([0, *cuts], [*cuts, 30], strict=True)]


@pytest.mark.parametrize("evaluator", [ReferenceEvaluator, make_optimised_evaluator])
def test_queries_that_feed_each_other(evaluator: MakeEvaluator) -> None:
    for seed in range(20):
        whole, stepwise = program(evaluator), program(evaluator)
        at_once: list[Answer] = []
        one_by_one: list[Answer] = []
        for batch in [*batches(Random(seed)), None]:
            ended = [f"{EX}s"] if batch is None else []
            at_once += whole.advance(batch or {}, ended).answers
            for step in stepwise.advance_by_ticks(batch or {}, ended, lambda tick: (tick, ())):
                assert len({(answer.query, answer.time) for answer in step.answers}) == len(step.answers)
                one_by_one += step.answers
        said = sorted(map(_content_of, at_once))
        assert sorted(map(_content_of, one_by_one)) == said and len({query for query, *_ in said}) == len(CHAIN)


def test_a_reader_is_as_far_as_its_feeder() -> None:
    both = program(make_optimised_evaluator, [CHAIN[0], READER])
    for batch in batches(Random(1)):
        times: dict[str, list[int]] = {"http://ex/quick": [], "Reader": []}
        for answer in both.advance(batch).answers:
            times[answer.query].append(answer.time)
        fed, read = times.values()
        assert fed == read


def _content_of(answer: Answer) -> tuple[str, int, str]:
    return answer.query, answer.time, f"{answer.part} {answer.rows} {answer.triples} {answer.inputs}"
