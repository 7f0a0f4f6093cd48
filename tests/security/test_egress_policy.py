"""Which addresses a policy allows: spellings of one address, ways around a prefix, and IP addresses behind names."""

from __future__ import annotations

import ipaddress
import pickle
import socket
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

import headwater as hw
from headwater.egress.credentials import Credentials
from headwater.egress.documents import WebError, fetch_document
from headwater.egress.host_resolution import resolve_allowed
from headwater.egress.policy import EgressPolicy
from headwater.egress.transport import make_client
from headwater.egress.web_addresses import is_below, is_public, plain_address
from headwater.federation.endpoint.client import Endpoint
from headwater.federation.endpoint.endpoint_errors import EndpointForbidden
from headwater.terms.checking.input_limits import DOCUMENT_VARIABLE
from tests.federation.servers import NO_ROWS, serving

LISTED = EgressPolicy(["https://example.org/sparql", "http://example.org:8080", "https://*.example.com/data/"])


def allows(policy: EgressPolicy, url: str) -> bool:
    try:
        policy.check_url(url)
    except hw.EgressError:
        return False
    return True


@pytest.mark.parametrize(
    "url",
    [
        "https://example.org/sparql",
        "HTTPS://EXAMPLE.ORG:443/sparql/",
        "https://example.org./sparql/people?query=x#y",
        "https://example.org/other/../sparql",
        "https://example.org/./sparql",
        "http://example.org:8080/anything",
        "https://a.example.com/data/x",
        "https://a.b.example.com/data/",
    ],
)
def test_an_allowed_address_is_allowed_in_every_spelling(url: str) -> None:
    assert allows(LISTED, url)


@pytest.mark.parametrize(
    "url",
    [
        "http://example.org/sparql",
        "https://example.org:8443/sparql",
        "https://example.org/sparql2",
        "https://example.org/SPARQL",
        "https://example.org/sparql/../admin",
        "https://example.org/sparql/%2e%2e/admin",
        "https://example.org/sparql/%252e%252e/admin",
        "https://example.org/sparql/..%2fadmin",
        "https://example.org/sparql/..%5cadmin",
        "https://example.org/sparql/..;v=1/admin",
        "https://example.org/sparql/%2e%2e%3b/admin",
        "https://example.org/sparql\\..\\admin",
        "https://example.org.evil.net/sparql",
        "https://example.org@evil.net/sparql",
        "https://evil.net\\@example.org/sparql",
        "https://evil.net/sparql?https://example.org/sparql",
        "https://example.com/data/",
        "https://badexample.com/data/",
        "https://a.example.com/datax",
        "https://ex\u0430mple.org/sparql",
        "ftp://example.org/sparql",
        "https://example.org:0/sparql",
        "https://example.org:99999/sparql",
        "https://exam ple.org/sparql",
        "https:///sparql",
        "urn:x",
        "file:///etc/passwd",
    ],
)
def test_everything_else_is_not(url: str) -> None:
    assert not allows(LISTED, url)


def test_a_host_in_unicode_is_its_name_in_ascii() -> None:
    assert allows(EgressPolicy(["https://bücher.example/"]), "https://xn--bcher-kva.example/a")
    assert allows(EgressPolicy(["https://xn--bcher-kva.example"]), "https://BÜCHER.example/a")


@pytest.mark.parametrize("host", ["2130706433", "0177.0.0.1", "0x7f.0.0.1", "127.1", "0", "0x7f000001"])
def test_ip_addresses_in_unusual_spellings_are_refused(host: str) -> None:
    assert not allows(EgressPolicy(["http://*", "http://127.0.0.1"], ["0.0.0.0/0"]), f"http://{host}/")


PRIVATE = [
    "127.0.0.1",
    "127.9.9.9",
    "0.0.0.0",
    "10.0.0.1",
    "172.16.0.1",
    "192.168.0.1",
    "169.254.169.254",
    "100.64.0.1",
    "198.18.0.1",
    "192.0.2.1",
    "224.0.0.1",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::ffff:127.0.0.1",
    "::ffff:169.254.169.254",
    "::7f00:1",
    "64:ff9b::7f00:1",
    "2002:7f00:1::",
    "fe80::1",
    "fc00::1",
    "fec0::1",
    "ff02::1",
    "2001:db8::1",
]


@pytest.mark.parametrize("text", PRIVATE)
def test_what_is_not_public_is_refused_unless_its_network_is_listed(text: str) -> None:
    address = ipaddress.ip_address(text)
    everything = EgressPolicy(["http://*"])
    assert not everything.allows_ip("name.example", 80, address)
    host = f"[{text}]" if ":" in text else text
    assert not allows(everything, f"http://{host}/")
    plain = plain_address(address)
    assert EgressPolicy(["http://*"], [str(plain)]).allows_ip("name.example", 80, address)


@pytest.mark.parametrize("text", ["8.8.8.8", "2606:4700::1111", "::ffff:8.8.8.8"])
def test_public_addresses_are_allowed(text: str) -> None:
    assert is_public(plain_address(ipaddress.ip_address(text)))


def test_an_ip_address_that_is_spelled_out_is_allowed_there_alone() -> None:
    policy = EgressPolicy(["http://127.0.0.1:7878/query", "http://*", "http://*:7878", "http://*:9000"])
    assert allows(policy, "http://127.0.0.1:7878/query")
    assert not allows(policy, "http://127.0.0.1:7878/admin")
    assert not allows(policy, "http://127.0.0.1:9000/")
    loopback = ipaddress.ip_address("127.0.0.1")
    assert policy.allows_ip("127.0.0.1", 7878, loopback)
    assert not policy.allows_ip("127.0.0.1", 9000, loopback)
    assert not policy.allows_ip("localhost", 7878, loopback)


def test_without_arguments_nothing_is_allowed() -> None:
    assert not allows(EgressPolicy(), "https://example.org/")


@pytest.mark.parametrize(
    "given",
    [
        "https://example.org",
        ["example.org"],
        ["https://user:pw@example.org"],
        ["https://example.org/?a"],
        ["gopher://example.org"],
        {"allowed": []},
        {"networks": ["everywhere"]},
        3,
    ],
)
def test_policies_that_cannot_be_right_are_refused(given: Any) -> None:
    with pytest.raises(hw.SettingError) as caught:
        hw.Engine(in_process=True, egress=given)
    assert "pw" not in str(caught.value)


def test_a_policy_is_a_plain_value() -> None:
    policy = EgressPolicy.of({"allow": ["https://example.org/a"], "networks": ["10.0.0.0/8"]})
    assert policy == pickle.loads(pickle.dumps(policy)) and policy is not None
    assert [str(rule) for rule in LISTED.allow] == [
        "https://example.org/sparql",
        "http://example.org:8080/",
        "https://*.example.com/data/",
    ]


@given(st.lists(st.sampled_from(["..", ".", "%2e", "%2E%2e", "a", "", "%2f", "%5c", "..%2f", "%25", "2e"]), max_size=8))
def test_no_path_leaves_its_prefix(segments: list[str]) -> None:
    path = "/sparql/" + "/".join(segments)
    try:
        inside = is_below(path, "/sparql")
    except hw.SettingError:
        return
    sent = httpx.URL(f"https://example.org{path}").path
    resolved: list[str] = []
    for segment in sent.replace("\\", "/").split("/"):
        resolved = resolved[:-1] if segment == ".." else [*resolved, segment] if segment not in ("", ".") else resolved
    assert not inside or resolved[:1] == ["sparql"]


def resolve_to(monkeypatch: pytest.MonkeyPatch, *answers: str) -> list[str]:
    """Has every name resolved to the given IP addresses in turn; gives the names that were asked."""
    asked: list[str] = []
    real = socket.getaddrinfo

    def answer(host: Any, port: Any, *args: Any, **kwargs: Any) -> Any:
        if host is None or host.replace(".", "").isdigit():
            return real(host, port, *args, **kwargs)
        asked.append(host)
        return real(answers[min(len(asked), len(answers)) - 1], port, *args, **kwargs)

    monkeypatch.setattr(socket, "getaddrinfo", answer)
    return asked


def test_a_name_that_leads_to_loopback_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(lambda exchange: exchange.answer(200, NO_ROWS)) as server:
        port = httpx.URL(server.url).port
        resolve_to(monkeypatch, "127.0.0.1")
        url = f"http://public.example:{port}/sparql"
        policy = EgressPolicy([f"http://*:{port}"])
        with pytest.raises(EndpointForbidden, match="not in the public Internet"):
            Endpoint(url, egress=policy).select("SELECT * {}")
        with pytest.raises(hw.EgressError):
            fetch_document(url, policy)
        assert server.heard == []
        allowed = EgressPolicy([f"http://*:{port}"], ["127.0.0.0/8"])
        assert Endpoint(url, egress=allowed).select("SELECT * {}").rows == ()


def test_a_name_is_resolved_once_and_connected_to_what_was_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(lambda exchange: exchange.answer(200, NO_ROWS)) as server:
        port = httpx.URL(server.url).port
        assert port is not None
        asked = resolve_to(monkeypatch, "127.0.0.2", "127.0.0.1")
        policy = EgressPolicy([f"http://*:{port}"], ["127.0.0.2"])
        with make_client(policy) as client, pytest.raises(httpx.ConnectError):
            # Nobody listens at 127.0.0.2; a second look at the name would have led to the server.
            client.get(f"http://rebound.example:{port}/")
        assert asked == ["rebound.example"] and server.heard == []
        with pytest.raises(hw.EgressError):
            resolve_allowed(policy, "rebound.example", port)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_checked_like_a_first_request(status: int) -> None:
    with (
        serving(lambda exchange: exchange.answer(200, NO_ROWS)) as inside,
        serving(lambda exchange: exchange.answer(status, Location=inside.url)) as outside,
    ):
        policy = EgressPolicy([outside.url])
        with pytest.raises(EndpointForbidden, match="does not allow"):
            Endpoint(outside.url, egress=policy).select("SELECT * {}")
        with pytest.raises(hw.EgressError):
            fetch_document(outside.url, policy)
        assert inside.heard == []
        both = EgressPolicy([outside.url, inside.url])
        assert Endpoint(outside.url, egress=both).select("SELECT * {}").rows == ()


def test_credentials_belong_to_scheme_host_and_port() -> None:
    held = {"HEADWATER_AUTH_API_BANK_ORG": "https://api.bank.org Bearer s3cret"}
    assert Credentials.from_environment("https://API.bank.org:443/x", held).bearer == "s3cret"
    for url in (
        "https://api-bank.org/",
        "https://api_bank.org/",
        "http://api.bank.org/",
        "https://api.bank.org:8443/",
        "https://api.bank.org.evil.net/",
        "https://bank.org/",
    ):
        assert Credentials.from_environment(url, held) == Credentials()


def test_credentials_of_another_time_are_refused_without_showing_them() -> None:
    for text in (
        "Bearer s3cret",
        "s3cret",
        "https://example.org/path Bearer s3cret",
        "https://u:s3cret@example.org B x",
    ):
        with pytest.raises(hw.SettingError, match="HEADWATER_AUTH_EXAMPLE_ORG") as caught:
            Credentials.from_environment("https://example.org/", {"HEADWATER_AUTH_EXAMPLE_ORG": text})
        assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize("text", ["Bearer s3crét", "X-Key: s3crét", "Bearer s3cret\nX-Key", "Bearer s3cret\x7f"])
def test_credentials_that_cannot_be_sent_are_refused_without_showing_them(text: str) -> None:
    held = {"HEADWATER_AUTH_X": f"https://example.org {text}"}
    with pytest.raises(hw.SettingError, match="HEADWATER_AUTH_X") as caught:
        Credentials.from_environment("https://example.org/", held)
    assert "s3cr" not in str(caught.value)


def test_credentials_come_from_a_file(tmp_path: Any) -> None:
    path = tmp_path / "auth"
    path.write_text("# who asks whom\n\nhttps://example.org Basic anna:s3cret\nmqtts://broker X-Key: 1\n")
    held = {"HEADWATER_AUTH_FILE": str(path)}
    assert Credentials.from_environment("https://example.org/sparql", held).basic == ("anna", "s3cret")
    assert Credentials.from_environment("mqtts://broker:8883", held).as_headers() == {"X-Key": "1"}
    with pytest.raises(hw.SettingError, match="cannot be read"):
        Credentials.from_environment("https://example.org/", {"HEADWATER_AUTH_FILE": str(tmp_path / "none")})


def test_a_redirect_carries_no_credentials_to_another_origin(monkeypatch: pytest.MonkeyPatch) -> None:
    with (
        serving(lambda exchange: exchange.answer(200, NO_ROWS)) as other,
        serving(lambda exchange: exchange.answer(307, Location=other.url)) as first,
    ):
        origin = first.url.removesuffix("/sparql")
        monkeypatch.setenv("HEADWATER_AUTH_FIRST", f"{origin} Bearer s3cret")
        Endpoint(first.url).select("SELECT * {}")
        fetch_document(first.url)
        fetch_document(first.url.replace("://", "://anna:s3cret@"))
        assert all("Authorization" in exchange.headers for exchange in first.heard)
        assert len(other.heard) == 3
        assert not any("authorization" in map(str.lower, exchange.headers) for exchange in other.heard)


def test_a_document_that_is_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(DOCUMENT_VARIABLE, "1000")
    with serving(lambda exchange: exchange.answer(200, b"x" * 2000)) as server, pytest.raises(WebError, match="1,000"):
        fetch_document(server.url)
