"""A server of the protocol on loopback, for tests: uvicorn in a thread, over an empty data set."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import uvicorn
from fastapi import FastAPI

from headwater.datasets.dataset import DataSet
from headwater.datasets.loading.new_dataset import create_dataset
from headwater.server.problems import install_problem_handlers
from headwater.server.protocol.dataset_service import DataSetService
from headwater.server.protocol.protocol_router import make_protocol_router


class _Server(uvicorn.Server):
    """Says when it listens."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.is_listening = threading.Event()

    async def startup(self, sockets: Any = None) -> None:
        await super().startup(sockets)
        self.is_listening.set()

    def install_signal_handlers(self) -> None:
        """None: the thread is not the main one."""


@dataclass
class LiveServer:
    """Where the server listens, and what it serves."""

    address: str
    data: DataSet
    service: DataSetService

    @property
    def sparql(self) -> str:
        return f"{self.address}/sparql"

    @property
    def graphs(self) -> str:
        return f"{self.address}/data"

    def request(self, method: str, path: str, **arguments: Any) -> httpx.Response:
        """The answer to one request."""
        with httpx.Client(trust_env=False, timeout=60) as client:
            return client.request(method, f"{self.address}{path}", **arguments)


@contextmanager
def serve_app(app: FastAPI) -> Iterator[str]:
    """The address of an application while it is served."""
    server = _Server(uvicorn.Config(app, host="127.0.0.1", port=0, log_level="error"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    assert server.is_listening.wait(60)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(30)


@contextmanager
def serve(folder: Path, **settings: Any) -> Iterator[LiveServer]:
    """A live server over a new data set in a folder; `settings` are those of the service."""
    create_dataset(folder)
    largest_body = settings.pop("largest_body", 1 << 20)
    service = DataSetService(folder, **settings)
    app = FastAPI()
    install_problem_handlers(app)
    app.include_router(make_protocol_router(service, largest_body=largest_body))
    with serve_app(app) as address:
        yield LiveServer(address, DataSet.open(folder), service)
    service.close()
