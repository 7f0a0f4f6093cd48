"""Patterns with one subject, matched without state, equal the reference: also when a subject comes back."""

from __future__ import annotations

import random

import pytest
from pyoxigraph import Store

from headwater.algebra.build import plan_query
from headwater.execution.answers import Answer
from headwater.execution.evaluator import Evaluator
from headwater.kernel.kernel_evaluator import KernelEvaluator
from headwater.kernel.operators.operator import Operator
from headwater.kernel.operators.star import StarOperator
from headwater.language.parser import parse
from headwater.optimizer.optimise import optimise
from headwater.reference.reference_evaluator import ReferenceEvaluator
from headwater.terms.model import SECOND, Element, Literal, NamedNode, Triple
from headwater.windows.settings import Content, Options, resolve_settings

QUERIES = (
    """SELECT ?o ?s ?v WHERE {
         STREAM <s> [RANGE 4s SLIDE 2s] { ?o a <R> . ?o <by> ?s . ?o <value> ?v FILTER(?v > 2) } }""",
    """SELECT ?s (COUNT(*) AS ?n) WHERE {
         STREAM <s> [RANGE 6s SLIDE 1s] { ?o <by> ?s . ?o <value> ?v } } GROUP BY ?s""",
    """SELECT ?o ?p ?v WHERE {
         STREAM <s> [RANGE 3s SLIDE 3s] { ?o <by> ?s . ?o <value> ?v . ?p <by> ?s . ?p a <R> FILTER(?o != ?p) } }""",
)


def observation(number: int, time: int, chance: random.Random) -> list[Element]:
    """An observation as one element, or each of its triples as one; some values occur twice."""
    subject = NamedNode(f"http://x/o{number}")
    triples = [Triple(subject, NamedNode("http://x/by"), NamedNode(f"http://x/s{chance.randrange(3)}"))]
    triples += [
        Triple(subject, NamedNode("http://x/value"), Literal(chance.randrange(5))) for _ in range(chance.randrange(3))
    ]
    if chance.random() < 0.7:
        triples.append(
            Triple(subject, NamedNode("http://www.w3.org/1999/02/22-rdf-syntax-ns#type"), NamedNode("http://x/R"))
        )
    if chance.random() < 0.5:
        return [Element(time, tuple(triples))]
    return [Element(time, (triple,)) for triple in triples]


def stream(seed: int, *, comes_back: bool) -> list[Element]:
    """Observations in time order; with `comes_back`, some are made of a subject that was there before."""
    chance = random.Random(seed)
    elements: list[Element] = []
    for number in range(60):
        is_old = comes_back and number > 20 and chance.random() < 0.2
        subject = chance.randrange(number) if is_old else number
        elements += observation(subject, 1 + number * SECOND // 3, chance)
    return elements


def operators_of(root: Operator) -> list[Operator]:
    return [root, *(below for one in root.inputs for below in operators_of(one))]


def answers_of(evaluator: Evaluator, elements: list[Element], size: int) -> list[Answer]:
    answers: list[Answer] = []
    for low in range(0, len(elements), size):
        some = elements[low : low + size]
        answers += evaluator.advance({evaluator.keys[0]: some}, some[-1].time)
    return [*answers, *evaluator.advance({}, None, ended=True)]


def contents(answers: list[Answer]) -> list[tuple[int, list[str]]]:
    return [(answer.time, sorted(map(str, answer.rows))) for answer in answers]


@pytest.mark.parametrize("content", list(Content))
@pytest.mark.parametrize("comes_back", [False, True])
@pytest.mark.parametrize("text", QUERIES)
def test_a_star_equals_the_reference(text: str, comes_back: bool, content: Content) -> None:
    plan = optimise(plan_query(parse(f"BASE <http://x/> {text}"))).plan
    settings = resolve_settings(plan, Options(content=content))
    for seed in range(2):
        elements = stream(seed, comes_back=comes_back)
        expected = contents(answers_of(ReferenceEvaluator(plan, settings, Store()), elements, len(elements)))
        assert any(rows for _, rows in expected)
        for size in (7, len(elements)):
            kernel = KernelEvaluator(plan, settings, Store())
            assert any(isinstance(one, StarOperator) for one in operators_of(kernel.root))
            assert contents(answers_of(kernel, elements, size)) == expected
            has_stars = any(isinstance(one, StarOperator) for one in operators_of(kernel.root))
            assert has_stars is not comes_back
