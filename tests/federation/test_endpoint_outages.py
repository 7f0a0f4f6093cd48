"""The whole of it over HTTP: an endpoint misbehaves, ticks keep coming in time, old values are marked, it recovers."""

from __future__ import annotations

import time
from collections.abc import Iterable

import pytest
from pyoxigraph import Quad, Store

from headwater.federation.endpoint.bound_fetcher import BoundFetcher
from headwater.federation.endpoint.client import Endpoint
from headwater.federation.endpoint.endpoint_settings import EndpointSettings
from headwater.federation.endpoint.request_queries import RequestQueries
from headwater.federation.policy.maintainer import Maintainer
from headwater.federation.policy.policies import make_policy
from headwater.federation.view.change_model import ChangeModel
from headwater.federation.view.lifetime import WindowKey
from headwater.federation.view.local_view import LocalView
from headwater.federation.view.service_quality import Goals
from headwater.terms.model import MILLISECOND, XSD, Literal, NamedNode, Row
from tests.federation.servers import Behaviour, Exchange, Served, serving, sparql

FOLLOWERS = NamedNode("http://example.org/followers")
KEYS: list[Row] = [(NamedNode(f"http://example.org/{n}"),) for n in range(8)]
SLIDE = 50 * MILLISECOND
LATENCY = 0.2


class Switched:
    """An endpoint over a store that begins to misbehave, and stops again, when the test says so."""

    def __init__(self) -> None:
        self.store = Store()
        self.good = sparql(self.store)
        self.now: Behaviour = self.good
        self.server: Served | None = None

    def __call__(self, exchange: Exchange) -> None:
        self.now(exchange)

    def write(self, value: int) -> None:
        self.store.clear()
        number = Literal(str(value), datatype=NamedNode(XSD + "integer"))
        self.store.extend(Quad(key[0], FOLLOWERS, number) for key in KEYS if isinstance(key[0], NamedNode))

    def dies(self, exchange: Exchange) -> None:
        exchange.hang_up()

    def errs(self, exchange: Exchange) -> None:
        exchange.answer(500, b"out of memory", "text/plain")

    def babbles(self, exchange: Exchange) -> None:
        exchange.answer(200, b"<html>It works!</html>", "text/html")

    def breaks_off(self, exchange: Exchange) -> None:
        exchange.begin(length=1000)
        exchange.write(b'{"head":{"vars":["hw_key","who","n"]},"results":{"bindings":[')
        exchange.hang_up()

    def dawdles(self, exchange: Exchange) -> None:
        assert self.server is not None
        self.server.over.wait(10)

    def pushes_back(self, exchange: Exchange) -> None:
        exchange.answer(429, Retry_After="1")


def shown(view: LocalView) -> set[str]:
    return {row[1].value for key in KEYS for row in view.rows(key) or () if isinstance(row[1], Literal)}


def ticks(maintainer: Maintainer, count: int) -> Iterable[float]:
    for _ in range(count):
        started = time.monotonic()
        maintainer.tick([WindowKey(key) for key in KEYS], SLIDE)
        yield time.monotonic() - started


@pytest.mark.parametrize("failure", ["dies", "errs", "babbles", "breaks_off", "dawdles", "pushes_back"])
def test_ticks_keep_coming_while_the_endpoint_misbehaves_and_the_view_recovers(failure: str) -> None:
    behaviour = Switched()
    behaviour.write(1)
    with serving(behaviour) as server:
        behaviour.server = server
        endpoint = Endpoint(EndpointSettings(server.url, total_timeout=0.25, retries=0))
        remote = BoundFetcher(endpoint, RequestQueries.for_pattern(f"?who {FOLLOWERS} ?n", ["who"]))
        view = LocalView(ChangeModel(SLIDE))
        maintainer = Maintainer(view, remote, *make_policy("LRU", view), Goals(latency=LATENCY))
        try:
            maintainer.fill()
            assert list(ticks(maintainer, 3)) and shown(view) == {"1"}
            behaviour.write(2)
            behaviour.now = getattr(behaviour, failure)
            taken = list(ticks(maintainer, 5))
            # ρ holds, but for what a busy machine adds; ten seconds late, or one, would be far from that.
            assert max(taken) < LATENCY + 0.5
            assert "1" in shown(view)
            time.sleep(0.3)
            assert list(ticks(maintainer, 1)) and any(entry.failing_since is not None for entry in view)
            behaviour.now = behaviour.good
            until = time.monotonic() + 8
            while shown(view) != {"2"} and time.monotonic() < until:
                assert max(ticks(maintainer, 1)) < LATENCY + 0.5
                time.sleep(0.02)
            assert shown(view) == {"2"}
            assert all(entry.failing_since is None for entry in view)
        finally:
            maintainer.close()
