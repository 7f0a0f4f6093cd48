"""All strategies give what the definition gives, on data that does not change: against a real endpoint."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyoxigraph import Quad, Store

from benchmarks.oxigraph_server import NoServer, oxigraph
from headwater.algebra.build import plan_query
from headwater.execution.answers import Answer
from headwater.federation.endpoint.endpoint_settings import EndpointSettings
from headwater.federation.service_evaluator import choose_evaluator
from headwater.federation.service_settings import ServiceSettings
from headwater.federation.services import Services
from headwater.language.parser import parse
from headwater.terms.model import SECOND, Element, NamedNode, Triple
from headwater.windows.settings import resolve_settings
from tests.federation.service_runs import EX, MENTIONS, Run, iri, mention, shown

PEOPLE = ["anna", "bert", "carl", "dora", "emil", "fred"]
DATA = f"""@prefix : <{EX}> .
:anna :followers 10 ; :knows :bert, :carl ; :name "Anna"@en, "Änne"@de .
:bert :followers 20 ; :knows :carl ; :name "Bert" .
:carl :followers 20 ; :name "Carl", "Karl" .
:dora :knows :dora .
:emil :followers "007"^^<http://www.w3.org/2001/XMLSchema#string> .
"""
OPTIONS = ["", "OPTION (STRATEGY LOOP)", "OPTION (STRATEGY HASH)", "OPTION (STRATEGY VIEW)", "OPTION (FILL, ENTRIES 3)"]
WINDOW = "FROM STREAM :mentions [RANGE 6s STEP 2s]"
FOLLOWERS = "SERVICE {E} {{ ?who :followers ?n }} {O}"
QUERIES = [
    "SELECT ?who ?n {W} WHERE {{ ?who :mentionedIn ?p . SERVICE {E} {{ ?who :followers ?n }} {O} }}",
    "SELECT ?who ?n {W} WHERE {{ ?who :mentionedIn ?p OPTIONAL {{ SERVICE {E} {{ ?who :followers ?n }} {O} }} }}",
    "SELECT ?who ?x ?n {W} WHERE {{ ?who :mentionedIn ?p . SERVICE {E} {{ ?who :knows ?x . ?x :name ?n }} {O} }}",
    "SELECT ?who ?n {W} WHERE {{ SERVICE {E} {{ ?who :name ?n }} {O} ?who :mentionedIn ?p FILTER(lang(?n) != 'de') }}",
    "SELECT ?p (COUNT(*) AS ?c) (SUM(?n) AS ?s) {W} WHERE {{ ?who :mentionedIn ?p . " + FOLLOWERS + " }} GROUP BY ?p",
    "SELECT ?who ?n {W} WHERE {{ ?who :mentionedIn ?p OPTIONAL {{ " + FOLLOWERS + " FILTER(?n > 15) }} }}",
    "SELECT ?who ?x ?n {W} WHERE {{ ?who :mentionedIn ?p . SERVICE {E} {{ ?x :followers ?n FILTER(?n = 20) }} {O} }}",
    """SELECT ?who ?x ?f {W} WHERE {{ ?who :mentionedIn ?p .
           SERVICE {E} {{ ?who :knows ?x }} {O} SERVICE {E} {{ ?x :followers ?f }} {O} }}""",
    """SELECT ?who ?x ?t {W} WHERE {{ ?who :mentionedIn ?p .
           GRAPH :towns {{ ?x :town ?t }} SERVICE {E} {{ ?who :knows ?x }} {O} }}""",
    """SELECT ?who ?x ?n {W} WHERE {{ ?who :mentionedIn ?p OPTIONAL {{ GRAPH :towns {{ ?who :town ?x }} }}
           SERVICE {E} {{ ?who :name ?n OPTIONAL {{ ?who :knows ?x }} }} {O} }}""",
    """SELECT ?who ?n {W} WHERE {{ ?who :mentionedIn ?p
           {{ SERVICE {E} {{ ?who :followers ?n }} {O} }} UNION {{ SERVICE {E} {{ ?who :name ?n }} {O} }} }}""",
    "SELECT ?who {W} WHERE {{ ?who :mentionedIn ?p MINUS {{ SERVICE {E} {{ ?who :knows ?x }} {O} }} }}",
    """SELECT ?who ?n {W} WHERE {{ ?who :mentionedIn ?p .
           SERVICE {E} {{ SELECT ?who (COUNT(*) AS ?n) WHERE {{ ?who :name ?x }} GROUP BY ?who }} {O} }}""",
]


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    try:
        with oxigraph(DATA) as running:
            yield running.url
    except NoServer as reason:
        pytest.skip(str(reason))


def static() -> Store:
    store = Store()
    for who, town in (("carl", "bern"), ("bert", "rome"), ("anna", "bern")):
        store.add(Quad(iri(who), iri("town"), iri(town), iri("towns")))
    return store


def bags(answers: list[Answer]) -> list[tuple[int, Counter[tuple[object, ...]]]]:
    return [(answer.time, Counter(answer.rows)) for answer in answers]


STREAM = [
    mention(second, who, post)
    for second, who, post in [
        (0.5, "anna", "p1"),
        (1.5, "bert", "p1"),
        (1.5, "_:stranger", "p2"),
        (3.0, "carl", "p2"),
        (3.0, "anna", "p2"),
        (7.0, "nobody", "p1"),
        (7.5, "dora", "p3"),
        (12.0, "emil", "p1"),
        (14.0, "anna", "p1"),
    ]
]


@pytest.mark.parametrize("query", QUERIES)
def test_every_strategy_gives_the_answers_of_the_definition(endpoint: str, query: str) -> None:
    def text(options: str) -> str:
        return query.format(W=WINDOW, E=f"<{endpoint}>", O=options)

    expected = bags(Run(text(""), static=static()).all(STREAM))
    assert any(rows for _, rows in expected)
    for options in OPTIONS:
        run = Run(text(options), Services(), static())
        assert run.evaluator.clauses
        found: list[Answer] = []
        for place, element in enumerate(STREAM):
            found += run.feed([element], ended=place == len(STREAM) - 1)
        assert bags(found) == expected, options
        assert all(answer.quality is not None and not answer.quality.failures for answer in found)


mentions = st.lists(
    st.tuples(st.integers(0, 40), st.sampled_from([*PEOPLE, "_:b"]), st.sampled_from(["p", "q"])), max_size=25
)


@settings(max_examples=15)
@given(mentions, st.sampled_from(QUERIES), st.sampled_from(OPTIONS), st.integers(1, 5))
def test_generated_streams_in_any_batches(
    endpoint: str, drawn: list[tuple[int, str, str]], query: str, options: str, size: int
) -> None:
    stream: list[Element] = [mention(half / 2, who, post) for half, who, post in sorted(drawn)]
    plain = query.format(W=WINDOW, E=f"<{endpoint}>", O="")
    asked = query.format(W=WINDOW, E=f"<{endpoint}>", O=options)
    expected = bags(Run(plain, static=static()).all(stream))
    run = Run(asked, Services(), static())
    found: list[Answer] = []
    for begin in range(0, len(stream), size):
        found += run.feed(stream[begin : begin + size])
    found += run.all([])
    assert bags(found) == expected


def test_the_data_say_whom_to_ask(endpoint: str) -> None:
    text = """SELECT ?who ?n FROM STREAM :mentions [RANGE 4s STEP 4s]
              WHERE { ?who :mentionedIn ?e . SERVICE ?e { ?who :followers ?n } %s }"""
    where = NamedNode(endpoint)
    stream = [
        Element(second * SECOND, (Triple(iri(who), iri("mentionedIn"), where),))
        for second, who in ((1, "anna"), (2, "bert"))
    ]
    for options in ("", "OPTION (BUDGET 5)"):
        run = Run(text % options, Services())
        assert run.evaluator.clauses
        assert shown(run.all(stream)) == [[("anna", "10"), ("bert", "20")]]


def test_an_endpoint_that_nobody_names_is_left_to_the_definition(caplog: pytest.LogCaptureFixture) -> None:
    run = Run(
        """SELECT ?who ?n FROM STREAM :mentions [RANGE 4s STEP 4s]
           WHERE { ?who :mentionedIn ?p OPTIONAL { ?p :at ?e } SERVICE ?e { ?who :followers ?n } OPTION (BUDGET 5) }""",
        Services(),
    )
    with pytest.raises(AssertionError):
        _ = run.evaluator
    plan = plan_query(parse(run.text), streams=[MENTIONS])
    assert not choose_evaluator(plan, resolve_settings(plan), Store()).is_kernel
    assert "OPTION of SERVICE is not in force" in caplog.text


def test_limits_of_the_settings_hold(endpoint: str) -> None:
    settled = ServiceSettings((EndpointSettings(endpoint, largest_response=10),))
    run = Run(
        "SELECT ?who ?n FROM STREAM :mentions [RANGE 4s STEP 4s] "
        f"WHERE {{ ?who :mentionedIn ?p . SERVICE <{endpoint}> {{ ?who :followers ?n }} OPTION (STRATEGY VIEW) }}",
        Services(settled),
    )
    (answer,) = run.all([mention(1, "anna")])
    assert answer.rows == ()
    assert answer.quality is not None
    assert (answer.quality.failures, answer.quality.missing) == (1, 1)
