"""Queries that come, change and go between two batches: those that stay say what they would have said, and those that
are new say, from the instant that they name, what they would say if they had been there all the time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pyoxigraph import Store

from headwater.algebra.build import plan_query
from headwater.execution.answers import Answer
from headwater.execution.late_queries import NOT_YET
from headwater.execution.program import Program
from headwater.execution.registered import RegisteredQuery
from headwater.kernel.families.family_evaluator import find_families
from headwater.language.parser import parse
from headwater.language.stream_clauses import StreamOperator
from headwater.reference.reference_evaluator import ReferenceEvaluator
from headwater.terms.model import SECOND, Element, Literal, NamedNode, Triple
from headwater.windows.element_sequences import Elements, elements_of
from headwater.windows.settings import Options, Report, resolve_settings
from tests.kernel.generated_queries import STREAMS, Case, a_case, a_stream
from tests.optimised_evaluators import make_optimised_evaluator
from tests.reference_programs import reference_program

EX = "http://ex/"
S = EX + "s"
SEEDS = st.integers(0, 1 << 32)
some = settings(max_examples=max(25, settings().max_examples // 2))


def registered(case: Case, name: str) -> RegisteredQuery:
    plan, settled = case.plan()
    # What is new depends on who listens, and so does what has changed; what is there does not.
    steady = Report.NONEMPTY if settled.report is Report.CHANGE else settled.report
    return RegisteredQuery(replace(plan, name=name), replace(settled, emit=StreamOperator.RSTREAM, report=steady))


def long_streams(random: Random) -> dict[str, list[Element]]:
    found: dict[str, list[Element]] = {}
    for stream in STREAMS:
        parts = [(number * 3 * SECOND, a_stream(random)) for number in range(4)]
        shifted = [replace(element, time=shift + element.time) for shift, part in parts for element in part]
        shifted.sort(key=lambda element: element.time)
        found[stream] = [replace(element, position=(i,)) for i, element in enumerate(shifted)]
    return found


class Feed:
    """Tells a program the streams that it reads, each from its first element on."""

    def __init__(self, streams: dict[str, list[Element]]) -> None:
        self._streams = streams
        self._told = dict.fromkeys(streams, 0)

    def until(self, instant: int, program: Program) -> list[Answer]:
        batch: dict[str, Elements] = {}
        for stream in program.inputs:
            elements, told = self._streams[stream], self._told[stream]
            self._told[stream] = sum(element.time < instant for element in elements)
            batch[stream] = elements[told : self._told[stream]]
        return list(program.advance(batch).answers)

    def rest(self, program: Program) -> list[Answer]:
        return [*self.until(NOT_YET, program), *program.advance({}, ended=STREAMS).answers]


def of(answers: Sequence[Answer], name: str) -> list[Answer]:
    return [answer for answer in answers if answer.query == name]


def continued(program: Program, other: Program) -> Program:
    """A program of other queries that goes on where one is."""
    other.resume(program.state(), program.log)
    return other


@some
@given(SEEDS)
@example(392)
@example(694)
@example(1358)
def test_generated_queries_come_and_go(seed: int) -> None:
    random = Random(seed)
    case = a_case(random, depth=1)
    first, second, third = (registered(a_case(random, depth=1), name) for name in "abc")
    streams = long_streams(random)
    cuts = sorted(random.randrange(1, 14) * SECOND for _ in range(2))
    make = random.choice([make_optimised_evaluator, ReferenceEvaluator])
    always = Program([first, second, third], case.store(), 0, ReferenceEvaluator)
    expected = Feed(streams).rest(always)

    running = Program([first, second], case.store(), 0, make)
    feed = Feed(streams)
    found = feed.until(cuts[0], running)
    if random.randrange(2):
        running = continued(running, Program([first, third], case.store(), 0, make))
    else:
        saved = running.snapshot()
        running = Program([first, third], case.store(), 0, make)
        running.restore(saved)
    found += feed.until(cuts[1], running)
    if random.randrange(2):
        saved = running.snapshot()
        running = Program([third, first], case.store(), 0, make)
        running.restore(saved)
    found += feed.rest(running)

    assert of(found, "a") == of(expected, "a")
    assert all(answer.complete for answer in of(found, "a"))
    complete_from = running.complete_from("c")
    new = of(found, "c")
    if complete_from is not None:
        assert all(answer.complete == (answer.time >= complete_from) for answer in new)
        new = [answer for answer in new if answer.complete]
    there = [a for a in of(expected, "c") if complete_from is None or a.time >= complete_from]
    if not third.plan.windows:
        there = of(expected, "c")
    assert new == there, f"complete from {complete_from}: {third.plan.text}"


def query(text: str, name: str = "q") -> RegisteredQuery:
    plan = replace(plan_query(parse(f"PREFIX : <{EX}> {text}"), name=name), name=name)
    return RegisteredQuery(plan, resolve_settings(plan, Options()))


def windowed(spec: str, name: str = "q", body: str = "?x :p ?v", select: str = "SELECT ?x ?v") -> RegisteredQuery:
    return query(f"{select} FROM STREAM <{S}> [{spec}] WHERE {{ {body} }}", name)


def seconds(low: int, high: int, predicate: str = "p") -> dict[str, list[Element]]:
    return {
        S: [
            Element(
                second * SECOND,
                (Triple(NamedNode(EX + "x"), NamedNode(EX + predicate), Literal(str(second))),),
                None,
                (second,),
            )
            for second in range(low, high)
        ]
    }


@pytest.mark.parametrize("cut", [[(0, 31)], [(second, second + 1) for second in range(31)]], ids=["at once", "singly"])
def test_a_longer_window_is_complete_when_it_begins_behind_what_the_log_holds(cut: list[tuple[int, int]]) -> None:
    program = reference_program([windowed("RANGE 4s STEP 2s", "short")], Store())
    for low, high in cut:
        program.advance(seconds(low, high))
    oldest = min(element.time for segment in program.log for element in elements_of(segment.elements or []))
    assert oldest == 25 * SECOND, "what the short window can still show, whatever came with it"
    program = continued(
        program,
        reference_program([windowed("RANGE 4s STEP 2s", "short"), windowed("RANGE 10s STEP 2s", "long")], Store()),
    )
    complete_from = program.complete_from("long")
    answers = of(program.advance(seconds(31, 60)).answers, "long")
    assert program.complete_from("short") is None
    assert complete_from == 34 * SECOND
    assert [(a.time // SECOND, len(a.rows), a.complete) for a in answers[:4]] == [
        (30, 6, False),
        (32, 8, False),
        (34, 10, True),
        (36, 10, True),
    ]


def test_triples_that_nobody_asked_for_are_missing_from_the_log() -> None:
    program = reference_program([windowed("RANGE 10s STEP 2s", "p")], Store(), is_filtered=True)
    program.advance(seconds(0, 21))
    wide = windowed("RANGE 10s STEP 2s", "both", "?x ?any ?v")
    same = windowed("RANGE 10s STEP 2s", "one", '?x :p "17"', "SELECT ?x")
    program = continued(
        program, reference_program([windowed("RANGE 10s STEP 2s", "p"), wide, same], Store(), is_filtered=True)
    )
    assert program.complete_from("both") == 30 * SECOND
    # ?v is shown by p, so the log has the texts, too.
    assert program.complete_from("one") == 20 * SECOND
    answers = program.advance(seconds(21, 40)).answers
    assert [(a.time // SECOND, len(a.rows), a.complete) for a in of(answers, "both")][:2] == [
        (20, 0, False),
        (22, 2, False),
    ]
    assert [len(a.rows) for a in of(answers, "one")][:4] == [1, 1, 1, 1]


def test_a_window_that_counts_is_complete_when_it_is_full() -> None:
    program = reference_program([windowed("RANGE 2s STEP 2s", "short")], Store())
    for second in range(20):
        program.advance(seconds(second, second + 1))
    program = continued(
        program, reference_program([windowed("TRIPLES 5", "counts"), windowed("RANGE 2s STEP 2s", "short")], Store())
    )
    assert program.complete_from("counts") == NOT_YET
    answers = of(program.advance(seconds(20, 26)).answers, "counts")
    assert [(len(a.rows), a.complete) for a in answers] == [(3, False), (4, False), *[(5, True)] * 4]
    assert program.complete_from("counts") == next(a.time for a in answers if a.complete)


def test_a_window_that_counts_is_not_complete_before_what_came_out_of_order_has_left_it() -> None:
    def program_of(*queries: RegisteredQuery) -> Program:
        return reference_program(list(queries), Store(), delay=9 * SECOND, is_filtered=True)

    def at(*times: int) -> dict[str, list[Element]]:
        return {S: [element for time in times for element in seconds(time, time + 1, "q")[S]]}

    short, counts = windowed("RANGE 2s STEP 2s", "short"), windowed("TRIPLES 2", "counts", "?x :q ?v")
    program = program_of(short)
    # Nobody asks for :q yet, so the log has none of these.
    program.advance({S: seconds(20, 21)[S]})
    program = continued(program, program_of(short, counts))
    # They arrive later and are older than 20 s, which the query may not know.
    answers = of(program.advance(at(15, 16, 17, 30, 31, 50)).answers, "counts")
    assert {a.time // SECOND: a.complete for a in answers if a.time < 40 * SECOND} == {
        15: False,
        16: False,
        17: False,
        30: False,
        31: True,
    }


def test_a_window_without_end_is_complete_only_if_the_log_is() -> None:
    def everything() -> RegisteredQuery:
        return query(f"SELECT ?v WHERE {{ STREAM <{S}> [ALL] {{ ?x :p ?v }} }}", "all")

    program = reference_program([windowed("RANGE 2s STEP 2s", "short")], Store())
    for second in range(9):
        program.advance(seconds(second, second + 1))
    program = continued(program, reference_program([everything()], Store()))
    assert program.complete_from("all") == NOT_YET
    other = query(f"SELECT ?x ?v WHERE {{ STREAM <{S}> [ALL] {{ ?x :p ?v }} }}", "other")
    program = reference_program([everything()], Store())
    program.advance(seconds(0, 9))
    program = continued(program, reference_program([everything(), other], Store()))
    assert program.complete_from("other") == 8 * SECOND
    assert len(of(program.advance(seconds(9, 11)).answers, "other")[0].rows) == 9, "new to whoever came now"


def test_a_stream_that_nobody_reads_for_a_while_is_gone() -> None:
    program = reference_program([windowed("RANGE 9s STEP 3s", "a")], Store())
    program.advance(seconds(0, 10))
    other = query(f"SELECT ?v FROM STREAM <{EX}t> [RANGE 9s STEP 3s] WHERE {{ ?x :p ?v }}", "b")
    program = continued(program, reference_program([other], Store()))
    assert len(program.log) == 0
    program = continued(program, reference_program([other, windowed("RANGE 9s STEP 3s", "a")], Store()))
    assert program.complete_from("a") == 18 * SECOND
    assert program.complete_from("b") is None
    answers = of(program.advance(seconds(10, 20), ended=[EX + "t"]).answers, "a")
    assert [(a.time // SECOND, a.complete) for a in answers] == [(9, False), (12, False), (15, False), (18, True)]


@pytest.mark.parametrize("listens", [False, True])
def test_a_query_over_another_ones_answers(listens: bool) -> None:
    made = "REGISTER STREAM made COMPUTED EVERY 2s AS CONSTRUCT { ?x :q ?v } "
    producer = query(f"{made} FROM STREAM <{S}> [RANGE 2s STEP 2s] WHERE {{ ?x :p ?v }}", "made")
    changed = query(f"{made} FROM STREAM <{S}> [RANGE 2s STEP 2s] WHERE {{ ?x :p ?v . ?x :p ?v }}", "made")
    reader = query("SELECT ?v FROM STREAM <made> [RANGE 6s STEP 2s] WHERE { ?x :q ?v }", "reader")
    program = reference_program([producer, reader] if listens else [producer], Store())
    program.advance(seconds(0, 21))
    program = continued(program, reference_program([changed, reader] if listens else [producer, reader], Store()))
    complete_from = program.complete_from("reader")
    answers = of(program.advance(seconds(21, 41)).answers, "reader")
    assert complete_from is not None and 24 * SECOND <= complete_from <= 28 * SECOND
    assert {a.complete for a in answers} == {False, True}
    assert all(a.complete == (a.time >= complete_from) for a in answers)
    assert all(len(a.rows) == 6 for a in answers if a.complete)


def test_members_of_a_family_come_and_go() -> None:
    def one(value: int) -> RegisteredQuery:
        return windowed("RANGE 10s STEP 5s", f"q{value}", f'?x :p "{value}"', "SELECT ?x")

    alone = Program([one(n) for n in (12, 18, 23)], Store(), 0, ReferenceEvaluator)
    expected = [*alone.advance(seconds(0, 21)).answers, *alone.advance(seconds(21, 40)).answers]
    program = Program([one(12), one(18)], Store(), 0, make_optimised_evaluator, families=find_families)
    found = list(program.advance(seconds(0, 21)).answers)
    program = continued(
        program, Program([one(18), one(23)], Store(), 0, make_optimised_evaluator, families=find_families)
    )
    assert len(set(program.evaluators.values())) == 1
    assert program.complete_from("q23") == 20 * SECOND
    found += program.advance(seconds(21, 40)).answers
    gone, came = "q12", "q23"
    assert found == [a for a in expected if a.query != (came if a.time < 20 * SECOND else gone)]
    program = continued(program, Program([one(23)], Store(), 0, make_optimised_evaluator, families=find_families))
    assert program.complete_from("q23") == 20 * SECOND


def test_another_delay_does_not_open_what_was_answered() -> None:
    program = reference_program([windowed("RANGE 4s STEP 2s")], Store(), delay=0)
    program.advance(seconds(0, 11))
    saved = program.snapshot()
    later = reference_program([windowed("RANGE 4s STEP 2s")], Store(), delay=5 * SECOND)
    later.restore(saved)
    step = later.advance({S: [replace(one, position=(99,)) for one in seconds(7, 8)[S]]})
    assert len(step.late) == 1 and not step.answers
    answers = later.advance(seconds(11, 18)).answers
    assert [a.time // SECOND for a in answers] == [10]
