"""Static parts without a common variable are views of their own where streams lead to each of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from random import Random

import pytest
from pyoxigraph import Store

import headwater as hw
from headwater.algebra.build import plan_query
from headwater.execution.answers import Answer
from headwater.kernel.evaluator_choice import choose_kernel_or_reference
from headwater.language.parser import parse
from headwater.terms.model import Literal, NamedNode, Triple
from headwater.windows.settings import resolve_settings

EX = "http://example.org/"
STREAMS = "STREAM :gates [RANGE 5s] { ?gate :registers ?car } STREAM :cameras [RANGE 3s] { ?camera :registers ?car }"
PARTS = {
    "FILTER": ("?gate :in ?a . ?camera :at ?b FILTER(?a != ?b)", 2),
    "two FILTERs": ("?gate :in ?a . ?camera :at ?b FILTER(?a != ?b) FILTER(?a < ?b)", 2),
    "a nested group": ("{ ?gate :in ?a . ?camera :at ?b FILTER(?a != ?b) }", 2),
    "BIND": ("{ ?gate :in ?a . ?camera :at ?b BIND(?a + ?b AS ?c) }", 2),
    "BIND and FILTER": ("{ ?gate :in ?a . ?camera :at ?b BIND(?a + ?b AS ?c) FILTER(?c > 3) }", 2),
    "BIND to what a stream has": ("{ ?gate :in ?a . ?camera :at ?b BIND(IRI('car1') AS ?car) }", 1),
    "no stream leads there": ("{ ?gate :in ?a . ?other :at ?b FILTER(?a != ?b) }", 1),
    "a variable that may be unbound": (
        "{ ?gate :in ?a . ?camera :at ?b OPTIONAL { ?camera :of ?c } FILTER(?a != ?b && COALESCE(?c, ?a) = ?a) }",
        1,
    ),
}


def node(name: str) -> NamedNode:
    return NamedNode(EX + name)


def static(count: int) -> Iterable[Triple]:
    for number in range(count):
        yield Triple(node(f"gate{number}"), node("in"), Literal(number % 7))
        yield Triple(node(f"camera{number}"), node("at"), Literal(number % 5))
        if number % 3:
            yield Triple(node(f"camera{number}"), node("of"), Literal(number % 2))


def answers_of(text: str, evaluator: str, count: int) -> list[Answer]:
    engine = hw.Engine(in_process=True, evaluator=evaluator)  # type: ignore[arg-type]
    for kind in ("gate", "camera"):
        random = Random(kind)
        elements = [
            (
                1_000_000 * i,
                [
                    Triple(
                        node(f"{kind}{random.randrange(count)}"), node("registers"), node(f"car{random.randrange(3)}")
                    )
                ],
            )
            for i in range(1, 12)
        ]
        engine.stream(f"{EX}{kind}s", hw.memory(elements))
    engine.dataset(list(static(count)))
    engine.register(f"BASE <{EX}> PREFIX : <{EX}> {text}", name="q")
    answers: list[Answer] = []
    engine.run(on_batch=answers.extend)
    return answers


@pytest.mark.parametrize("name", PARTS)
def test_answers_are_those_of_the_definition(name: str) -> None:
    body, views = PARTS[name]
    text = f"SELECT * WHERE {{ {STREAMS} {body} }}"
    plan = plan_query(parse(f"PREFIX : <{EX}> {text}"))
    choice = choose_kernel_or_reference(plan, resolve_settings(plan), Store())
    assert choice.reason is None
    assert len(choice.static_parts) == views
    found, expected = answers_of(text, "auto", 10), answers_of(text, "reference", 10)
    assert [(one.time, Counter(one.rows)) for one in found] == [(one.time, Counter(one.rows)) for one in expected]
    assert any(one.rows for one in expected)


def test_large_products_are_not_made() -> None:
    """5,000 gates and 5,000 cameras are 25 million pairs: more rows than the query may have in memory."""
    text = f"SELECT ?car WHERE {{ {STREAMS} {PARTS['FILTER'][0]} }}"
    assert any(one.rows for one in answers_of(text, "auto", 5000))
