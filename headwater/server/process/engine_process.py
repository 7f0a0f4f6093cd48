"""The engine process: an `EngineService` at the other end of a socket that it inherits.

    python -m headwater.server.process.engine_process NUMBER-OF-THE-SOCKET

It ends when it is asked to, and when the HTTP process has gone.
"""

from __future__ import annotations

import logging
import signal
import socket
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from headwater.errors import HeadwaterError
from headwater.running.freed_memory import keep_freed_memory
from headwater.server.page.served.page_calls import PAGE_CALLS, PageCalls
from headwater.server.process.call_errors import error_to_plain
from headwater.server.process.engine_service import EngineService
from headwater.server.process.engine_settings import EngineSettings
from headwater.server.process.frames import FrameSocket

_WORKERS = 8
_SWITCH_SECONDS = 0.0005
"""How long a thread computes before another one has its turn: a body that is fed should not wait for an evaluation."""
CALLS = (
    *("put_query", "drop_query", "pause_query", "resume_query", "plan", "validate", "preview"),
    *("put_stream", "drop_stream", "post", "status", "data"),
)
"""The methods of the service that may be called."""
SLOW_CALLS = ("preview", "page_why", "page_sparql")
"""Calls that may take long, and must not hold up others."""


def main() -> None:
    """Serve the socket until it is closed."""
    logging.basicConfig(format="%(asctime)s engine %(levelname)s %(name)s: %(message)s", level=logging.WARNING)
    # The HTTP process says when to end.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sys.setswitchinterval(_SWITCH_SECONDS)
    keep_freed_memory()
    connection = socket.socket(fileno=int(sys.argv[1]))
    frames = FrameSocket(connection)
    first = frames.receive()
    if first is None:
        return
    try:
        service = EngineService(
            EngineSettings.from_plain(first["settings"]),
            lambda name, value: frames.send({"notice": name, "value": value}),
        )
    except (HeadwaterError, OSError) as error:
        # It would be the same next time: the HTTP process says it, and begins no other one after a few of these.
        frames.send({"notice": "failed", "value": str(error)})
        return
    service.start()
    frames.send({"notice": "ready", "value": service.status()})
    serve(frames, service)
    service.close()
    frames.send({"notice": "closed", "value": None})


def serve(frames: FrameSocket, service: EngineService) -> None:
    """Answer calls until `close` is called, or nobody is there any more."""
    slow, page = ThreadPoolExecutor(2, "headwater-previews"), PageCalls(service)
    data = ThreadPoolExecutor(_WORKERS, "headwater-data")
    pools = {**dict.fromkeys(SLOW_CALLS, slow), "data": data}
    with ThreadPoolExecutor(_WORKERS, "headwater-calls") as pool:
        while (request := frames.receive()) is not None and request["call"] != "close":
            pools.get(request["call"], pool).submit(_answer, frames, service, page, request)
    for one in (slow, data):
        one.shutdown(wait=False, cancel_futures=True)


def _answer(frames: FrameSocket, service: EngineService, page: PageCalls, request: dict[str, Any]) -> None:
    try:
        name = request["call"]
        if name not in CALLS and name not in PAGE_CALLS:
            raise LookupError(f"no call {name}")
        does = service if name in CALLS else page
        reply = {"id": request["id"], "value": getattr(does, name)(**request["arguments"])}
    except Exception as error:
        reply = {"id": request["id"], "error": error_to_plain(error)}
    try:
        frames.send(reply)
    except TypeError as error:
        frames.send({"id": request["id"], "error": error_to_plain(error)})


if __name__ == "__main__":
    main()
    # Threads of evaluations that hang must not keep the process.
    sys.stdout.flush()
    if threading.active_count() > 1:
        import os

        os._exit(0)
