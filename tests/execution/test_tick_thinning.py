"""Under load fewer ticks are evaluated, and their answers are those of the definition (C-SPARQL, footnote 4)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import partial
from pathlib import Path

import pytest
from pyoxigraph import Store

import headwater as hw
from headwater.algebra.build import plan_query
from headwater.engine import engine as engine_module
from headwater.execution.answer_batch import AnswerBatch
from headwater.execution.answers import Answer
from headwater.execution.evaluator import Evaluator
from headwater.execution.tick_thinning import TickThinner, can_skip_ticks
from headwater.kernel.kernel_evaluator import KernelEvaluator
from headwater.language.parser import parse
from headwater.reference.reference_evaluator import ReferenceEvaluator
from headwater.running.in_process import run_in_process
from headwater.sinks.answer_text import format_answer_json
from headwater.sources.files import _ELEMENT_WEIGHT
from headwater.terms.model import SECOND, Element, Literal, NamedNode, Row, Triple
from headwater.windows.settings import resolve_settings

QUERY = """REGISTER {} Q AS SELECT ?v FROM NAMED WINDOW <w> ON <s> [RANGE PT3S STEP PT1S]
    WHERE { WINDOW <w> { ?x <urn:v> ?v } }"""
TRIPLE = Triple(NamedNode("urn:x"), NamedNode("urn:v"), Literal(1))


class ManualClock:
    """A clock that evaluation moves on: so many seconds for each tick."""

    def __init__(self, seconds_per_tick: float) -> None:
        self.now = 0.0
        self.seconds_per_tick = seconds_per_tick

    def __call__(self) -> float:
        return self.now


def evaluator_of(kind: type[Evaluator], operator: str, clock: ManualClock | None) -> Evaluator:
    plan = plan_query(parse(QUERY.replace("{}", operator)))
    evaluator = kind(plan, resolve_settings(plan), Store())  # type: ignore[call-arg]
    if clock is not None:
        evaluator.tick_thinner = TickThinner(1.0, clock)
        answer_ticks = evaluator._answer_ticks

        def timed(ticks: Iterable[int], watermark: int | None) -> AnswerBatch:
            listed: list[int] = []
            answers = answer_ticks((listed.append(tick) or tick for tick in ticks), watermark)  # type: ignore[func-returns-value]
            clock.now += clock.seconds_per_tick * len(listed)
            return answers

        evaluator._answer_ticks = timed  # type: ignore[method-assign]
    return evaluator


def answers_of(evaluator: Evaluator) -> list[Answer]:
    """Batches of one, two, three, … seconds; each second has a value of its own."""
    answers: list[Answer] = []
    second = 0
    for size in (1, 4, 8, 12, 3):
        triples = [
            Element(s * SECOND, (Triple(NamedNode("urn:x"), NamedNode("urn:v"), Literal(s)),))
            for s in range(second, second + size)
        ]
        second += size
        answers.extend(evaluator.advance({evaluator.keys[0]: triples}, triples[-1].time + 1))
    return [*answers, *evaluator.advance({}, None, ended=True)]


@pytest.mark.parametrize("kind", [KernelEvaluator, ReferenceEvaluator])
@pytest.mark.parametrize("operator", ["RSTREAM", "ISTREAM", "DSTREAM"])
def test_footnote_4_answers_at_evaluated_ticks_are_those_of_the_definition(
    kind: type[Evaluator], operator: str
) -> None:
    results = {one.time: Counter(one.rows) for one in answers_of(evaluator_of(ReferenceEvaluator, "RSTREAM", None))}
    answers = answers_of(evaluator_of(kind, operator, ManualClock(2.0)))
    before: Counter[Row] = Counter()
    for answer in answers:
        now = results[answer.time]
        assert Counter(answer.rows) == {"RSTREAM": now, "ISTREAM": now - before, "DSTREAM": before - now}[operator]
        before = now
    assert 0 < len(answers) < len(results)
    # Each tick was evaluated, or is said to have been skipped; also at the end, where none is.
    assert sum(1 + answer.skipped for answer in answers) == len(results)
    assert answers[-1].time == max(results)


def test_ticks_are_evaluated_at_equal_distances_and_the_last_always() -> None:
    answers = answers_of(evaluator_of(KernelEvaluator, "RSTREAM", ManualClock(2.0)))
    by_batch = [(answer.time // SECOND, answer.skipped) for answer in answers]
    # Four seconds are enough for one tick of two seconds, eight for three, twelve for four.
    assert by_batch[1:9] == [(4, 3), (6, 1), (9, 2), (12, 2), (15, 2), (18, 2), (21, 2), (24, 2)]


def test_nothing_is_skipped_by_a_query_that_can_follow() -> None:
    plain = answers_of(evaluator_of(KernelEvaluator, "ISTREAM", None))
    assert answers_of(evaluator_of(KernelEvaluator, "ISTREAM", ManualClock(0.1))) == plain


@pytest.mark.parametrize(
    ("text", "can_skip"),
    [
        (QUERY.replace("{}", "RSTREAM"), True),
        ("SELECT * WHERE { STREAM <s> [RANGE 3s SLIDE 1s] { ?x ?p ?v } }", True),
        ("SELECT * WHERE { STREAM <s> [RANGE 3s] { ?x ?p ?v } }", False),
        ("SELECT * WHERE { STREAM <s> [TRIPLES 3] { ?x ?p ?v } }", False),
        ("REGISTER QUERY Q COMPUTED EVERY 1s AS SELECT * FROM STREAM <s> [RANGE 3s STEP 1s] WHERE { ?x ?p ?v }", True),
    ],
)
def test_only_ticks_of_the_clock_may_be_skipped(text: str, can_skip: bool) -> None:
    assert can_skip_ticks(resolve_settings(plan_query(parse(text)))) is can_skip


def engine_of(**options: object) -> hw.Engine:
    engine = hw.Engine(in_process=True, batch_bytes=10 * _ELEMENT_WEIGHT, **options)  # type: ignore[arg-type]
    engine.stream("s", hw.memory([(second * SECOND, [TRIPLE]) for second in range(200)]))
    engine.register(QUERY.replace("{}", "RSTREAM"), name="Q")
    return engine


def run_until(engine: hw.Engine, last: int) -> tuple[list[Answer], hw.RunSummary]:
    answers: list[Answer] = []

    def take(answer: Answer) -> None:
        answers.append(answer)
        if answer.time >= last * SECOND:
            engine.stop()

    return answers, engine.run(follow=True, on_answer=take)


def test_a_run_says_how_many_ticks_it_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each look at the clock is ten seconds later: the evaluation of a batch takes ten seconds."""
    looks = iter(range(0, 1_000_000, 10))
    monkeypatch.setattr(engine_module, "run_in_process", partial(run_in_process, clock=lambda: float(next(looks))))
    answers, summary = run_until(engine_of(overload="coarsen"), 150)
    skipped = sum(answer.skipped for answer in answers)
    assert skipped > 20
    assert summary.queries["Q"].skipped == skipped
    assert [a.time - b.time for a, b in zip(answers[1:], answers, strict=False)] == [
        (1 + answer.skipped) * SECOND for answer in answers[1:]
    ]
    assert any(f'"skipped": {answer.skipped}' in format_answer_json(answer) for answer in answers if answer.skipped)


def test_a_run_that_waits_evaluates_every_tick(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = iter(range(0, 1_000_000, 10))
    monkeypatch.setattr(engine_module, "run_in_process", partial(run_in_process, clock=lambda: float(next(looks))))
    answers, summary = run_until(engine_of(), 150)
    assert summary.queries["Q"].skipped == 0 and not any(answer.skipped for answer in answers)


def test_skipping_is_refused_where_batches_may_be_repeated(tmp_path: Path) -> None:
    with pytest.raises(hw.SettingError, match="Spark may repeat"):
        hw.Engine(overload="coarsen")
    with pytest.raises(hw.SettingError, match="a checkpoint exclude each other"):
        hw.Engine(in_process=True, overload="coarsen", checkpoint=tmp_path)
    with pytest.raises(hw.SettingError, match="use one of wait, coarsen"):
        hw.Engine(overload="sleep")  # type: ignore[arg-type]


def test_a_query_that_others_read_skips_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = iter(range(0, 1_000_000, 10))
    monkeypatch.setattr(engine_module, "run_in_process", partial(run_in_process, clock=lambda: float(next(looks))))
    engine = engine_of(overload="coarsen")
    made = "CONSTRUCT { ?x <urn:w> ?v } FROM STREAM <s> [RANGE 3s STEP 1s] WHERE { ?x <urn:v> ?v }"
    engine.register(f"REGISTER STREAM made COMPUTED EVERY 1s AS {made}")
    engine.register("REGISTER QUERY R AS SELECT * FROM STREAM <made> [RANGE 3s STEP 1s] WHERE { ?x ?p ?v }")
    _, summary = run_until(engine, 100)
    assert summary.queries["Q"].skipped and not summary.queries["made"].skipped
