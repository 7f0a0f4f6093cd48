"""A SPARQL endpoint in a process of its own that misbehaves when it is told to.

What it is told is a file: a list of behaviours, the first of which is taken by each request. Without one, or when the
list is used up, it answers well.
"""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from pyoxigraph import Literal, NamedNode, Quad, Store

from tests.chaos.random_programs import FOLLOWERS
from tests.federation.servers import Behaviour, Exchange, serving, sparql
from tests.kernel.generated_queries import RESOURCES

BEHAVIOURS = ("errors", "garbage", "half", "gone", "late", "hangs", "other-status")
SLOW_BEHAVIOURS = ("late", "hangs")
"""Those that take as long as the client waits."""
_LATE_SECONDS = 1.2
_HANGING_SECONDS = 5.0


def tell(orders: Path, behaviours: Sequence[str]) -> None:
    """Say how the next requests are answered."""
    orders.write_text(json.dumps(list(behaviours)))


@contextmanager
def endpoint_process(orders: Path) -> Iterator[str]:
    """The address of an endpoint that a child of this process serves."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(reader)
            with serving(_obey(orders)) as served:
                os.write(writer, served.url.encode())
                os.close(writer)
                signal.pause()
        finally:
            os._exit(0)
    os.close(writer)
    with open(reader) as stream:
        url = stream.read()
    assert url, "the endpoint did not begin"
    try:
        yield url
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def _obey(orders: Path) -> Behaviour:
    store = Store()
    store.extend(Quad(one, NamedNode(FOLLOWERS), Literal(number)) for number, one in enumerate(RESOURCES))
    well = sparql(store)
    lock = threading.Lock()

    def take() -> str:
        with lock:
            left = json.loads(orders.read_text()) if orders.exists() else []
            if left:
                tell(orders, left[1:])
            return left[0] if left else "well"

    def answer(exchange: Exchange) -> None:
        match take():
            case "errors":
                exchange.answer(500, b"out of memory", "text/plain")
            case "garbage":
                exchange.answer(200, b"<html>sorry</html>", "text/html")
            case "half":
                exchange.begin(1000)
                exchange.write(b'{"head":{"vars":["x"]},"results":{"bindings":[')
                exchange.hang_up()
            case "gone":
                exchange.hang_up()
            case "late":
                threading.Event().wait(_LATE_SECONDS)
                exchange.hang_up()
            case "hangs":
                exchange.begin(1000)
                exchange.write(b'{"head":')
                threading.Event().wait(_HANGING_SECONDS)
                exchange.hang_up()
            case "other-status":
                exchange.answer(404)
            case _:
                well(exchange)

    return answer
