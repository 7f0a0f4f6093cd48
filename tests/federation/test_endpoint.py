"""The client against servers that behave badly, each in its own way; every call comes back in time."""

from __future__ import annotations

import gzip
import socket
import threading
import time
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from pyoxigraph import QueryResultsFormat, Store

from headwater.egress.credentials import Credentials
from headwater.federation.endpoint.client import Endpoint
from headwater.federation.endpoint.clock import RequestClock
from headwater.federation.endpoint.endpoint_errors import (
    EndpointBusy,
    EndpointGarbage,
    EndpointRefused,
    EndpointTimeout,
    EndpointTooLarge,
    EndpointUnreachable,
)
from headwater.federation.endpoint.endpoint_settings import EndpointSettings, QueryMethod
from headwater.federation.endpoint.limits import Limits
from headwater.federation.endpoint.protocol import ResultTable
from headwater.terms.model import Literal
from tests.federation.servers import JSON, ONE_ROW, XML, Behaviour, Exchange, Served, in_turn, serving, sparql
from tests.free_ports import free_port

SELECT = "SELECT ?x WHERE { BIND(1 AS ?x) }"
ONE = ResultTable(("x",), ((Literal("1"),),))


def quick(url: str, **changes: object) -> Endpoint:
    """A client that waits only a moment between attempts, always the same."""
    return Endpoint(replace(EndpointSettings(url, backoff=0.01, seed=1), **changes))  # type: ignore[arg-type]


def saying(status: int, body: bytes = ONE_ROW, content_type: str = JSON, **headers: str) -> Behaviour:
    return lambda exchange: exchange.answer(status, body, content_type, **headers)


def nobody() -> str:
    return f"http://127.0.0.1:{free_port()}/sparql"


def test_a_good_answer_and_what_it_cost() -> None:
    with serving(saying(200)) as server:
        endpoint = quick(server.url)
        assert endpoint.select(SELECT) == ONE
        measures = endpoint.measures
    assert (measures.requests, measures.answers, measures.retries) == (1, 1, 0)
    assert measures.bytes_received == len(ONE_ROW)
    assert measures.bytes_sent > len(SELECT)
    assert measures.errors == {}


def test_nobody_there() -> None:
    endpoint = quick(nobody())
    with pytest.raises(EndpointUnreachable, match="check the address") as caught:
        endpoint.select(SELECT)
    assert isinstance(caught.value, OSError)
    assert endpoint.measures.errors == {"unreachable": 3}
    assert endpoint.measures.failures_in_a_row == 3


def half(exchange: Exchange) -> None:
    exchange.begin(length=len(ONE_ROW) * 2)
    exchange.write(ONE_ROW)
    exchange.hang_up()


def half_without_a_length(exchange: Exchange) -> None:
    exchange.begin(length=None)
    exchange.write(ONE_ROW[:-10])


def test_half_an_answer_is_garbage_and_asked_for_again() -> None:
    with serving(in_turn(half, saying(200))) as server:
        endpoint = quick(server.url)
        assert endpoint.select(SELECT) == ONE
        assert endpoint.measures.errors == {"garbage": 1}
    with serving(half) as server, pytest.raises(EndpointGarbage, match="half an answer"):
        quick(server.url).select(SELECT)


def test_half_an_answer_that_says_no_length_is_garbage() -> None:
    with serving(half_without_a_length) as server, pytest.raises(EndpointGarbage, match="only a part of one"):
        quick(server.url).select(SELECT)


def test_a_connection_that_is_cut_before_the_answer_is_tried_again() -> None:
    with serving(in_turn(Exchange.hang_up, saying(200))) as server:
        assert quick(server.url).select(SELECT) == ONE
    with serving(Exchange.hang_up) as server, pytest.raises(EndpointUnreachable):
        quick(server.url).select(SELECT)


@pytest.mark.parametrize("body", [b"Hello", b"<html>Welcome</html>", b"{}", b"", b"\x00\xff" * 99])
def test_garbage_with_status_200_is_not_asked_for_again(body: bytes) -> None:
    with serving(saying(200, body)) as server:
        with pytest.raises(EndpointGarbage, match="SPARQL endpoint"):
            quick(server.url).select(SELECT)
        assert len(server.heard) == 1


def test_the_wrong_kind_of_result() -> None:
    with serving(saying(200, b'{"head":{},"boolean":true}')) as server:
        assert quick(server.url).ask("ASK {}") is True
        with pytest.raises(EndpointGarbage, match="true or false"):
            quick(server.url).select(SELECT)
    with serving(saying(200)) as server, pytest.raises(EndpointGarbage, match="table"):
        quick(server.url).ask("ASK {}")


@pytest.mark.parametrize("content_type", ["text/html", "application/sparql-results+xml", "nonsense"])
def test_a_wrong_content_type_does_no_harm(content_type: str) -> None:
    with serving(saying(200, ONE_ROW, content_type)) as server:
        assert quick(server.url).select(SELECT) == ONE


def test_an_endpoint_that_writes_only_xml() -> None:
    with serving(sparql(Store(), formats=(QueryResultsFormat.XML,))) as server:
        assert len(quick(server.url).select(SELECT).rows) == 1
        assert XML in server.heard[0].headers["Accept"] and JSON in server.heard[0].headers["Accept"]


def late_by_ten_seconds(server: list[Served]) -> Behaviour:
    def answer(exchange: Exchange) -> None:
        server[0].over.wait(10)
        exchange.answer(200, ONE_ROW)

    return answer


def dripping(server: list[Served]) -> Behaviour:
    """A byte now and then: no single read is ever too slow."""

    def answer(exchange: Exchange) -> None:
        exchange.begin(length=10_000)
        while not server[0].over.wait(0.05):
            exchange.write(b" ")

    return answer


@pytest.mark.parametrize("behaviour", [late_by_ten_seconds, dripping])
def test_a_slow_endpoint_does_not_keep_the_caller(behaviour: object) -> None:
    running: list[Served] = []
    with serving(behaviour(running)) as server:  # type: ignore[operator]
        running.append(server)
        endpoint = quick(server.url)
        started = time.monotonic()
        with pytest.raises(EndpointTimeout, match="fewer keys"):
            endpoint.select(SELECT, timeout=0.2)
        assert 0.15 < time.monotonic() - started < 2.0


def test_the_read_time_out_holds_without_a_deadline_and_is_retried() -> None:
    running: list[Served] = []
    with serving(in_turn(late_by_ten_seconds(running), saying(200))) as server:
        running.append(server)
        assert quick(server.url, read_timeout=0.3).select(SELECT) == ONE


def test_the_total_time_out_bounds_all_attempts_together() -> None:
    running: list[Served] = []
    with serving(late_by_ten_seconds(running)) as server:
        running.append(server)
        started = time.monotonic()
        with pytest.raises(EndpointTimeout):
            quick(server.url, read_timeout=0.1, total_timeout=0.25, retries=100).select(SELECT)
        assert time.monotonic() - started < 2.0


def test_a_name_server_that_hangs_does_not_keep_the_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    free = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: free.wait(5) and [])
    started = time.monotonic()
    with pytest.raises(EndpointTimeout):
        quick("http://slow.example.org/sparql").select(SELECT, timeout=0.1)
    assert time.monotonic() - started < 2.0
    free.set()


def test_a_call_without_time_asks_nobody() -> None:
    with serving(saying(200)) as server:
        with pytest.raises(EndpointTimeout):
            quick(server.url).select(SELECT, timeout=0.0)
        assert server.heard == []


def test_429_with_seconds_is_obeyed_by_every_caller() -> None:
    with serving(in_turn(saying(429, Retry_After="1"), saying(200))) as server:
        endpoint = quick(server.url)
        with pytest.raises(EndpointBusy) as caught:
            endpoint.select(SELECT, timeout=0.6)
        assert caught.value.retry_after == 1.0
        assert 0.2 < endpoint.remaining_pause <= 1.0
        for _ in range(3):
            with pytest.raises(EndpointBusy, match="pause"):
                endpoint.select(SELECT, timeout=0.05)
        assert len(server.heard) == 1
        pause, before = endpoint.remaining_pause, time.monotonic()
        assert endpoint.select(SELECT, timeout=5.0) == ONE
        assert time.monotonic() - before >= pause > 0.1
        assert len(server.heard) == 2


class FixedDay(RequestClock):
    """A day that stands still: HTTP dates count whole seconds, and a test need not wait for them."""

    def date(self) -> datetime:
        return datetime(2026, 3, 1, 12, 0, 0, 700_000, tzinfo=UTC)


def test_503_with_a_date_is_obeyed_and_a_caller_with_time_waits() -> None:
    with serving(in_turn(saying(503, Retry_After="Sun, 01 Mar 2026 12:00:01 GMT"), saying(200))) as server:
        endpoint = Endpoint(EndpointSettings(server.url), FixedDay())
        started = time.monotonic()
        assert endpoint.select(SELECT, timeout=10.0) == ONE
        assert 0.3 <= time.monotonic() - started < 5
        assert endpoint.measures.retries == 1


def test_a_pause_is_believed_only_up_to_a_bound() -> None:
    with serving(in_turn(saying(429, Retry_After="999999999"), saying(200))) as server:
        assert quick(server.url, longest_pause=0.05).select(SELECT) == ONE


def test_503_without_retry_after_is_tried_again_after_the_back_off() -> None:
    with serving(in_turn(saying(503), saying(503), saying(200))) as server:
        assert quick(server.url).select(SELECT) == ONE
        assert len(server.heard) == 3
    with serving(saying(503)) as server, pytest.raises(EndpointBusy, match="status 503"):
        quick(server.url).select(SELECT)


def test_500_then_200() -> None:
    with serving(in_turn(saying(500), saying(200))) as server:
        endpoint = quick(server.url)
        assert endpoint.select(SELECT) == ONE
        assert (endpoint.measures.retries, endpoint.measures.errors) == (1, {"refused": 1})
        assert endpoint.measures.failures_in_a_row == 0


@pytest.mark.parametrize(
    ("status", "advice"), [(400, "check the SERVICE pattern"), (401, "credentials"), (404, "path"), (500, "log")]
)
def test_a_refusal_says_what_the_endpoint_said_and_what_to_do(status: int, advice: str) -> None:
    with serving(saying(status, b"Parse error\n at line 1" + b"!" * 10_000, "text/plain")) as server:
        with pytest.raises(EndpointRefused, match=f"Parse error at line 1.*{advice}") as caught:
            quick(server.url, query_method=QueryMethod.POST_FORM).select(SELECT)
        assert caught.value.status == status
        assert len(str(caught.value)) < 600
        assert len(server.heard) == (3 if status == 500 else 1)


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_keeps_method_and_body(status: int) -> None:
    def moved(exchange: Exchange) -> None:
        if exchange.path == "/sparql":
            exchange.answer(status, Location="/new?key=1")
        else:
            exchange.answer(200 if exchange.query == SELECT and exchange.path == "/new?key=1" else 400, ONE_ROW)

    with serving(moved) as server:
        endpoint = quick(server.url)
        assert endpoint.select(SELECT) == ONE
        assert endpoint.select(SELECT) == ONE
        assert server.methods == [QueryMethod.POST_FORM] * len(server.heard)
        # What moved for good is asked at its new place.
        assert len(server.heard) == (3 if status in (301, 308) else 4)


def test_see_other_is_fetched_and_get_is_redirected() -> None:
    with serving(lambda e: e.answer(200, ONE_ROW) if e.path == "/r/7" else e.answer(303, Location="/r/7")) as server:
        assert quick(server.url).select(SELECT) == ONE
        assert [exchange.method for exchange in server.heard] == ["POST", "GET"]


def test_redirects_end() -> None:
    with serving(saying(302, Location="/sparql")) as server:
        with pytest.raises(EndpointRefused, match="redirects"):
            quick(server.url).select(SELECT)
        assert len(server.heard) == 6
    with (
        serving(saying(302, Location="file:///etc/passwd")) as server,
        pytest.raises(EndpointRefused, match="not HTTP"),
    ):
        quick(server.url).select(SELECT)


def test_credentials_do_not_follow_to_another_host() -> None:
    with serving(saying(200)) as other, serving(saying(307, Location=other.url)) as server:
        endpoint = quick(server.url, credentials=Credentials(bearer="s3cret", headers=(("X-Key", "k3y"),)))
        assert endpoint.select(SELECT) == ONE
        assert server.heard[0].headers["Authorization"] == "Bearer s3cret"
        assert server.heard[0].headers["X-Key"] == "k3y"
        assert "Authorization" not in other.heard[0].headers and "X-Key" not in other.heard[0].headers


def test_gzip() -> None:
    with serving(saying(200, gzip.compress(ONE_ROW), Content_Encoding="gzip")) as server:
        assert quick(server.url).select(SELECT) == ONE
    broken = saying(200, b"no gzip", Content_Encoding="gzip")
    with serving(broken) as server, pytest.raises(EndpointGarbage, match="decompressed"):
        quick(server.url).select(SELECT)


def endless(exchange: Exchange) -> None:
    exchange.begin(length=None)
    while True:
        exchange.write(b" " * 65_536)


def test_an_endless_answer_is_cut_at_the_limit() -> None:
    with serving(endless) as server:
        endpoint = quick(server.url, largest_response=1_000_000)
        with pytest.raises(EndpointTooLarge, match="1000000 bytes"):
            endpoint.select(SELECT)
        assert 1_000_000 < endpoint.measures.bytes_received < 2_000_000
        assert endpoint.measures.requests == 1


def test_a_small_answer_that_swells_is_cut_at_the_limit() -> None:
    bomb = gzip.compress(b" " * 5_000_000)
    with serving(saying(200, bomb, Content_Encoding="gzip")) as server, pytest.raises(EndpointTooLarge):
        quick(server.url, largest_response=1_000_000).select(SELECT)


@pytest.mark.parametrize(
    ("taken", "tried"),
    [
        ((QueryMethod.POST_FORM,), [QueryMethod.POST_FORM]),
        ((QueryMethod.POST_DIRECT,), [QueryMethod.POST_FORM, QueryMethod.POST_DIRECT]),
        ((QueryMethod.GET,), [QueryMethod.POST_FORM, QueryMethod.POST_DIRECT, QueryMethod.GET]),
    ],
)
def test_the_way_that_an_endpoint_takes_is_found_and_remembered(
    taken: tuple[QueryMethod, ...], tried: list[QueryMethod]
) -> None:
    with serving(sparql(Store(), methods=taken)) as server:
        endpoint = quick(server.url)
        endpoint.select(SELECT)
        endpoint.select(SELECT)
        assert server.methods == [*tried, taken[0]]
        assert endpoint.query_method is taken[0]
        with pytest.raises(EndpointRefused) as caught:
            endpoint.select("SELECT nonsense")
        assert caught.value.status == 400
        assert len(server.heard) == len(tried) + 2


def test_a_way_that_is_taken_no_longer_is_left() -> None:
    store = Store()
    with serving(in_turn(sparql(store), sparql(store, methods=(QueryMethod.GET,)))) as server:
        endpoint = quick(server.url)
        endpoint.select(SELECT)
        endpoint.select(SELECT)
        assert endpoint.query_method is QueryMethod.GET


def test_a_query_too_long_for_an_address_is_not_sent() -> None:
    with serving(sparql(Store())) as server:
        with pytest.raises(EndpointRefused, match="too long") as caught:
            quick(server.url, query_method=QueryMethod.GET).select(SELECT + "#" * 5000)
        assert caught.value.status == 414
        assert server.heard == []


def test_no_more_requests_at_once_than_allowed_and_many_threads_may_ask() -> None:
    inside: set[int] = set()
    most = 0
    lock = threading.Lock()

    def count(exchange: Exchange) -> None:
        nonlocal most
        with lock:
            inside.add(id(exchange))
            most = max(most, len(inside))
        time.sleep(0.02)
        with lock:
            inside.discard(id(exchange))
        exchange.answer(200, ONE_ROW)

    with serving(count) as server:
        endpoint = quick(server.url, limits=Limits(concurrent=3))
        futures = [endpoint.submit(SELECT, endpoint.deadline(5)) for _ in range(12)]
        assert [future.result(5) for future in futures] == [ONE] * 12
    assert most == 3


def test_requests_per_second() -> None:
    with serving(saying(200)) as server:
        endpoint = quick(server.url, limits=Limits(per_second=20))
        started = time.monotonic()
        for _ in range(5):
            endpoint.select(SELECT)
        assert time.monotonic() - started >= 4 / 20
        slow = quick(server.url, limits=Limits(per_second=0.1))
        slow.select(SELECT)
        with pytest.raises(EndpointBusy, match="per second"):
            slow.select(SELECT, timeout=0.2)
        assert len(server.heard) == 6
