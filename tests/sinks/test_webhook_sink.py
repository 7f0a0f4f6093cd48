"""Answers to a web address: what is sent, what is tried again, what is refused."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from pyoxigraph import Literal, NamedNode, Triple

import headwater as hw
from headwater.sinks import webhook_sink
from headwater.sinks.sink_addresses import sink_at

SECOND = 1_000_000


@dataclass
class Hook:
    """A web address on loopback: what it received, and the statuses that it gives first."""

    url: str = ""
    statuses: list[int] = field(default_factory=list)
    received: list[tuple[dict[str, str], bytes]] = field(default_factory=list)

    @property
    def lines(self) -> list[dict[str, object]]:
        return [json.loads(line) for _, body in self.received for line in body.decode().splitlines()]


@pytest.fixture
def hook() -> Iterator[Hook]:
    found = Hook()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            status = found.statuses.pop(0) if found.statuses else 204
            if status == 204:
                found.received.append((dict(self.headers.items()), body))
            self.send_response(status)
            if status == 302:
                self.send_header("Location", "http://127.0.0.1:1/elsewhere")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            return

    server = HTTPServer(("127.0.0.1", 0), Handler)
    found.url = f"http://127.0.0.1:{server.server_port}/hook?key=secret"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield found
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhook_sink, "_FIRST_WAIT_SECONDS", 0.001)
    monkeypatch.setattr(webhook_sink, "_LONGEST_WAIT_SECONDS", 0.01)


def run(sink: hw.WebhookSink, count: int = 3, egress: list[str] | None = None) -> None:
    engine = hw.Engine(in_process=True, egress=egress)
    triple = Triple(NamedNode("urn:x"), NamedNode("urn:v"), Literal(1))
    engine.stream("s", hw.memory([(second * SECOND, [triple]) for second in range(count)]))
    engine.register("SELECT (COUNT(?v) AS ?n) FROM STREAM <s> [RANGE 1s STEP 1s] WHERE { ?x <urn:v> ?v }", name="busy")
    engine.run(sinks=[sink])


def test_each_answer_is_a_line_and_each_batch_has_a_key(hook: Hook, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOOK_TOKEN", "abc")
    run(hw.WebhookSink(hook.url, headers={"Authorization": "Bearer ${env:HOOK_TOKEN}"}))
    assert len(hook.lines) >= 3
    assert all("busy" in json.dumps(line) for line in hook.lines)
    headers = hook.received[0][0]
    assert headers["Authorization"] == "Bearer abc"
    assert headers["Content-Type"] == "application/x-ndjson"
    keys = [one["Idempotency-Key"] for one, _ in hook.received]
    assert len(set(keys)) == len(keys)


def test_many_answers_go_in_several_requests(hook: Hook, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhook_sink, "_MOST_ANSWERS", 2)
    run(hw.WebhookSink(hook.url), 5)
    assert all(len(body.splitlines()) <= 2 for _, body in hook.received)
    assert len({headers["Idempotency-Key"] for headers, _ in hook.received}) == len(hook.received) >= 3


def test_what_may_pass_is_tried_again(hook: Hook) -> None:
    hook.statuses = [503, 429, 500]
    run(hw.WebhookSink(hook.url))
    assert not hook.statuses
    assert len(hook.lines) >= 3


@pytest.mark.parametrize(
    ("statuses", "words"), [([503] * 3, "status 503"), ([403], "status 403"), ([302], "status 302")]
)
def test_what_does_not_pass_ends_the_run_without_secrets(hook: Hook, statuses: list[int], words: str) -> None:
    hook.statuses = list(statuses)
    with pytest.raises(hw.SinkError, match=words) as failure:
        run(hw.WebhookSink(hook.url, retries=2))
    assert "secret" not in str(failure.value)
    assert not hook.statuses
    assert not hook.received


def test_the_policy_of_the_engine_holds(hook: Hook) -> None:
    with pytest.raises(hw.EgressError):
        run(hw.WebhookSink(hook.url), egress=["https://example.org/"])
    assert not hook.received
    run(hw.WebhookSink(hook.url), egress=[hook.url.partition("?")[0]])
    assert hook.received


def test_a_server_that_is_gone_is_reported(hook: Hook) -> None:
    with pytest.raises(hw.SinkError, match="did not take the answers"):
        run(hw.WebhookSink("http://127.0.0.1:9/hook", retries=1, timeout=1))


def test_addresses() -> None:
    assert isinstance(sink_at("https://example.org/hook"), hw.WebhookSink)
    with pytest.raises(hw.SettingError, match="sent JSON"):
        sink_at("https://example.org/hook", format="csv")
    with pytest.raises(hw.SettingError):
        hw.WebhookSink("ftp://example.org/hook")
    with pytest.raises(hw.SettingError, match="retries"):
        hw.WebhookSink("https://example.org/hook", retries=-1)
