"""A server of its own on loopback, in a process or in a thread, for the tests of what it does over HTTP."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from tests.free_ports import free_port

PATIENCE = 120.0
COUNT = "SELECT (COUNT(?v) AS ?n) FROM STREAM <s> [RANGE 2s STEP 1s] WHERE { ?x <urn:v> ?v }"
VALUES = "SELECT ?v FROM STREAM <s> [RANGE 2s STEP 1s] WHERE { ?x <urn:v> ?v }"
TNQ = {"Content-Type": "text/x-timed-nquads"}
INTEGER = "http://www.w3.org/2001/XMLSchema#integer"


def lines(*seconds: int) -> bytes:
    return "".join(f'{one * 1000}\t<urn:x> <urn:v> "{one}"^^<{INTEGER}> .\n' for one in seconds).encode()


def wait_for(is_so: Callable[[], Any], what: str = "it") -> Any:
    end = time.monotonic() + PATIENCE
    while not (found := is_so()):
        assert time.monotonic() < end, f"{what} did not happen"
        time.sleep(0.02)
    return found


class Server:
    """A server process over a state folder; `client` asks it."""

    def __init__(self, folder: Path, settings: str = "", token: str | None = None) -> None:
        self.folder = folder
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.settings = settings
        self.process: subprocess.Popen[bytes] | None = None
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        self.client = httpx.Client(base_url=self.url, headers=headers, timeout=PATIENCE, trust_env=False)

    def start(self) -> Server:
        path = self.folder / "headwater.toml"
        path.write_text(self.settings)
        command = [sys.executable, "-m", "headwater", "serve", "--config", str(path), "--in-process"]
        command += ["--port", str(self.port)]
        environment = {name: value for name, value in os.environ.items() if not name.startswith("HEADWATER_")}
        with open(self.folder / "server.log", "ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
        wait_for(self.is_ready, "the start")
        return self

    def is_ready(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, self.log
        try:
            return self.client.get("/ready").status_code == 200
        except httpx.TransportError:
            return False

    @property
    def log(self) -> str:
        return (self.folder / "server.log").read_text("utf-8", "replace")

    def engine_process(self) -> int:
        """The number of the engine process."""
        assert self.process is not None
        found = [
            int(entry)
            for entry in os.listdir("/proc")
            if entry.isdigit() and _parent_of(int(entry)) == self.process.pid and _is_engine(int(entry))
        ]
        return found[0] if found else 0

    def kill_engine(self) -> None:
        """Kill the engine process with SIGKILL."""
        os.kill(wait_for(self.engine_process, "an engine process"), signal.SIGKILL)

    def stop(self) -> int:
        """End the server in order; its exit code."""
        assert self.process is not None
        self.process.terminate()
        code = self.process.wait(PATIENCE)
        self.process = None
        return code

    def kill(self) -> None:
        """Kill the server process with SIGKILL; the engine follows by itself."""
        assert self.process is not None
        engine = self.engine_process()
        self.process.kill()
        self.process.wait()
        wait_for(lambda: _parent_of(engine) is None, "the end of the engine")
        self.process = None

    def put_query(self, name: str, text: str = COUNT, **options: str) -> httpx.Response:
        return self.client.put(f"/queries/{name}", content=text, params=options)

    def feed(self, *seconds: int, stream: str = "s", key: str | None = None) -> httpx.Response:
        headers = TNQ if key is None else {**TNQ, "Idempotency-Key": key}
        return self.client.post(f"/streams/{stream}", content=lines(*seconds), headers=headers)

    def feed_until_taken(self, *seconds: int, key: str) -> None:
        """Feed again and again under one key, until the server has it."""

        def is_taken() -> bool:
            try:
                return self.feed(*seconds, key=key).status_code == 200
            except httpx.TransportError:
                return False

        wait_for(is_taken, "the feed")

    @contextmanager
    def follow(self, query: str, **parameters: str) -> Iterator[Iterator[dict[str, Any]]]:
        """The events of a query as NDJSON."""
        path = f"/queries/{query}/answers"
        with self.client.stream("GET", path, params={"format": "ndjson", **parameters}) as response:
            assert response.status_code == 200, response.read()
            yield (json.loads(line) for line in response.iter_lines() if line)

    def events(self, query: str, count: int, **parameters: str) -> list[dict[str, Any]]:
        """The first events of a query."""
        with self.follow(query, **parameters) as events:
            return [next(events) for _ in range(count)]


def _parent_of(process: int) -> int | None:
    try:
        status = Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return None
    state, parent = status.rpartition(")")[2].split()[:2]
    return None if state == "Z" else int(parent)


def _is_engine(process: int) -> bool:
    try:
        return b"engine_process" in Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return False


@contextmanager
def serving(folder: Path, settings: str = "", token: str | None = None) -> Iterator[Server]:
    """A server that is ended with the block."""
    server = Server(folder, settings, token)
    try:
        yield server.start()
    finally:
        server.client.close()
        if server.process is not None:
            try:
                server.stop()
            except subprocess.TimeoutExpired:
                server.kill()
