"""Killing the engine and the server: subscribers go on without a gap or a double, and what was taken is not lost."""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from headwater.errors import SettingError
from headwater.server.http_server import check_settings
from headwater.server.server_settings import read_server_settings
from tests.server.serving import COUNT, Server, serving, wait_for

TICKS = 40


def expected(count: int) -> list[tuple[int, str]]:
    return [(0, "1"), *((number, "2") for number in range(1, count))]


def found_in(event: dict[str, Any]) -> tuple[int, str]:
    return event["time_us"] // 1_000_000, event["results"]["bindings"][0]["n"]["value"]


def begin(server: Server) -> None:
    server.client.put("/streams/s")
    server.put_query("q", COUNT)


class Following(threading.Thread):
    """Follows a query and comes back with the id of its last event whenever the connection ends."""

    def __init__(self, server: Server, count: int) -> None:
        super().__init__()
        self.server = server
        self.count = count
        self.found: list[tuple[int, str]] = []
        self.connections = 0
        self.start()

    def run(self) -> None:
        last = "first"
        deadline = time.monotonic() + 200
        while len(self.found) < self.count and time.monotonic() < deadline:
            try:
                self.connections += 1
                with self.server.follow("q", after=last) as events:
                    for event in events:
                        if event["event"] == "answer":
                            last = event["id"]
                            self.found.append(found_in(event))
                            if len(self.found) == self.count:
                                return
            except (httpx.TransportError, AssertionError):
                time.sleep(0.05)


def test_subscribers_go_on_while_the_engine_is_killed(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        begin(server)
        followers = [Following(server, TICKS) for _ in range(3)]
        for number in range(TICKS + 1):
            if number in (10, 20, 30):
                server.kill_engine()
            server.feed_until_taken(number, key=str(number))
        for one in followers:
            one.join(200)
            assert one.found == expected(TICKS)
            assert one.connections == 1, "the connection stays while the engine is away"
        assert server.client.get("/ready").json()["engine_starts"] == 4
        assert server.client.get("/queries/q").json()["status"] == "running"


def test_a_restarted_server_is_gone_on_from_with_the_last_id(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        begin(server)
        one = Following(server, TICKS)
        for number in range(TICKS + 1):
            if number == 15:
                server.kill()
                server.start()
            if number == 28:
                assert server.stop() == 0
                server.start()
            server.feed_until_taken(number, key=str(number))
        one.join(200)
        assert one.found == expected(TICKS)
        assert one.connections >= 3


def test_a_request_while_the_engine_is_away_says_when_to_come_back(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        begin(server)
        server.feed(0, 1)
        server.events("q", 1, after="first")
        process = wait_for(server.engine_process)
        os.kill(process, signal.SIGSTOP)
        os.kill(process, signal.SIGKILL)
        wait_for(lambda: server.client.get("/ready").status_code == 503, "the end")
        refused = server.feed(2, key="k")
        if refused.status_code != 200:
            assert refused.status_code == 503
            assert refused.headers["Retry-After"]
        assert server.client.get("/queries/q/answers/latest").status_code == 200, "answers are read from the log"
        assert server.client.get("/health").status_code == 200
        wait_for(server.is_ready, "the next engine")
        server.feed_until_taken(2, key="k")
        assert [found_in(one) for one in server.events("q", 2, after="first")] == expected(2)


def test_sigterm_ends_event_streams_with_a_reason_and_the_process_with_0(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        begin(server)
        server.feed(0, 1)
        with server.follow("q", after="first") as events:
            next(events)
            assert server.process is not None
            begun = time.monotonic()
            server.process.send_signal(signal.SIGTERM)
            ended = [one["event"] for one in events]
            assert ended == ["end"]
        assert server.process.wait(60) == 0
        assert time.monotonic() - begun < 10
        server.process = None
        assert "Traceback" not in server.log


def test_many_silent_connections_leave_the_server_serving(tmp_path: Path) -> None:
    with serving(tmp_path, "[http]\nhead_seconds = 2\n") as server:
        begin(server)
        silent = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(500)]
        try:
            for number, one in enumerate(silent):
                one.sendall(b"GET /queries HTTP/1.1\r\nHost: x\r\nX-Slow: " if number % 2 else b"G")
            assert server.client.get("/health").status_code == 200
            assert server.feed(0, 1).status_code == 200
            assert server.events("q", 1, after="first")

            def is_closed() -> bool:
                silent[0].settimeout(1)
                try:
                    return silent[0].recv(1) == b""
                except TimeoutError:
                    return False

            wait_for(is_closed, "the end of a silent connection")
        finally:
            for one in silent:
                one.close()


def test_two_servers_do_not_share_a_state(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        other = Server(tmp_path)
        with pytest.raises(AssertionError, match="another server uses the state") as refused:
            other.start()
        assert str(other.port) not in str(refused.value), "what does not listen does not say so"
        assert server.client.get("/ready").status_code == 200


def test_without_tokens_only_loopback_is_listened_at(tmp_path: Path) -> None:
    path = tmp_path / "headwater.toml"
    path.write_text('[server]\nhost = "0.0.0.0"\n')
    with pytest.raises(SettingError, match="loopback only"):
        check_settings(read_server_settings(path, {}))
    path.write_text("")
    assert "no tokens" in check_settings(read_server_settings(path, {}))[0]
