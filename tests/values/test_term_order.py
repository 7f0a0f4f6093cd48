"""ORDER BY has one order of all terms, in the kernel and in the reference, whatever else is sorted."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import Store

from headwater.algebra.build import plan_query
from headwater.execution.program import Program
from headwater.execution.query_evaluators import MakeEvaluator
from headwater.execution.registered import RegisteredQuery
from headwater.kernel.kernel_evaluator import KernelEvaluator
from headwater.language.parser import parse
from headwater.reference.reference_evaluator import ReferenceEvaluator
from headwater.terms.model import XSD, Element, Literal, NamedNode, Term, Triple
from headwater.values.order_texts import _number_text, _string_text, order_text
from headwater.values.term_order import order_key
from headwater.windows.settings import resolve_settings

EX = "http://example.org/"
STREAM = EX + "s"


def typed(text: str, kind: str) -> Literal:
    return Literal(text, datatype=NamedNode(XSD + kind))


TERMS: list[NamedNode | Literal] = [
    *(typed(text, "integer") for text in ("9", "10", "-1", "-10", "-9", "02", "2", "x", "9" * 30)),
    *(typed(text, "decimal") for text in ("1.5", "-1.5", "2.0", "0.000000000000000001")),
    *(typed(text, "double") for text in ("NaN", "INF", "-INF", "1e300", "5e-324", "-5e-324", "0.1")),
    typed("0.1", "float"),
    *map(Literal, ("1x", "10", "9", "", "one", "a\x01b")),
    *(Literal("one", language=language) for language in ("de", "en")),
    *(typed(text, "boolean") for text in ("true", "0", "yes")),
    *(typed(text, "date") for text in ("2020-02-29", "2020-02-29Z", "2020-02-28+10:00", "2020-02-30")),
    *(
        typed(text, "dateTime")
        for text in ("2020-03-01T01:00:00", "2020-03-01T05:00:00+05:00", "2020-03-01T00:30:00Z", "2020-02-29T24:00:00Z")
    ),
    *(typed(text, "time") for text in ("01:00:00", "01:00:00Z", "00:30:00.5-01:00")),
    *(typed(text, "duration") for text in ("P1M", "P30D", "P31D", "-PT5S", "P" + "9" * 5000 + "Y")),
    typed("P1M", "yearMonthDuration"),
    typed("PT5S", "dayTimeDuration"),
    typed("9" * 5000 + "-01-01", "date"),
    *(typed(text, "gYear") for text in ("2020", "2021Z")),
    Literal("1", datatype=NamedNode(EX + "type")),
    *(NamedNode(EX + name) for name in "ba"),
]


def sign(first: Any, second: Any) -> int:
    return int(first > second) - int(first < second)


def test_texts_are_in_the_order_of_keys() -> None:
    for first, second in combinations(TERMS, 2):
        expected = sign(order_key(first), order_key(second))
        assert sign(order_text(first), order_text(second)) == expected, (first, second)


@given(
    st.lists(
        st.one_of(
            st.integers(),
            st.decimals(allow_nan=False, allow_infinity=False),
            st.floats(allow_nan=False, allow_infinity=False),
        ),
        min_size=2,
        max_size=2,
    )
)
def test_texts_of_numbers_are_in_their_order(numbers: list[float]) -> None:
    first, second = map(Fraction, numbers)
    assert sign(_number_text(first), _number_text(second)) == sign(first, second)


@given(st.text(max_size=5), st.text(max_size=5))
def test_texts_of_strings_are_in_their_order(first: str, second: str) -> None:
    assert sign(_string_text(first), _string_text(second)) == sign(first, second)


def by_value_and_text(term: Term) -> tuple[object, ...]:
    return (order_key(term), *((term.value, term.datatype.value) if isinstance(term, Literal) else ()))


@pytest.mark.parametrize("evaluator", [ReferenceEvaluator, KernelEvaluator])
@pytest.mark.parametrize("descending", [False, True])
def test_order_by_is_the_order_of_terms(evaluator: MakeEvaluator, descending: bool) -> None:
    plan = plan_query(
        parse(
            f"""SELECT ?v FROM NAMED WINDOW <w> ON <{STREAM}> [RANGE 1s TUMBLING]
                WHERE {{ WINDOW <w> {{ <urn:a> <urn:p> ?v }} }} ORDER BY {"DESC(?v)" if descending else "?v"}"""
        )
    )
    expected = sorted(TERMS, key=by_value_and_text)
    if descending:
        expected.sort(key=order_key, reverse=True)
    for seed in range(5):
        terms = Random(seed).sample(TERMS, len(TERMS))
        triples = tuple(Triple(NamedNode("urn:a"), NamedNode("urn:p"), term) for term in terms)
        program = Program([RegisteredQuery(plan, resolve_settings(plan))], Store(), 0, evaluator)
        (answer,) = program.advance({STREAM: [Element(500_000, triples)]}, ended=[STREAM]).answers
        assert [row[0] for row in answer.rows] == expected
