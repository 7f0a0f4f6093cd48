"""With hashes of a few bits, so that terms collide, answers are those of the definition without what was left out.

A failure names the number of its case; `check_collisions(number, collide)` runs it alone.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from random import Random

import pytest

from headwater.execution.id_owners import IdOwners
from headwater.execution.program import Program
from headwater.execution.program_steps import StepResult
from headwater.execution.registered import RegisteredQuery
from headwater.kernel.compiling.unsupported import UnsupportedByKernel
from headwater.reference.reference_evaluator import ReferenceEvaluator
from headwater.terms.element_columns import ElementColumns
from headwater.terms.ids.hash_collisions import HashCollision
from headwater.terms.model import Element
from headwater.windows.element_sequences import Elements, elements_of
from tests.kernel.generated_queries import STREAMS, a_case
from tests.kernel.generated_runs import Way, compared, kernel_answers

BITS = 3
"""Which bits of the hash they are differs from case to case: the terms of the cases are few, and always the same."""
CASES = 40
LEAST_COLLISIONS = 4
_WAYS = 0xC0111DE


def check_collisions(number: int, collide: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> int | None:
    """How many elements lost statements in a case in which both agree; None where the query itself has a collision."""
    case = a_case(Random(number))
    plan, settings = case.plan()
    registered = RegisteredQuery(plan, settings)
    random = Random(number ^ _WAYS)
    way = Way.of(random)
    lost: dict[tuple[str, tuple[int, ...]], Element] = {}
    admit = IdOwners.admit

    def record(self: IdOwners, stream: str, elements: Elements, step: StepResult) -> Elements:
        before = len(step.colliding)
        kept = admit(self, stream, elements, step)
        left_out = {one.position for _, one in step.colliding[before:]}
        lost.update({(stream, one.position): one for one in elements_of(kept) if one.position in left_out})
        return kept

    collide(BITS, seed=number)
    try:
        with monkeypatch.context() as patched:
            patched.setattr(IdOwners, "admit", record)
            found = kernel_answers(case, registered, way, random)
    except (UnsupportedByKernel, HashCollision):
        return None
    finally:
        collide(63)
    if any(answer.suspended is not None for answer in found):
        return None
    left = {
        stream: tuple(lost.get((stream, one.position), one) for one in elements)
        for stream, elements in case.elements.items()
    }
    # As columns: an element that has lost its last statement is still one.
    batch: dict[str, Elements] = {stream: ElementColumns.of(elements) for stream, elements in left.items()}
    program = Program([registered], case.store(), 0, ReferenceEvaluator)
    expected = list(program.advance(batch, ended=list(STREAMS)).answers)
    assert [*map(compared, found)] == [*map(compared, expected)], f"case {number}, {way}: {case.text}"
    return len(lost)


def test_generated_cases_with_collisions(collide: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
    cases = collisions = 0
    for number in count(1):
        lost = check_collisions(number, collide, monkeypatch)
        if lost is not None:
            cases, collisions = cases + 1, collisions + (lost > 0)
        if cases == CASES:
            break
    assert collisions >= LEAST_COLLISIONS
