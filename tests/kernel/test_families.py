"""Queries that differ in constants say together what each says alone: on generated queries, in any cut, after restarts,
and while members come and go."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from random import Random

from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from pyoxigraph import Store

from headwater.algebra.plan import QueryPlan
from headwater.algebra.query_families import ConstantTerm, form_of, replace_constants
from headwater.execution.answers import Answer
from headwater.execution.evaluator import Evaluator
from headwater.execution.program import Program
from headwater.execution.registered import RegisteredQuery
from headwater.kernel.compiling.unsupported import UnsupportedByKernel
from headwater.kernel.families.family_evaluator import FamilyEvaluator, can_be_member, find_families
from headwater.language.stream_clauses import StreamOperator
from headwater.optimizer.rewrites.bind_equalities import is_equal_only_to_itself
from headwater.reference.reference_evaluator import ReferenceEvaluator
from headwater.terms.model import Element, NamedNode
from headwater.terms.stored_forms import is_kept
from tests.kernel.generated_queries import OBJECTS, RESOURCES, STREAMS, Case, a_case
from tests.optimised_evaluators import make_optimised_evaluator

SEEDS = st.integers(0, 1 << 32)
# A third of what the profile says: a case is some queries, each evaluated twice.
some = settings(max_examples=max(10, settings().max_examples // 3))


def other_constant(random: Random, term: ConstantTerm) -> ConstantTerm:
    return random.choice(RESOURCES) if isinstance(term, NamedNode) else random.choice(OBJECTS)


def variant(plan: QueryPlan, name: str, change: Callable[[ConstantTerm], ConstantTerm]) -> QueryPlan:
    return replace(plan, name=name, root=replace_constants(plan.root, change))


def variants(case: Case, random: Random) -> list[RegisteredQuery]:
    """A query several times, with other constants in about half of the places."""
    plan, settled = case.plan()
    assume(can_be_member(plan) and form_of(plan)[1])

    def change(term: ConstantTerm) -> ConstantTerm:
        return other_constant(random, term) if random.randrange(2) else term

    return [RegisteredQuery(variant(plan, f"q{i}", change), settled) for i in range(random.randint(2, 4))]


def family_of(queries: Sequence[RegisteredQuery], static: Store) -> FamilyEvaluator:
    try:
        return FamilyEvaluator(queries, static)
    except UnsupportedByKernel:
        assume(False)
        raise


def whole_streams(case: Case) -> dict[str, list[Element]]:
    return {stream: list(elements) for stream, elements in case.elements.items()}


def batches(case: Case, random: Random) -> Iterator[dict[str, list[Element]]]:
    rest = whole_streams(case)
    while any(rest.values()):
        size = random.randint(1, 4)
        yield {stream: elements[:size] for stream, elements in rest.items()}
        rest = {stream: elements[size:] for stream, elements in rest.items()}


@some
@given(SEEDS)
@example(822945)
def test_together_as_alone(seed: int) -> None:
    random = Random(seed)
    case = a_case(random, depth=1 + seed % 2)
    queries = variants(case, random)
    family_of(queries, case.store())
    together = Program(queries, case.store(), 0, make_optimised_evaluator, families=find_families)
    # Queries whose equalities cannot all be looked up are apart: in another family, or alone.
    assert any(isinstance(one, FamilyEvaluator) for one in together.evaluators.values())
    alone = Program(queries, case.store(), 0, ReferenceEvaluator)
    found, expected = (one.advance(whole_streams(case), ended=STREAMS).answers for one in (together, alone))
    assert found == expected


@some
@given(SEEDS)
def test_in_pieces_with_restarts(seed: int) -> None:
    random = Random(seed)
    case = a_case(random, depth=1 + seed % 2)
    queries = variants(case, random)
    family_of(queries, case.store())

    def program() -> Program:
        return Program(queries, case.store(), 0, make_optimised_evaluator, families=find_families)

    whole = program().advance(whole_streams(case), ended=STREAMS).answers
    running, found = program(), list[Answer]()
    for batch in batches(case, random):
        found += running.advance(batch).answers
        if random.randrange(2):
            saved = running.snapshot()
            running = program()
            running.restore(saved)
    found += running.advance({}, ended=STREAMS).answers
    assert _in_order(list(found)) == _in_order(list(whole))


def _in_order(answers: list[Answer]) -> list[Answer]:
    return sorted(answers, key=lambda answer: (answer.time, answer.query, answer.part))


class Driven:
    """An evaluator that is told everything up to some instants, one after the other."""

    def __init__(self, evaluator: Evaluator) -> None:
        self.evaluator = evaluator

    def until(self, low: int, high: int, case: Case) -> list[Answer]:
        batch = {
            key: [element for element in case.elements.get(key[0], ()) if low <= element.time < high]
            for key in dict.fromkeys(self.evaluator.keys)
        }
        return list(self.evaluator.advance(batch, high))


@some
@given(SEEDS)
def test_members_come_and_go(seed: int) -> None:
    random = Random(seed)
    case = a_case(random, depth=1 + seed % 2)
    queries = variants(case, random)
    # What is new depends on who listens; what is there does not.
    settled = replace(queries[0].settings, emit=StreamOperator.RSTREAM)
    queries = [RegisteredQuery(query.plan, settled) for query in queries]
    family = family_of(queries, case.store())
    together = Driven(family)
    alone = {query.plan.name: Driven(make_optimised_evaluator(query.plan, settled, case.store())) for query in queries}
    present = {query.plan.name for query in queries}
    low = -1
    for number, high in enumerate([500_000, 1_000_001, 1_600_000, 2_300_000, 6_000_000]):
        found = together.until(low, high, case)
        expected = {name: one.until(low, high, case) for name, one in alone.items()}
        low = high
        for name in expected:
            mine = [answer for answer in found if answer.query == name]
            assert mine == (expected[name] if name in present else [])
            since = family.complete_from(name)
            assert since is None or all(answer.time >= since for answer in mine)
        if present and random.randrange(2):
            name = random.choice(sorted(present))
            family.remove(name)
            present.remove(name)
        if random.randrange(3):
            new = _new_member(family, queries, f"new{number}", random)
            family.add([new])
            present.add(new.plan.name)
            late = Driven(make_optimised_evaluator(new.plan, settled, case.store()))
            late.until(-1, high, case)
            alone[new.plan.name] = late


def _new_member(
    family: FamilyEvaluator, queries: Sequence[RegisteredQuery], name: str, random: Random
) -> RegisteredQuery:
    """A query with other constants where the first ones differ; of their kind, for the kind decides on the form."""
    first, *others = (form_of(query.plan)[1] for query in queries)
    alike = [[one for one in OBJECTS if _kind(one) == _kind(term)] for term in first]
    differ = [any(other[place] != term for other in others) for place, term in enumerate(first)]
    chosen = iter(random.choice(alike[place]) if differ[place] else term for place, term in enumerate(first))
    query = queries[0]
    return RegisteredQuery(variant(query.plan, name, lambda _: next(chosen)), query.settings)


def _kind(term: ConstantTerm) -> object:
    """What decides whether a constant that something must be equal to can stand in a pattern instead."""
    return type(term), isinstance(term, NamedNode) or is_kept(term), is_equal_only_to_itself(term)
