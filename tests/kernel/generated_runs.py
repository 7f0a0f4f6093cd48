"""Generated cases run twice: by the definition, all at once, and by the kernel, cut up in some way.

A case is a number: it decides the query, the streams and the way in which the kernel gets them. Whatever the way, the
answers are the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from random import Random

from headwater.execution.answers import Answer
from headwater.execution.program import Program
from headwater.execution.query_evaluators import MakeEvaluator
from headwater.execution.registered import RegisteredQuery
from headwater.kernel.compiling.unsupported import UnsupportedByKernel
from headwater.kernel.evaluator_choice import with_optimisation
from headwater.kernel.kernel_evaluator import KernelEvaluator
from headwater.optimizer.statistics import Statistics
from headwater.reference.reference_evaluator import ReferenceEvaluator
from headwater.terms.element_columns import ElementColumns
from headwater.terms.model import Element
from headwater.terms.statements import graph_term
from headwater.terms.timed_graphs import GENERATED_AT_TIME
from headwater.windows.element_sequences import Elements
from tests.kernel.generated_queries import NAMES, RESOURCES, STREAMS, Case, a_case

_NAMES = {graph_term(name) for name in NAMES if name is not None} - set(RESOURCES)
_WAYS = 0x5EED
"""Turns the number of a case into that of its way."""


@dataclass(frozen=True)
class Way:
    """How the kernel gets the streams of a case.

    `cut` is how many elements a piece has at most, None for all; `columns` says that they come as columns, `sweeps`
    that every tick forgets the terms that are not in use, `restarts` that each piece goes to a new process, `optimises`
    that the plan is rewritten first.
    """

    cut: int | None
    columns: bool
    sweeps: bool
    restarts: bool
    optimises: bool

    @classmethod
    def of(cls, random: Random) -> Way:
        cut = random.choice([None, 1, 1, 2, 3, 5])
        restarts = cut is not None and cut > 1 and random.randrange(4) == 0
        columns, sweeps, optimises = (random.randrange(2) == 0 for _ in range(3))
        return cls(cut, columns, sweeps, restarts, optimises)


class SweepingEvaluator(KernelEvaluator):
    """The kernel with a vocabulary that is swept at each tick."""

    def _move(self, tick: int, part: int) -> bool:
        changed = super()._move(tick, part)
        self.vocabulary.sweep(self._ids_in_use())
        return changed


def kernel_answers(case: Case, registered: RegisteredQuery, way: Way, random: Random) -> list[Answer]:
    def program() -> Program:
        evaluator: MakeEvaluator = SweepingEvaluator if way.sweeps else KernelEvaluator
        static = case.store()
        if way.optimises:
            evaluator = with_optimisation(evaluator, Statistics.of(static.quads_for_pattern(None, None, None)))
        return Program([registered], static, 0, evaluator)

    running = program()
    answers: list[Answer] = []
    for piece in pieces(case, way, random):
        answers += running.advance({stream: _as(elements, way) for stream, elements in piece.items()}).answers
        if way.restarts:
            saved = running.snapshot()
            running = program()
            running.restore(saved)
    return [*answers, *running.advance({}, ended=list(STREAMS)).answers]


def pieces(case: Case, way: Way, random: Random) -> Iterator[dict[str, list[Element]]]:
    """Parts of all streams; a part may have nothing of a stream."""
    left = {stream: list(elements) for stream, elements in case.elements.items()}
    while any(left.values()):
        piece: dict[str, list[Element]] = {}
        for stream, elements in left.items():
            size = len(elements) if way.cut is None else random.randint(0, way.cut)
            piece[stream], left[stream] = elements[:size], elements[size:]
        yield piece


def _as(elements: list[Element], way: Way) -> Elements:
    return ElementColumns.of(elements) if way.columns else elements


def reference_answers(case: Case, registered: RegisteredQuery) -> list[Answer]:
    program = Program([registered], case.store(), 0, ReferenceEvaluator)
    batch: dict[str, Elements] = {stream: list(elements) for stream, elements in case.elements.items()}
    return list(program.advance(batch, ended=list(STREAMS)).answers)


def compared(answer: Answer) -> object:
    """All that an answer says, but for how far the streams had come when it was given."""
    return (
        answer.time,
        answer.part,
        answer.kind,
        answer.operator,
        answer.variables,
        answer.rows,
        answer.triples,
        answer.boolean,
        answer.inputs,
        answer.suspended,
    )


def check_case(number: int, *, named: bool = False) -> Counter[str] | None:
    """What there was to see in a case in which both agree; None where the kernel leaves the query to the reference.

    With `named`, the streams are of named graphs, and queries read them.
    """
    case = a_case(Random(number), named=named)
    plan, settings = case.plan()
    registered = RegisteredQuery(plan, settings)
    random = Random(number ^ _WAYS)
    way = Way.of(random)
    try:
        found = kernel_answers(case, registered, way, random)
    except UnsupportedByKernel:
        return None
    except Exception as error:
        error.add_note(f"case {number}, {way}: {case.text}")
        raise
    expected = reference_answers(case, registered)
    assert [*map(compared, found)] == [*map(compared, expected)], f"case {number}, {way}: {case.text}"
    return seen(case, expected)


def check_cases(wanted: int, first: int, *, named: bool = False) -> Counter[str]:
    """So many cases in which both evaluators take part, from a number on; gives in how many there was what to see."""
    total: Counter[str] = Counter()
    for number in count(first):
        there_was = check_case(number, named=named)
        if there_was is not None:
            total.update(+there_was)
            total["cases"] += 1
            if total["cases"] == wanted:
                break
    return total


def seen(case: Case, answers: list[Answer]) -> Counter[str]:
    """What a case shows, each once."""
    streams = case.elements.values()
    operates = any(operator in case.text for operator in ("+", "*", " < ", " >= "))
    rows = [row for answer in answers for row in answer.rows]
    found = {
        "answers": any(not answer.is_empty for answer in answers),
        "empty windows": any(not view.items for answer in answers for view in answer.inputs),
        "equal times": any(len({e.time for e in elements}) < len(elements) for elements in streams),
        "duplicates": any(
            len({t for e in elements for t in e.triples}) < sum(len(e.triples) for e in elements)
            for elements in streams
        ),
        "unbound variables": any(term is None for row in rows for term in row),
        "operands that may be no numbers": operates,
        "graphs of windows": "GRAPH ?h" in case.text or "GRAPH :n" in case.text or "GRAPH ?x" in case.text,
        "times of graphs": GENERATED_AT_TIME.value in case.text,
        "names of graphs in answers": any(term in _NAMES for row in rows for term in row),
    }
    return Counter({what: 1 for what, is_there in found.items() if is_there})
