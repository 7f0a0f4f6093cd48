"""Queries with comparisons between patterns equal the reference, with ordered indexes from the first pair on."""

from __future__ import annotations

import random

import pytest
from pyoxigraph import Store

from headwater.algebra.build import plan_query
from headwater.execution.answers import Answer
from headwater.kernel.joins import range_choice
from headwater.kernel.kernel_evaluator import KernelEvaluator
from headwater.language.parser import parse
from headwater.reference.reference_evaluator import ReferenceEvaluator
from headwater.terms.model import SECOND, Element, NamedNode, Term, Triple
from headwater.windows.settings import resolve_settings
from tests.kernel.test_range_joins import TERMS

STREAM = "urn:s"
WINDOW = f"STREAM <{STREAM}> [RANGE 6s SLIDE 1s]"
XSD_PREFIX = "PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>"
CONDITIONS = (
    "?v < ?w",
    "?v <= ?w && ?w <= ?v + 1",
    "?w - ?v < 2 && ?v - ?w < 2",
    "?v = ?w",
    "?v > ?w || ?v = 1",
    "?w > ?v && ?w <= ?v + 'PT13H'^^xsd:dayTimeDuration",
    "?w - 1 >= ?v + 0.5",
    "?w * 2 > ?v",
    "timestamp(?w) > timestamp(?v) && timestamp(?w) <= timestamp(?v) + 1000",
    "?w > ?v && EXISTS { GRAPH <urn:g> { ?x <urn:z> ?z } }",
)


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize("batch", [1, 24])
def test_comparisons_between_patterns(
    condition: str, shared: bool, batch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(range_choice, "_PAIRS_TO_REVIEW", 1)
    monkeypatch.setattr(range_choice, "_LEVEL_NANOSECONDS", 0.0)
    y = "?x" if shared else "?y"
    text = f"{XSD_PREFIX} SELECT ?v ?w WHERE {{ {WINDOW} {{ ?x <urn:a> ?v . {y} <urn:b> ?w }} FILTER({condition}) }}"
    plan = plan_query(parse(text), streams=[STREAM])
    settings = resolve_settings(plan)
    draw = random.Random(f"{condition}{shared}")
    terms: list[Term] = list(TERMS)
    elements = [
        Element(
            second * SECOND,
            tuple(
                Triple(NamedNode(f"urn:x{draw.randrange(2)}"), NamedNode(f"urn:{p}"), draw.choice(terms))
                for p in "aabb"
            ),
        )
        for second in range(1, 25)
    ]
    answers = []
    for make in (ReferenceEvaluator, KernelEvaluator):
        evaluator = make(plan, settings, Store())
        found: list[Answer] = []
        for low in range(0, len(elements), batch):
            some = elements[low : low + batch]
            found += evaluator.advance({key: some for key in evaluator.keys}, some[-1].time)
        found += evaluator.advance({}, None, ended=True)
        answers.append([(answer.time, sorted(map(str, answer.rows))) for answer in found])
    assert answers[0] == answers[1]
    assert any(rows for _, rows in answers[0]) or shared or "EXISTS" in condition
