"""A real SPARQL endpoint on loopback: the oxigraph server, for benchmarks and tests.

with oxigraph(data) as endpoint:
    endpoint.update("INSERT DATA { … }")
    …  SERVICE <{endpoint.url}>  …
"""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

_PATIENCE = 20.0


class NoServer(RuntimeError):
    """The oxigraph server is not installed."""


@dataclass(frozen=True)
class Running:
    """A server that takes queries at `url`."""

    address: str

    @property
    def url(self) -> str:
        return f"http://{self.address}/query"

    def update(self, text: str) -> None:
        """Run a SPARQL update."""
        self._post("update", text, "application/sparql-update")

    def load(self, turtle: str) -> None:
        """Put triples into the default graph."""
        self._post("store?default", turtle, "text/turtle")

    def _post(self, path: str, text: str, content_type: str) -> None:
        headers = {"Content-Type": content_type}
        httpx.post(
            f"http://{self.address}/{path}", content=text.encode(), headers=headers, timeout=60
        ).raise_for_status()


@contextmanager
def oxigraph(turtle: str = "") -> Iterator[Running]:
    """The server with some data in its memory, for the time of a `with` block."""
    command = shutil.which("oxigraph", path=str(Path(sys.executable).parent)) or shutil.which("oxigraph")
    if command is None:
        raise NoServer("the oxigraph server is not installed: pip install oxigraph")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        running = Running(f"127.0.0.1:{free.getsockname()[1]}")
    server = subprocess.Popen(
        [command, "serve", "--bind", running.address], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        _await(running)
        if turtle:
            running.load(turtle)
        yield running
    finally:
        server.terminate()
        server.wait(10)


def _await(running: Running) -> None:
    end = time.monotonic() + _PATIENCE
    while True:
        try:
            httpx.get(running.url, params={"query": "ASK {}"})
            return
        except httpx.TransportError:
            if time.monotonic() > end:
                raise
            time.sleep(0.05)
