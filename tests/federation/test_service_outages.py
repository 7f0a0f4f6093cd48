"""Queries whose endpoint fails: ticks keep coming in time, old values stay and are marked, the view recovers."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest
from pyoxigraph import Quad, Store

from headwater.egress.credentials import Credentials
from headwater.execution.answers import Answer
from headwater.federation.endpoint.endpoint_settings import EndpointSettings
from headwater.federation.service_settings import ServiceSettings
from headwater.federation.services import Services
from headwater.terms.model import Literal
from tests.federation.servers import Exchange, Served, serving, sparql
from tests.federation.service_runs import Run, heartbeat, iri, mention, shown
from tests.free_ports import free_port

GOAL = 0.25


class Endpoint:
    """A server that does what `mode` says."""

    def __init__(self) -> None:
        self.mode = "well"
        self.store = Store()
        self._well = sparql(self.store)
        self.served: Served | None = None
        self.set("anna", 1)
        self.set("bert", 1)

    def set(self, who: str, count: int) -> None:
        for quad in list(self.store.quads_for_pattern(iri(who), iri("followers"), None)):
            self.store.remove(quad)
        self.store.add(Quad(iri(who), iri("followers"), Literal(count)))

    def __call__(self, exchange: Exchange) -> None:
        match self.mode:
            case "well":
                self._well(exchange)
            case "errors":
                exchange.answer(500)
            case "garbage":
                exchange.answer(200, b"<html>sorry</html>", "text/html")
            case "half":
                exchange.begin(1000)
                exchange.write(b'{"head": {"vars": ["hw_')
                exchange.hang_up()
            case "late":
                assert self.served is not None
                self.served.over.wait(10)
            case "busy":
                exchange.answer(429, Retry_After="1")


@pytest.fixture
def endpoint() -> Iterator[tuple[Endpoint, str]]:
    behaviour = Endpoint()
    with serving(behaviour) as served:
        behaviour.served = served
        yield behaviour, served.url


def query(url: str, options: str, silent: str = "") -> str:
    return f"""SELECT ?who ?n FROM STREAM :mentions [RANGE 600s STEP 1s]
               WHERE {{ ?who :mentionedIn ?p . SERVICE {silent} <{url}> {{ ?who :followers ?n }} {options} }}"""


def timed(run: Run, second: float) -> tuple[Answer, float]:
    begun = time.monotonic()
    (answer,) = run.feed([heartbeat(second)])
    return answer, time.monotonic() - begun


@pytest.mark.parametrize("strategy", ["VIEW", "LOOP", "HASH"])
@pytest.mark.parametrize("mode", ["errors", "garbage", "half", "late", "busy"])
def test_ticks_come_in_time_with_old_values_that_are_marked(
    endpoint: tuple[Endpoint, str], mode: str, strategy: str
) -> None:
    behaviour, url = endpoint
    settings = ServiceSettings((EndpointSettings(url, total_timeout=1.0, retries=0),))
    run = Run(query(url, f"OPTION (STRATEGY {strategy}, LATENCY {round(GOAL * 1000)}ms)"), Services(settings))
    run.feed([mention(0.5, "anna"), heartbeat(0.9)])
    ticks = Ticks(run)
    # The first requests also set up what a process needs once.
    ticks.until(lambda answer: shown([answer]) == [[("anna", "1")]] and suspects(answer) == 0)
    behaviour.mode = mode
    behaviour.set("anna", 2)
    before = ticks.count
    marked = ticks.until(lambda answer: suspects(answer) == 1, in_time=GOAL + 0.4)
    assert shown([marked]) == [[("anna", "1")]]
    assert marked.quality is not None
    assert marked.quality.accuracy < 1.0
    assert ticks.count > before
    behaviour.mode = "well"
    recovered = ticks.until(lambda answer: suspects(answer) == 0)
    assert shown([recovered]) == [[("anna", "2")]]


class Ticks:
    """One tick after the other, as fast as they are answered or every 50 ms."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.count = 0

    def until(self, wanted: Callable[[Answer], bool], in_time: float | None = None) -> Answer:
        """Go on until an answer is as it should be; every answer comes in time."""
        end = time.monotonic() + 10
        while True:
            self.count += 1
            answer, seconds = timed(self.run, self.count + 0.95)
            assert in_time is None or seconds < in_time
            if wanted(answer):
                return answer
            assert time.monotonic() < end, answer
            time.sleep(0.05)


def suspects(answer: Answer) -> int:
    assert answer.quality is not None
    return answer.quality.suspects


def nobody() -> str:
    return f"http://127.0.0.1:{free_port()}/sparql"


def test_an_endpoint_that_never_answered_is_an_error_of_plain_sparql() -> None:
    (notice,) = Run(query(nobody(), ""), Services()).feed([mention(0.5, "anna"), heartbeat(1.5)])
    assert notice.suspended is not None and "check the address" in notice.suspended


def test_a_request_that_cannot_be_sent_is_an_error_of_plain_sparql() -> None:
    """No header has such a character; without an error the query would answer nothing for ever."""
    url = nobody()
    settings = ServiceSettings((EndpointSettings(url, Credentials(headers=(("X-Key", "é"),))),))
    (notice,) = Run(query(url, ""), Services(settings)).feed([mention(0.5, "anna"), heartbeat(1.5)])
    assert notice.suspended is not None


def test_with_options_the_query_goes_on_and_says_what_is_missing() -> None:
    (answer,) = Run(query(nobody(), "OPTION (BUDGET 5)"), Services()).feed([mention(0.5, "anna"), heartbeat(1.5)])
    assert answer.rows == ()
    assert answer.quality is not None
    assert (answer.quality.missing, answer.quality.suspects, answer.quality.accuracy) == (1, 1, 0.0)


@pytest.mark.parametrize("options", ["", "OPTION (BUDGET 5)", "OPTION (STRATEGY HASH)"])
def test_under_silent_what_fails_is_a_solution_without_bindings(options: str) -> None:
    text = query(nobody(), options, "SILENT")
    elements = [mention(0.5, "anna"), mention(0.7, "bert"), heartbeat(1.5)]
    answers = Run(text, Services()).feed(elements)
    assert shown(answers) == [[("anna", "-"), ("bert", "-")]]
    assert answers == Run(query(nobody(), "", "SILENT")).feed(elements)


def test_plain_sparql_goes_on_once_the_endpoint_has_answered(endpoint: tuple[Endpoint, str]) -> None:
    behaviour, url = endpoint
    settings = ServiceSettings((EndpointSettings(url, total_timeout=1.0, retries=0),))
    run = Run(query(url, ""), Services(settings))
    run.feed([mention(0.5, "anna"), heartbeat(1.5)])
    behaviour.mode = "errors"
    (answer,) = run.feed([mention(1.6, "bert"), heartbeat(2.5)])
    assert shown([answer]) == [[("anna", "1")]]
    assert answer.quality is not None
    assert (answer.quality.missing, answer.quality.suspects) == (1, 2)
    behaviour.mode = "well"
    answer, _ = timed(run, 3.5)
    assert shown([answer]) == [[("anna", "1"), ("bert", "1")]]


def test_a_name_that_is_no_address_fails_when_it_is_asked() -> None:
    elements = [mention(0.5, "anna"), heartbeat(1.5)]
    (notice,) = Run(query("urn:nowhere", ""), Services()).feed(elements)
    assert notice.suspended is not None and "http:// or https://" in notice.suspended
    assert shown(Run(query("urn:nowhere", "", "SILENT"), Services()).feed(elements)) == [[("anna", "-")]]
