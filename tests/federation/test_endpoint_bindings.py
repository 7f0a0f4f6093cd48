"""Rows for many keys: from a real endpoint, from one that knows only SPARQL 1.0, and from those that fail half-way."""

from __future__ import annotations

import pickle
import re
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

import httpx
import pytest
from pyoxigraph import Quad, QueryResultsFormat, QuerySolutions, Store

from headwater.federation.endpoint.bound_fetcher import BoundFetcher
from headwater.federation.endpoint.client import Endpoint
from headwater.federation.endpoint.endpoint_errors import (
    EndpointBusy,
    EndpointRefused,
    EndpointTimeout,
    EndpointTooLarge,
    EndpointUnreachable,
    UnsendableKey,
)
from headwater.federation.endpoint.endpoint_settings import EndpointSettings, QueryMethod
from headwater.federation.endpoint.limits import Limits
from headwater.federation.endpoint.remote import Remote
from headwater.federation.endpoint.request_queries import RequestQueries
from headwater.federation.endpoint.request_size import RequestSize
from headwater.terms.model import XSD, BlankNode, Literal, NamedNode, Row, Triple
from tests.federation.servers import Behaviour, Exchange, Served, in_turn, serving, sparql
from tests.reference.test_service import endpoint as endpoint  # the fixture: a real server with anna and bert

EX = "http://example.org/"
FOLLOWERS = NamedNode(EX + "followers")
PATTERN = f"?who {FOLLOWERS} ?n"


def iri(name: object) -> NamedNode:
    return NamedNode(f"{EX}{name}")


def number(value: object) -> Literal:
    return Literal(str(value), datatype=NamedNode(XSD + "integer"))


def people(count: int) -> Store:
    store = Store()
    store.extend(Quad(iri(n), FOLLOWERS, number(n)) for n in range(count))
    return store


def keys(*names: object) -> list[Row]:
    return [(iri(name),) for name in names]


def fetcher(url: str, pattern: str = PATTERN, join: tuple[str, ...] = ("who",), **changes: object) -> BoundFetcher:
    settings = replace(EndpointSettings(url, backoff=0.01, seed=1, retries=0), **changes)  # type: ignore[arg-type]
    return BoundFetcher(Endpoint(settings), RequestQueries.for_pattern(pattern, join))


@pytest.fixture(scope="module")
def crowd(endpoint: str) -> Iterator[str]:
    """The real server with a thousand people more, some followed in several ways."""
    triples = " ".join(f"<{EX}{n}> {FOLLOWERS} {n} ." for n in range(1000))
    more = f"<{EX}7> {FOLLOWERS} 70, 700 . <{EX}ä> {FOLLOWERS} 1 ; <{EX}name> 'Änne'@de . [] {FOLLOWERS} 5 ."
    update = endpoint.replace("/query", "/update")
    head = {"Content-Type": "application/sparql-update"}
    httpx.post(update, content=f"INSERT DATA {{ {triples} {more} }}".encode(), headers=head).raise_for_status()
    yield endpoint


def test_many_keys_in_one_request_to_a_real_endpoint(crowd: str) -> None:
    remote = fetcher(crowd)
    assert isinstance(remote, Remote)
    found = remote.fetch(keys("anna", 7, "ä", "nobody", "anna"), timeout=5.0)
    assert found.error is None
    assert {key: set(rows) for key, rows in found.rows.items()} == {
        (iri("anna"),): {(iri("anna"), number(10))},
        (iri(7),): {(iri(7), number(7)), (iri(7), number(70)), (iri(7), number(700))},
        (iri("ä"),): {(iri("ä"), number(1))},
        (iri("nobody"),): set(),
    }
    assert remote.endpoint.measures.requests == 1
    assert remote.endpoint.can_take_values is True


def test_a_thousand_keys_in_batches_that_grow(crowd: str) -> None:
    remote = fetcher(crowd)
    found = remote.fetch_keys(keys(*range(1000)))
    assert found.failures == {}
    assert all((iri(n), number(n)) in found.rows[(iri(n),)] for n in range(1000))
    assert remote.endpoint.measures.requests < 10
    assert remote.keys_per_request > 100


def test_free_and_overlapping_keys(crowd: str) -> None:
    remote = fetcher(crowd, join=("who", "n"))
    asked: list[Row] = [(iri("anna"), None), (iri("anna"), number(10)), (None, number(10)), (iri("anna"), number(11))]
    anna, ten = (iri("anna"), number(10)), (iri(10), number(10))
    assert {key: sorted(rows, key=str) for key, rows in remote.fetch(asked).rows.items()} == {
        asked[0]: [anna],
        asked[1]: [anna],
        asked[2]: [ten, anna],
        asked[3]: [],
    }


def test_a_join_variable_that_the_pattern_leaves_unbound_takes_the_keys_term(crowd: str) -> None:
    remote = fetcher(crowd, f"?who {FOLLOWERS} ?n OPTIONAL {{ ?who <{EX}name> ?name }}", ("who", "name"))
    named, unnamed = (iri("ä"), Literal("Änne", language="de")), (iri("anna"), Literal("Anna"))
    rows = remote.fetch([named, unnamed, (iri("ä"), Literal("Anna"))]).rows
    assert rows[named] == ((iri("ä"), number(1), Literal("Änne", language="de")),)
    assert rows[unnamed] == ((iri("anna"), number(10), Literal("Anna")),)
    assert rows[(iri("ä"), Literal("Anna"))] == ()


def test_pages_of_a_real_endpoint_hold_everything_once(crowd: str) -> None:
    pages = list(fetcher(crowd).pages(300))
    assert [page.error for page in pages] == [None] * len(pages)
    pairs = [pair for page in pages for pair in page.pairs]
    assert len(pairs) == len(set(pairs)) == 1006
    assert ((iri("anna"),), (iri("anna"), number(10))) in pairs
    assert max(len(page.pairs) for page in pages) <= 300


def test_terms_that_the_endpoint_writes_otherwise_are_dropped_and_counted(crowd: str) -> None:
    remote = fetcher(crowd, join=("n",))
    found = remote.fetch_keys([(number("010"),)])
    assert found.rows == {(number("010"),): ()}
    assert found.dropped == remote.endpoint.measures.dropped_rows == 2


@pytest.mark.parametrize("format_", [QueryResultsFormat.JSON, QueryResultsFormat.XML])
@pytest.mark.parametrize(
    "ways", [(QueryMethod.POST_FORM, QueryMethod.POST_DIRECT, QueryMethod.GET), (QueryMethod.GET,)]
)
def test_an_endpoint_of_sparql_1_0_is_asked_key_by_key(
    format_: QueryResultsFormat, ways: tuple[QueryMethod, ...]
) -> None:
    with serving(sparql(people(50), knows_values=False, formats=(format_,), methods=ways)) as server:
        remote = fetcher(server.url)
        found = remote.fetch(keys(*range(20), "nobody"))
        assert found.error is None
        assert found.rows == {(iri(n),): ((iri(n), number(n)),) for n in range(20)} | {(iri("nobody"),): ()}
        assert remote.endpoint.can_take_values is False
        assert remote.keys_per_request == 1
        before = len(server.heard)
        remote.fetch(keys(1, 2, 3))
        assert len(server.heard) == before + 3
        assert not any("VALUES" in query for query in server.queries[before:])


def test_an_endpoint_that_ignores_values_is_found_out() -> None:
    store = people(5)

    def without_values(exchange: Exchange) -> None:
        cut = re.sub(r"VALUES[^{]*\{.*?\}", "", exchange.query).replace("{ }", "{ ?hw_x ?hw_y ?hw_z }")
        found = store.query(cut)
        assert isinstance(found, QuerySolutions)
        exchange.answer(200, found.serialize(format=QueryResultsFormat.JSON) or b"")

    with serving(without_values) as server:
        remote = fetcher(server.url)
        assert remote.fetch(keys(1, 2)).rows == {(iri(n),): ((iri(n), number(n)),) for n in (1, 2)}
        assert remote.endpoint.can_take_values is False


def test_a_bad_pattern_is_not_taken_for_an_old_endpoint() -> None:
    def refusing(exchange: Exchange) -> None:
        if "followers" in exchange.query:
            exchange.answer(400, b"unknown function", "text/plain")
        else:
            sparql(Store())(exchange)

    with serving(refusing) as server:
        remote = fetcher(server.url)
        found = remote.fetch_keys(keys(*range(50)))
        assert remote.endpoint.can_take_values is True
        assert set(found.failures) == set(keys(*range(50)))
        assert "unknown function" in (remote.fetch(keys(1)).error or "")
        # Not fifty times: after some refusals in a row the rest is not asked for.
        assert len(server.heard) < 25


def test_an_endpoint_that_refuses_everything_is_not_judged() -> None:
    with serving(lambda exchange: exchange.answer(500)) as server:
        remote = fetcher(server.url)
        found = remote.fetch_keys(keys(*range(50)))
        assert len(found.failures) == 50
        assert all(isinstance(error, EndpointRefused) for error in found.failures.values())
        assert remote.endpoint.can_take_values is None
        assert len(server.heard) == 3


@pytest.mark.parametrize("status", [401, 403, 404])
def test_refusals_that_no_key_can_change_are_not_repeated(status: int) -> None:
    with serving(lambda exchange: exchange.answer(status)) as server:
        found = fetcher(server.url, query_method=QueryMethod.POST_FORM).fetch_keys(keys(*range(500)))
        assert len(found.failures) == 500
        assert len(server.heard) == 1


def test_batches_are_halved_until_they_fit_and_stay_so() -> None:
    with serving(sparql(people(200), most_keys=30)) as server:
        remote = fetcher(server.url)
        found = remote.fetch(keys(*range(200)))
        assert found.error is None
        assert len(found.rows) == 200
        assert remote.keys_per_request <= 30
        before = len(server.heard)
        remote.fetch(keys(*range(200)))
        assert len(server.heard) <= before + 12


def test_too_long_for_an_address() -> None:
    with serving(sparql(people(200), methods=(QueryMethod.GET,))) as server:
        found = fetcher(server.url, longest_url=1500).fetch(keys(*range(200)))
        assert found.error is None
        assert len(found.rows) == 200


def test_too_large_an_answer_is_halved_and_a_key_that_is_too_large_alone_is_reported() -> None:
    store = people(50)
    store.extend(Quad(iri(7), FOLLOWERS, number(n)) for n in range(1000, 2000))
    with serving(sparql(store)) as server:
        found = fetcher(server.url, largest_response=20_000).fetch_keys(keys(*range(50)))
        assert {key: type(error) for key, error in found.failures.items()} == {(iri(7),): EndpointTooLarge}
        assert len(found.rows) == 49


def poisoned(store: Store, name: str) -> Behaviour:
    """One key lets the endpoint stumble."""
    good = sparql(store)
    return lambda exchange: exchange.answer(500) if f"<{EX}{name}>" in exchange.query else good(exchange)


def test_one_bad_key_does_not_spoil_the_others() -> None:
    with serving(poisoned(people(300), "123")) as server:
        remote = fetcher(server.url)
        remote.fetch(keys(1))
        found = remote.fetch_keys(keys(*range(300)))
        assert set(found.failures) == {(iri(123),)}
        assert len(found.rows) == 299


def test_what_no_text_can_carry_is_refused_alone() -> None:
    with serving(sparql(people(5))) as server:
        odd: list[Row] = [(BlankNode("b"),), (Triple(iri(1), iri(2), iri(3)),)]
        found = fetcher(server.url).fetch_keys([*odd, *keys(1)])
        assert list(found.rows) == keys(1)
        assert {key: type(error) for key, error in found.failures.items()} == dict.fromkeys(odd, UnsendableKey)
        assert fetcher(server.url).fetch(odd).error is not None
    with pytest.raises(ValueError, match="1 terms"):
        fetcher(server.url).fetch([(iri(1), iri(2))])


def slow(seconds: Callable[[Exchange], float], store: Store, server: list[Served]) -> Behaviour:
    good = sparql(store)

    def answer(exchange: Exchange) -> None:
        server[0].over.wait(seconds(exchange))
        good(exchange)

    return answer


def test_what_comes_in_time_is_kept_and_the_rest_is_late() -> None:
    running: list[Served] = []
    behaviour = slow(lambda exchange: 10.0 if f"{EX}150>" in exchange.query else 0.0, people(200), running)
    with serving(behaviour) as server:
        running.append(server)
        remote = fetcher(server.url)
        remote.fetch(keys(1))
        started = time.monotonic()
        found = remote.fetch_keys(keys(*range(200)), timeout=0.8)
        assert time.monotonic() - started < 3.0
        assert len(found.rows) >= 100
        assert (iri(150),) in found.failures
        assert all(isinstance(error, EndpointTimeout) for error in found.failures.values())
        assert set(found.rows) | set(found.failures) == set(keys(*range(200)))


def test_an_endpoint_that_is_slow_with_many_keys_gets_fewer() -> None:
    running: list[Served] = []
    behaviour = slow(lambda exchange: 10.0 if exchange.query.count(EX) > 40 else 0.0, people(100), running)
    with serving(behaviour) as server:
        running.append(server)
        remote = fetcher(server.url, read_timeout=0.1)
        assert remote.fetch(keys(*range(100)), timeout=5.0).error is None
        assert remote.keys_per_request < 60


def test_batches_run_at_once_but_not_more_than_allowed() -> None:
    inside: set[int] = set()
    most, lock, good = 0, threading.Lock(), sparql(people(200))

    def counting(exchange: Exchange) -> None:
        nonlocal most
        with lock:
            inside.add(id(exchange))
            most = max(most, len(inside))
        time.sleep(0.03)
        with lock:
            inside.discard(id(exchange))
        good(exchange)

    with serving(counting) as server:
        settings = EndpointSettings(server.url, limits=Limits(concurrent=2))
        remote = BoundFetcher(
            Endpoint(settings), RequestQueries.for_pattern(PATTERN, ["who"]), keys_per_request=20, largest_request=20
        )
        assert len(remote.fetch(keys(*range(200))).rows) == 200
    assert most == 2


def test_a_dead_endpoint_costs_one_attempt_and_is_asked_again_later() -> None:
    store = people(100)
    with serving(in_turn(sparql(store), Exchange.hang_up, sparql(store))) as server:
        remote = fetcher(server.url)
        assert remote.fetch(keys(1)).error is None
        found = remote.fetch_keys(keys(*range(100)))
        assert {type(error) for error in found.failures.values()} == {EndpointUnreachable}
        assert len(server.heard) == 2
        assert remote.fetch(keys(*range(100))).error is None


def test_a_busy_endpoint_is_left_alone() -> None:
    with serving(lambda exchange: exchange.answer(429, Retry_After="30")) as server:
        remote = fetcher(server.url, retries=5)
        found = remote.fetch_keys(keys(*range(500)), timeout=0.5)
        assert {type(error) for error in found.failures.values()} == {EndpointBusy}
        remote.fetch(keys(1), timeout=0.5)
        assert len(server.heard) == 1


def test_pages_of_a_server_that_cuts_in_silence() -> None:
    with serving(sparql(people(100), most_rows=30)) as server:
        pages = list(fetcher(server.url).pages(1000))
        assert [len(page.pairs) for page in pages] == [30, 30, 30, 10]


def test_what_fits_in_one_page_is_not_sorted() -> None:
    with serving(sparql(people(100))) as server:
        (page,) = fetcher(server.url).pages(1000)
        assert len(page.pairs) == 100
        assert len(server.heard) == 2
        assert not any("ORDER" in query for query in server.queries)
        assert sum(len(page.pairs) for page in fetcher(server.url).pages(100)) == 100


def test_a_remote_with_nothing_has_one_empty_page() -> None:
    with serving(sparql(Store())) as server:
        assert [(len(page.pairs), page.error) for page in fetcher(server.url).pages(10)] == [(0, None)]


def test_pages_become_smaller_where_the_answer_is_too_large() -> None:
    with serving(sparql(people(100))) as server:
        pages = list(fetcher(server.url, largest_response=5_000).pages(100))
        assert sum(len(page.pairs) for page in pages) == 100
        assert pages[-1].error is None
        assert len(pages) > 2


def test_pages_end_with_the_error() -> None:
    good = sparql(people(100))
    with serving(in_turn(good, good, lambda exchange: exchange.answer(401))) as server:
        pages = list(fetcher(server.url).pages(50))
        assert [(len(page.pairs), page.error is None) for page in pages] == [(50, True), (0, False)]


def test_a_page_that_is_refused_is_not_made_smaller() -> None:
    with serving(lambda exchange: exchange.answer(400)) as server:
        (page,) = fetcher(server.url, query_method=QueryMethod.GET).pages(1000)
        assert "status 400" in (page.error or "")
        assert len(server.heard) == 1


def test_pages_of_a_server_that_always_fails_come_to_an_end() -> None:
    with serving(lambda exchange: exchange.answer(500)) as server:
        (page,) = fetcher(server.url).pages(1_000_000)
        assert page.error is not None
        assert len(server.heard) < 10


@pytest.mark.parametrize("limit", [1, 10])
def test_a_server_that_does_not_know_offset_is_found_out(limit: int) -> None:
    good = sparql(people(100))

    def forgetful(exchange: Exchange) -> None:
        exchange.body = re.sub(rb"\+OFFSET\+\d+", b"", exchange.body)
        good(exchange)

    with serving(forgetful) as server:
        first, second = fetcher(server.url).pages(limit)
        assert len(first.pairs) == limit
        assert "OFFSET" in (second.error or "")


def test_equal_pages_of_equal_rows_are_no_error() -> None:
    with serving(sparql(people(6))) as server:
        remote = fetcher(server.url, "{ SELECT ?p WHERE { ?s ?p ?o } }", ("p",))
        assert [len(page.pairs) for page in remote.pages(2)] == [2, 2, 2]


def test_a_fetcher_travels_between_processes() -> None:
    with serving(sparql(people(5))) as server:
        remote = fetcher(server.url)
        remote.fetch(keys(1))
        copied = pickle.loads(pickle.dumps(remote))
        assert copied.fetch(keys(1)).rows == remote.fetch(keys(1)).rows


def test_sizes_halve_and_grow_within_their_bounds() -> None:
    size = RequestSize(100, 120)
    size.report_success(100)
    assert size.current == 120
    size.report_success(7)
    assert size.current == 120
    size.report_failure(120)
    size.report_failure(120)
    assert size.current == 60
    for _ in range(30):
        size.report_success(size.current)
    assert size.current == 119
    for _ in range(30):
        size.report_success(size.current)
    assert size.current == 120
    for _ in range(10):
        size.report_failure(size.current)
    assert size.current == 1
    with pytest.raises(ValueError, match="at least 1"):
        RequestSize(0, 10)
