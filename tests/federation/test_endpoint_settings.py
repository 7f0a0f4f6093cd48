"""Credentials and settings of a client, and the client in another process."""

from __future__ import annotations

import logging
import multiprocessing
import pickle

import pytest

from headwater.egress.credentials import Credentials
from headwater.federation.endpoint.client import Endpoint
from headwater.federation.endpoint.endpoint_errors import EndpointBusy, EndpointError, EndpointRefused, EndpointTimeout
from headwater.federation.endpoint.endpoint_settings import EndpointSettings
from tests.federation.servers import NO_ROWS, Exchange, serving

SELECT = "SELECT ?x WHERE { BIND(1 AS ?x) }"


def good(exchange: Exchange) -> None:
    exchange.answer(200, NO_ROWS)


def test_secrets_are_sent_and_never_shown(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with serving(lambda exchange: exchange.answer(401)) as server:
        address = server.url.replace("http://", "http://anna:hunter2@")
        settings = EndpointSettings(address, seed=1)
        with pytest.raises(EndpointRefused, match="credentials") as caught:
            Endpoint(settings).select(SELECT)
        assert server.heard[0].headers["Authorization"] == "Basic YW5uYTpodW50ZXIy"
    shown = f"{settings!r} {caught.value!r} {caught.value} {Endpoint(settings)!r} {caplog.text}"
    assert "hunter2" not in shown and "YW5uYTpodW50ZXIy" not in shown


@pytest.mark.parametrize(
    ("text", "headers"),
    [
        ("Bearer abc", {"Authorization": "Bearer abc"}),
        ("Basic anna:a:b", {"Authorization": "Basic YW5uYTphOmI="}),
        ("X-Key: 1\nX-Other: two", {"X-Key": "1", "X-Other": "two"}),
    ],
)
def test_credentials_come_from_the_environment(text: str, headers: dict[str, str]) -> None:
    url = "https://data.example.org:8890/sparql"
    held = {"HEADWATER_AUTH_ANY_NAME": f"https://data.example.org:8890 {text}"}
    assert Credentials.from_environment(url, held).as_headers() == headers
    other = {"HEADWATER_AUTH_ANY_NAME": f"https://data.example.org {text}"}
    assert Credentials.from_environment(url, other).as_headers() == {}


def test_the_environment_of_the_asking_process_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(good) as server:
        endpoint = Endpoint(server.url)
        origin = server.url.removesuffix("/sparql")
        monkeypatch.setenv("HEADWATER_AUTH_LOCAL", f"{origin} Bearer fromhere")
        endpoint.select(SELECT)
        assert server.heard[0].headers["Authorization"] == "Bearer fromhere"


def test_a_badly_written_secret_is_not_repeated() -> None:
    with pytest.raises(ValueError, match="HEADWATER_AUTH_MINE holds none of") as caught:
        Credentials.from_environment("http://example.org/", {"HEADWATER_AUTH_MINE": "http://example.org s3cret"})
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize(
    "wrong",
    [{"url": "ftp://example.org/"}, {"url": "urn:x"}, {"url": "http://"}, {"read_timeout": 0.0}, {"retries": -1}],
)
def test_settings_that_cannot_work_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"http://|above zero|negative"):
        EndpointSettings(**{"url": "http://example.org/", **wrong})  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", [EndpointTimeout, EndpointRefused, EndpointBusy])
def test_errors_travel_between_processes(kind: type[EndpointError]) -> None:
    error = kind("http://e/", "said so", status=429, is_retryable=True, retry_after=3.0)
    copied = pickle.loads(pickle.dumps(error))
    assert type(copied) is kind
    assert (str(copied), copied.status, copied.is_retryable, copied.retry_after) == (str(error), 429, True, 3.0)


def ask_in_child(endpoint: Endpoint, answers: multiprocessing.Queue[object]) -> None:
    try:
        answers.put((len(endpoint.select(SELECT, timeout=5.0).rows), endpoint.measures.requests))
    except EndpointError as error:
        answers.put(str(error))


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_client_goes_through_pickle_and_fork() -> None:
    with serving(good) as server:
        endpoint = Endpoint(server.url)
        endpoint.select(SELECT)
        copied = pickle.loads(pickle.dumps(endpoint))
        assert copied.settings == endpoint.settings
        assert copied.measures.requests == 0
        context = multiprocessing.get_context("fork")
        answers = context.Queue()
        child = context.Process(target=ask_in_child, args=(endpoint, answers))
        child.start()
        assert answers.get(timeout=10) == (0, 1)
        child.join(5)
        # The connection of the parent is its own still.
        assert endpoint.select(SELECT).rows == ()
        assert endpoint.measures.requests == 2


def test_after_closing_the_next_call_opens_again() -> None:
    with serving(good) as server:
        endpoint = Endpoint(server.url)
        endpoint.close()
        assert endpoint.select(SELECT).rows == ()
        endpoint.close()
        assert endpoint.select(SELECT).rows == ()
