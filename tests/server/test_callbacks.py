"""Callbacks: every answer once and in order, signed, over failures of both sides, and only to allowed addresses."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from headwater.server.callbacks import sign
from tests.server.serving import serving, wait_for

SECRET = "a secret of the tests"


class Hook(BaseHTTPRequestHandler):
    """Takes answers; refuses the first times."""

    taken: list[tuple[str, int]]
    refusals: int
    wrong: list[str]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers["X-Headwater-Signature"] != sign(SECRET, body):
            type(self).wrong.append(self.headers["X-Headwater-Signature"])
        if self.refusals:
            type(self).refusals -= 1
            self.send_response(503)
        else:
            self.taken.append((self.headers["Idempotency-Key"], json.loads(body)["time_us"] // 1_000_000))
            self.send_response(204)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def hook() -> Iterator[ThreadingHTTPServer]:
    Hook.taken, Hook.refusals, Hook.wrong = [], 2, []
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hook)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def test_each_answer_is_sent_until_it_is_taken_also_over_restarts(tmp_path: Path, hook: ThreadingHTTPServer) -> None:
    url = f"http://127.0.0.1:{hook.server_port}/hook"
    settings = f'[server]\ncallback_secret = "{SECRET}"\n\n[egress]\nallow = ["{url}"]\n'
    with serving(tmp_path, settings) as server:
        server.client.put("/streams/s")
        refused = server.put_query("q", callback="http://127.0.0.1:1/other")
        assert refused.status_code == 403, "the egress policy"
        assert server.put_query("q", callback="nonsense").status_code == 400
        assert server.put_query("q", callback=url).status_code == 201
        server.feed(0, 1, 2, 3)
        wait_for(lambda: len(Hook.taken) == 3)
        server.kill_engine()
        server.feed_until_taken(4, 5, key="a")
        wait_for(lambda: len(Hook.taken) == 5)
        assert server.stop() == 0
        server.start()
        server.feed_until_taken(6, 7, key="b")
        wait_for(lambda: len(Hook.taken) >= 7)
    assert [second for _, second in Hook.taken] == list(range(7))
    assert len({key for key, _ in Hook.taken}) == 7
    assert not Hook.wrong


def test_without_a_secret_there_are_no_callbacks(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        server.client.put("/streams/s")
        assert server.put_query("q", callback="http://127.0.0.1:1/").status_code == 400
