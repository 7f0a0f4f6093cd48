"""SERVICE ?endpoint, SERVICE SILENT, and one client for all who ask the same endpoint."""

from __future__ import annotations

import time

import pytest
from pyoxigraph import Quad, Store

from headwater.egress.policy import EgressPolicy
from headwater.federation.endpoint.endpoint_errors import EndpointForbidden
from headwater.federation.endpoint.endpoint_settings import EndpointSettings
from headwater.federation.endpoint.endpoints import EndpointFromKey, Endpoints
from headwater.federation.endpoint.limits import Limits
from headwater.federation.endpoint.remote import Remote
from headwater.terms.model import Literal, NamedNode, Row, Variable
from tests.federation.servers import Exchange, Served, serving, sparql

EX = "http://example.org/"
NAME = NamedNode(EX + "name")
A = NamedNode(EX + "a")
E, X, N = Variable("e"), Variable("x"), Variable("n")


def store(name: str) -> Store:
    found = Store()
    found.add(Quad(A, NAME, Literal(name)))
    return found


def test_one_client_per_address_with_its_settings() -> None:
    endpoints = Endpoints([EndpointSettings("http://example.org/sparql", limits=Limits(per_second=5))])
    known = endpoints.client_of("http://example.org/sparql")
    assert known is endpoints.client_of("http://example.org/sparql")
    assert known.settings.limits.per_second == 5
    assert endpoints.client_of("http://other.example.org/") is endpoints.client_of("http://other.example.org/")


@pytest.mark.parametrize(
    "address", ["http://example.org.evil.com/sparql", "http://127.0.0.1/admin", "https://example.org/sparql/x", "urn:x"]
)
def test_data_cannot_name_what_is_not_allowed(address: str) -> None:
    endpoints = Endpoints(egress=EgressPolicy(["http://example.org/sparql"]))
    assert endpoints.client_of("http://example.org/sparql/people").name == "http://example.org/sparql/people"
    with pytest.raises(EndpointForbidden, match=r"does not allow|is not asked"):
        endpoints.client_of(address)


def test_each_key_is_asked_where_it_says() -> None:
    with serving(sparql(store("one"))) as first, serving(sparql(store("two"))) as second:
        remote = EndpointFromKey(Endpoints(), E, f"?x {NAME} ?n", ["e", "x"])
        assert isinstance(remote, Remote)
        assert remote.variables == (E, X, N)
        one, two = NamedNode(first.url), NamedNode(second.url)
        found = remote.fetch([(one, A), (two, A), (one, NAME)], timeout=5.0)
        assert found.error is None
        assert found.rows == {
            (one, A): ((one, A, Literal("one")),),
            (two, A): ((two, A, Literal("two")),),
            (one, NAME): (),
        }
        assert (len(first.heard), len(second.heard)) == (1, 1)


def test_an_address_that_is_none_fails_alone_and_a_slow_one_keeps_nobody() -> None:
    running: list[Served] = []

    def late(exchange: Exchange) -> None:
        running[0].over.wait(10)

    with serving(late) as slow, serving(sparql(store("one"))) as good:
        running.append(slow)
        remote = EndpointFromKey(Endpoints(), E, f"?x {NAME} ?n", ["x", "e"])
        ok: Row = (A, NamedNode(good.url))
        started = time.monotonic()
        found = remote.fetch([(A, NamedNode(slow.url)), (A, None), (A, Literal("x")), (A, NamedNode("urn:x")), ok], 0.6)
        assert time.monotonic() - started < 3.0
        assert found.rows == {ok: ((NamedNode(good.url), A, Literal("one")),)}
        assert found.error is not None


def test_there_are_no_pages_of_endpoints_that_nobody_knows() -> None:
    (page,) = EndpointFromKey(Endpoints(), E, f"?x {NAME} ?n", ["e"]).pages(10)
    assert "lazily" in (page.error or "")
    with pytest.raises(ValueError, match="whom to ask"):
        EndpointFromKey(Endpoints(), E, f"?x {NAME} ?n", ["x"])
    with pytest.raises(ValueError, match=r"does not show \?z"):
        EndpointFromKey(Endpoints(), E, f"?x {NAME} ?n", ["e", "z"])
