"""A broker and a proxy before it, kept by a process of its own for all runs of a campaign, and told when to fail.

Whoever runs a program talks to the broker through the proxy; whoever brings messages talks to the broker itself. An
order is done when its call returns:

| order           | what happens                                                                              |
|-----------------|-------------------------------------------------------------------------------------------|
| kill SECONDS    | SIGKILL; after so long the broker is started again, with its folder and its port          |
| stop SECONDS    | SIGSTOP, and SIGCONT after so long                                                        |
| cut             | all connections through the proxy end                                                     |
| tear BYTES      | they end when so many more bytes have passed, in the midst of a message                   |
| delay SECONDS   | for so long each chunk of bytes is held up                                                |
| save            | the broker saves what it keeps in memory (MQTT)                                           |
| calm            | the proxy passes everything on, and faults that were at work are over                     |
| count           | nothing; says how many connections were made through the proxy                            |
"""

from __future__ import annotations

import json
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from typing import Any, Protocol

from tests.chaos.cutting_proxy import CuttingProxy

_PAUSE = 0.05
"""How long a chunk of bytes is held up."""
_ORDER_SECONDS = 150.0
_LOOK_SECONDS = 1.0


class KillableBroker(Protocol):
    """A broker that can be killed and started again."""

    port: int

    @property
    def pid(self) -> int:
        """Its process."""

    def start(self) -> None:
        """Start it; it listens when this returns."""

    def kill(self) -> None:
        """End it with SIGKILL."""


@dataclass(frozen=True)
class KeptBroker:
    """The ports of a broker that is kept: `port` goes through the proxy, `direct` does not."""

    port: int
    direct: int
    control: int

    def order(self, *order: Any) -> int:
        """Have a fault happen; gives how many connections were made through the proxy until then."""
        with socket.create_connection(("127.0.0.1", self.control), timeout=_ORDER_SECONDS) as connection:
            connection.sendall(json.dumps(order).encode() + b"\n")
            reply = connection.makefile().readline().strip()
        if not reply.isdigit():
            raise RuntimeError(f"the broker could not do {order}: {reply or 'its keeper is gone'}")
        return int(reply)

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> KeptBroker:
        return cls(**json.loads(text))


@contextmanager
def kept_broker(make: Callable[[], KillableBroker], proxy_port: int = 0) -> Iterator[KeptBroker]:
    """Start a broker and its proxy in a child of this process; they end with the context."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setsid()
            os.close(reader)
            keeper = _Keeper(make(), proxy_port)
            os.write(writer, keeper.kept.to_json().encode())
            os.close(writer)
            keeper.obey()
        finally:
            os._exit(1)
    os.close(writer)
    with open(reader) as stream:
        text = stream.read()
    try:
        assert text, "the broker did not begin"
        yield KeptBroker.from_json(text)
    finally:
        # The keeper and its broker are a group of their own.
        os.killpg(child, signal.SIGKILL)
        os.waitpid(child, 0)


class _Keeper:
    """Obeys orders, one after the other."""

    def __init__(self, broker: KillableBroker, proxy_port: int) -> None:
        self._broker = broker
        self._broker.start()
        self._proxy = CuttingProxy(broker.port, proxy_port)
        self._server = socket.create_server(("127.0.0.1", 0))
        self._at_work = threading.Lock()
        self.kept = KeptBroker(self._proxy.port, broker.port, self._server.getsockname()[1])

    def obey(self) -> None:
        """Obey until the process that has begun this one is gone; then end the broker, too."""
        parent = os.getppid()
        self._server.settimeout(_LOOK_SECONDS)
        while os.getppid() == parent:
            with suppress(TimeoutError):
                connection, _ = self._server.accept()
                connection.settimeout(None)
                threading.Thread(target=self._answer, args=(connection,), daemon=True).start()
        os.killpg(0, signal.SIGKILL)

    def _answer(self, connection: socket.socket) -> None:
        with connection:
            order = json.loads(connection.makefile().readline())
            try:
                with self._at_work:
                    self._do(*order)
                reply = str(self._proxy.connections)
            except Exception as error:
                reply = repr(error)
            connection.sendall(f"{reply}\n".encode())

    def _do(self, name: str, value: float = 0.0) -> None:
        match name:
            case "kill":
                self._broker.kill()
                time.sleep(value)
                self._broker.start()
            case "stop":
                os.kill(self._broker.pid, signal.SIGSTOP)
                time.sleep(value)
                os.kill(self._broker.pid, signal.SIGCONT)
            case "cut":
                self._proxy.cut()
            case "tear":
                self._proxy.cut_after(int(value))
            case "delay":
                self._proxy.slow_down(_PAUSE, value)
            case "save":
                self._broker.save()  # type: ignore[attr-defined]
            case "calm":
                self._proxy.calm_down()
            case "count":
                return
            case _:
                raise ValueError(f"no order {name}")
