"""Ticks are skipped while a window is empty without which there is no result, and the answers are the same."""

from __future__ import annotations

from dataclasses import replace

import pytest
from pyoxigraph import Quad, Store

from headwater.algebra.build import plan_query
from headwater.execution.answers import Answer
from headwater.execution.evaluator import Evaluator
from headwater.kernel import kernel_evaluator as kernel
from headwater.kernel.kernel_evaluator import KernelEvaluator
from headwater.language.parser import parse
from headwater.language.stream_clauses import StreamOperator
from headwater.reference.reference_evaluator import ReferenceEvaluator
from headwater.terms.model import MILLISECOND, SECOND, Element, NamedNode, Triple
from headwater.windows.settings import Content, Options, resolve_settings

STREAM = "http://example.org/s"
QUERY = f"""SELECT ?a ?b ?name WHERE {{
  STREAM <{STREAM}> [NOW] {{ ?a <urn:at> ?place }}
  STREAM <{STREAM}> [RANGE 1s] {{ ?b <urn:at> ?place }}
  ?place <urn:name> ?name }}"""
NAME = NamedNode("urn:name")


def seen(number: int, place: int) -> Element:
    triple = Triple(NamedNode(f"urn:p{number // 2 % 4}"), NamedNode("urn:at"), NamedNode(f"urn:place{place}"))
    return Element(number * 100 * MILLISECOND, (triple,))


def named(place: int, name: str) -> Quad:
    return Quad(NamedNode(f"urn:place{place}"), NAME, NamedNode(f"urn:{name}"))


# The same person twice in a row: what went in between is news when it comes back.
ELEMENTS = [seen(number, (number // 2) % 3) for number in range(40)]


def places() -> Store:
    store = Store()
    store.extend([named(0, "hall"), named(1, "foyer"), named(2, "garden")])
    return store


def made(kind: type[Evaluator], store: Store, emit: StreamOperator = StreamOperator.ISTREAM) -> Evaluator:
    plan = plan_query(parse(QUERY))
    return kind(plan, resolve_settings(plan, Options(emit=emit)), store)  # type: ignore[call-arg]


def count_advances(evaluator: KernelEvaluator) -> list[int]:
    counted = [0]
    advance = evaluator.root.advance

    def counting() -> object:
        counted[0] += 1
        return advance()

    evaluator.root.advance = counting  # type: ignore[method-assign, assignment]
    return counted


def one_by_one(evaluator: Evaluator, elements: list[Element]) -> list[Answer]:
    key = evaluator.keys[0]
    return [answer for one in elements for answer in evaluator.advance({key: [one]}, one.time + 1)]


def test_only_ticks_with_something_in_view_are_evaluated() -> None:
    expected = one_by_one(made(ReferenceEvaluator, places()), ELEMENTS)
    evaluator = made(KernelEvaluator, places())
    assert isinstance(evaluator, KernelEvaluator)
    counted = count_advances(evaluator)
    assert one_by_one(evaluator, ELEMENTS) == expected
    assert len(expected) == len(ELEMENTS) == counted[0]


@pytest.mark.parametrize("emit", [StreamOperator.DSTREAM, StreamOperator.RSTREAM])
def test_where_there_is_something_to_say_no_tick_is_skipped(emit: StreamOperator) -> None:
    expected = one_by_one(made(ReferenceEvaluator, places(), emit), ELEMENTS)
    evaluator = made(KernelEvaluator, places(), emit)
    assert isinstance(evaluator, KernelEvaluator)
    counted = count_advances(evaluator)
    assert one_by_one(evaluator, ELEMENTS) == expected
    assert counted[0] > len(ELEMENTS)


def test_windows_go_on_after_many_ticks(monkeypatch: pytest.MonkeyPatch) -> None:
    """What left a window is forgotten even if the other one stays empty."""
    monkeypatch.setattr(kernel, "_MOST_SKIPPED_TICKS", 3)
    monkeypatch.setattr(KernelEvaluator, "_takes_runs", False)
    evaluator = made(KernelEvaluator, places())
    assert isinstance(evaluator, KernelEvaluator)
    key = evaluator.keys[0]
    evaluator.advance({key: ELEMENTS}, None)
    counted = count_advances(evaluator)
    expected = made(ReferenceEvaluator, places())
    expected.advance({key: ELEMENTS}, None)
    assert evaluator.advance({}, None, ended=True) == expected.advance({}, None, ended=True)
    assert counted[0] > len(ELEMENTS)
    assert evaluator.size().rows == 0


def test_data_that_changes_after_a_tick_that_was_skipped() -> None:
    """The old place is renamed while nobody is in view: the news are those of the person who comes next."""
    stores = places(), places()
    evaluators = made(KernelEvaluator, stores[0]), made(ReferenceEvaluator, stores[1])
    answers: tuple[list[Answer], list[Answer]] = ([], [])
    for evaluator, store, found in zip(evaluators, stores, answers, strict=True):
        key = evaluator.keys[0]
        for number, one in enumerate(ELEMENTS):
            found += evaluator.advance({key: [one]}, one.time + 50 * MILLISECOND)
            if number % 5 == 2:
                evaluator.prepare_static_change()
                before, after = ("hall", "room") if number % 2 else ("room", "hall")
                store.remove(named(0, before))
                store.add(named(0, after))
                evaluator.apply_static_change()
    assert answers[0] == answers[1]
    assert any(name.value == "urn:room" for answer in answers[0] for *_, name in answer.rows)  # type: ignore[union-attr]


def test_a_state_that_is_saved_after_such_a_tick() -> None:
    expected = one_by_one(made(ReferenceEvaluator, places()), ELEMENTS)
    before = made(KernelEvaluator, places())
    key = before.keys[0]
    found: list[Answer] = []
    for one in ELEMENTS[:20]:
        found += before.advance({key: [one]}, one.time + 50 * MILLISECOND)
    after = made(KernelEvaluator, places())
    retained = [Element(one.time, one.triples, position=(number,)) for number, one in enumerate(ELEMENTS[:20])]
    after.restore(before.state(), {key: retained})
    for one in ELEMENTS[20:]:
        found += after.advance({key: [one]}, one.time + 1)
    assert [(one.time, one.rows) for one in found] == [(one.time, one.rows) for one in expected]


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (Content.BAG, f"SELECT DISTINCT ?a WHERE {{ STREAM <{STREAM}> [NOW] {{ ?a <urn:at> ?p . ?b <urn:at> ?p }} }}"),
        (Content.SET, f"SELECT ?a WHERE {{ STREAM <{STREAM}> [RANGE 1s] {{ ?a <urn:at> ?p . ?b <urn:at> ?p }} }}"),
    ],
    ids=["DISTINCT over a join", "a join of sets"],
)
def test_what_comes_back_after_a_tick_that_was_skipped_is_new_also_where_equal_rows_are_one(
    content: Content, text: str
) -> None:
    """After so many small ticks the join has tables, where a row that leaves and comes in one step is no news."""
    elements = [replace(seen(0, 0), time=number * 2 * SECOND) for number in range(30)]
    answers: list[list[Answer]] = []
    for kind in (ReferenceEvaluator, KernelEvaluator):
        plan = plan_query(parse(text))
        evaluator: Evaluator = kind(plan, resolve_settings(plan, Options(content=content)), Store())
        found: list[Answer] = []
        for first in range(0, len(elements), 3):
            found += evaluator.advance({evaluator.keys[0]: elements[first : first + 3]}, elements[first].time)
        answers.append([*found, *evaluator.advance({}, None, ended=True)])
    assert answers[0] == answers[1]
    assert [len(answer.rows) for answer in answers[1]] == [1] * len(elements)
