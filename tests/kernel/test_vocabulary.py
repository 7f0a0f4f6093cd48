"""The vocabulary forgets terms with their last use: no term outlives the windows, answers and states that hold it."""

from __future__ import annotations

import pytest
from pyoxigraph import Quad, Store

from headwater.algebra.build import plan_query
from headwater.execution.answers import Answer
from headwater.kernel.columns.vocabulary import Vocabulary
from headwater.kernel.kernel_evaluator import KernelEvaluator
from headwater.language.parser import parse
from headwater.terms.ids.term_ids import encode
from headwater.terms.model import SECOND, Element, Literal, NamedNode, Row, Term, Triple
from headwater.windows.settings import resolve_settings
from tests.kernel.generated_runs import SweepingEvaluator

STREAM = "http://example.org/s"
P, Q = NamedNode("urn:p"), NamedNode("urn:q")


def evaluator(body: str, head: str = "*", tail: str = "", *, static: Store | None = None) -> SweepingEvaluator:
    """A query over a window of two seconds that slides by one, swept at each tick."""
    text = f"SELECT {head} FROM NAMED WINDOW <w> ON <{STREAM}> [RANGE 2s STEP 1s] WHERE {{ {body} }} {tail}"
    plan = plan_query(parse(text))
    return SweepingEvaluator(plan, resolve_settings(plan), static or Store())


def named(number: int) -> NamedNode:
    return NamedNode(f"urn:term:{number}")


def advance(running: KernelEvaluator, second: int, *triples: Triple) -> list[Answer]:
    """What happens in a second; the ticks before the next one are answered."""
    elements = [Element(second * SECOND, (triple,)) for triple in triples]
    return list(running.advance({(STREAM, None): elements}, (second + 1) * SECOND))


def knows(vocabulary: Vocabulary, term: Term) -> bool:
    number = encode(term)
    known = number in vocabulary._terms or number in vocabulary._texts
    assert known or term not in vocabulary._ids
    return known


def test_a_term_is_known_as_long_as_a_window_holds_it_and_no_longer() -> None:
    running = evaluator("WINDOW <w> { ?s <urn:p> ?o }")
    for second in range(1, 400):
        advance(running, second, Triple(named(second), P, named(-second)))
        # The last tick was at this second, and its window goes back to two seconds before, which is not in it.
        for sign in (1, -1):
            found = [n for n in range(1, second + 1) if knows(running.vocabulary, named(sign * n))]
            assert found == [n for n in (second - 1, second) if n > 0]
    assert knows(running.vocabulary, P)


def test_a_term_that_comes_again_is_known_until_it_goes_for_the_last_time() -> None:
    running = evaluator("WINDOW <w> { ?s <urn:p> ?o }")
    for second in (1, 2, 3):
        advance(running, second, Triple(named(0), P, named(second)))
    advance(running, 4)
    assert knows(running.vocabulary, named(0)) and knows(running.vocabulary, named(3))
    assert not knows(running.vocabulary, named(2))
    advance(running, 5)
    advance(running, 6)
    assert not knows(running.vocabulary, named(0)) and not knows(running.vocabulary, named(3))


@pytest.mark.parametrize(
    ("head", "body", "tail"),
    [
        ("(GROUP_CONCAT(?t) AS ?all)", "WINDOW <w> { ?s <urn:p> ?o } BIND(STR(?o) AS ?t)", ""),
        ("?text", 'WINDOW <w> { ?s <urn:p> ?o } BIND(CONCAT(STR(?o), " as a text") AS ?text)', ""),
        ("DISTINCT ?text", 'WINDOW <w> { ?s <urn:p> ?o } BIND(CONCAT(STR(?o), " as a text") AS ?text)', ""),
        (
            "?text",
            '{ SELECT (CONCAT(STR(?o), " as a text") AS ?text) WHERE { WINDOW <w> { ?s <urn:p> ?o } } LIMIT 1 }',
            "",
        ),
        ("?o (SAMPLE(?text) AS ?one)", "WINDOW <w> { ?s <urn:p> ?o } BIND(STR(?o) AS ?text)", "GROUP BY ?o"),
    ],
)
def test_a_term_that_the_query_made_goes_with_the_result(head: str, body: str, tail: str) -> None:
    running = evaluator(body, head, tail)
    said: set[Term] = set()
    for second in range(1, 9):
        for answer in advance(running, second, *([Triple(named(second), P, named(second))] if second < 5 else [])):
            said.update(term for row in answer.rows for term in row if isinstance(term, Literal) and term.value)
            assert all(knows(running.vocabulary, term) for row in answer.rows for term in row if term in said)
    assert len(said) >= 4
    assert not any(knows(running.vocabulary, term) for term in said)


def test_static_terms_and_those_of_the_query_stay() -> None:
    static = Store()
    static.extend(Quad(named(n), Q, Literal(f"the text of term {n}")) for n in range(50))
    running = evaluator(
        'WINDOW <w> { ?s <urn:p> ?o } ?o <urn:q> ?t VALUES ?z { "a value of the query" }', static=static
    )
    rows: list[Row] = []
    for second in range(1, 60):
        for answer in advance(running, second, Triple(named(1000 + second), P, named(second % 50))):
            rows.extend(answer.rows)
    # Every static term was asked for long after the first sweep.
    assert {row[2] for row in rows} == {Literal(f"the text of term {n}") for n in range(50)}
    assert all(knows(running.vocabulary, Literal(f"the text of term {n}")) for n in range(50))
    assert not knows(running.vocabulary, named(1010))


def test_values_in_a_state_are_known_when_they_meet_their_partner() -> None:
    """What was computed for one side of a join waits there, in no window and in no answer."""
    running = evaluator(
        '{ WINDOW <w> { ?s <urn:p> ?o } BIND(CONCAT(STR(?o), " as a text") AS ?text) } { WINDOW <w> { ?s <urn:q> ?n } }'
    )
    advance(running, 1, Triple(named(1), P, named(2)))
    (answer,) = advance(running, 2, Triple(named(1), Q, named(3)))
    assert Literal("urn:term:2 as a text") in answer.rows[0]


def test_without_explicit_sweeps_the_vocabulary_stays_near_what_is_in_use() -> None:
    plan = plan_query(
        parse(f"SELECT ?s FROM NAMED WINDOW <w> ON <{STREAM}> [RANGE 2s STEP 1s] WHERE {{ WINDOW <w> {{ ?s ?p ?o }} }}")
    )
    running = KernelEvaluator(plan, resolve_settings(plan), Store())
    each, sizes = 200, []
    for second in range(1, 120):
        advance(running, second, *(Triple(named(second * each + n), P, named(-second * each - n)) for n in range(each)))
        sizes.append(running.vocabulary.size)
    in_use = 2 * 2 * each
    assert max(sizes) <= 2 * max(1024, in_use) + 2 * each
    assert min(sizes[20:]) <= 1.5 * in_use
