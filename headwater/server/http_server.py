"""Serving the application with uvicorn, and ending in order."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import signal
import socket
from collections.abc import Callable
from types import FrameType
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from headwater.errors import SettingError
from headwater.server.app import make_app
from headwater.server.page.served.server_page import mount_server_page
from headwater.server.server_services import ServerServices
from headwater.server.server_settings import ServerSettings
from headwater.server.setting_checks import find_wrong_values
from headwater.terms.durable_files import create_folder, lock_file

logger = logging.getLogger(__name__)

_GRACE_SECONDS = 2
_BACKLOG = 2048
_HEAD_COMES, _BODY_COMES = "IDLE", "SEND_BODY"
"""What h11, which uvicorn reads requests with, calls the states of a client."""
_LOOPBACK = ("127.0.0.1", "::1", "localhost")


class PatientProtocol(H11Protocol):
    """HTTP/1.1 that closes connections on which the head or the body of a request does not come in time.

    A body that is late is answered by the application (`request_limits`). What is closed here is a connection whose
    request was answered before its body had come.
    """

    head_seconds = 10.0
    body_seconds = 60.0

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._has_upgraded = False
        self._awaited: tuple[str, object] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._await("head")

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        state = self.conn.their_state.__name__
        if state == _BODY_COMES:
            self._await("body")
        elif state == _HEAD_COMES and self.conn.trailing_data[0]:
            self._await("head")
        else:
            self._await(None)

    def _await(self, part: str | None) -> None:
        """Note which part of a request is to come now; it has its time from when it was first waited for."""
        awaited = None if part is None or self._has_upgraded else (part, self.cycle)
        if awaited == self._awaited:
            return
        self._awaited = awaited
        if self._timer is not None:
            self._timer.cancel()
        if awaited is not None:
            seconds = self.head_seconds if part == "head" else self.body_seconds + self.head_seconds
            self._timer = self.loop.call_later(seconds, self.transport.close)

    def handle_websocket_upgrade(self, event: Any) -> None:
        # From now on the connection belongs to another protocol, with limits of its own.
        self._has_upgraded = True
        self._await(None)
        super().handle_websocket_upgrade(event)

    def connection_lost(self, exc: Exception | None) -> None:
        self._await(None)
        super().connection_lost(exc)


class EndingServer(uvicorn.Server):
    """A server that ends its event streams first when it is asked to end: they would go on for ever."""

    def __init__(self, config: uvicorn.Config, services: ServerServices) -> None:
        super().__init__(config)
        self._services = services

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        super().handle_exit(sig, frame)
        self._services.is_ending.set()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._services.end_streams()
        await super().shutdown(sockets)


def check_settings(settings: ServerSettings) -> list[str]:
    """What a person should know before the server begins; a `SettingError` where it cannot."""
    _check_host(settings)
    if wrong := find_wrong_values(settings):
        raise SettingError("\n".join(wrong))
    if settings.tokens:
        return []
    return ["no tokens are set: everybody on this machine may do everything, and nobody else can connect"]


def _check_host(settings: ServerSettings) -> None:
    if not settings.tokens and settings.server.host not in _LOOPBACK:
        raise SettingError(
            f"without tokens anybody could do anything, so the server listens on loopback only, and not on "
            f"{settings.server.host}: add [[tokens]], or leave out host"
        )


def serve(settings: ServerSettings, on_listening: Callable[[], object] = lambda: None) -> None:
    """Serve until SIGTERM or Ctrl-C, then end in order. Whether the settings are right was asked before.

    `on_listening` is called when the state is ours and the port is open.
    """
    _check_host(settings)
    create_folder(settings.state, mode=0o700)
    try:
        lock = lock_file(settings.state / "lock")
    except BlockingIOError:
        raise SettingError(f"another server uses the state {settings.state}: stop it, or name another folder") from None
    table = settings.server
    opened = open_port(table.host, table.port)
    on_listening()
    app = make_app(settings)
    mount_server_page(app)
    times = {"head_seconds": settings.http.head_seconds, "body_seconds": settings.http.body_seconds}
    protocol = type("Protocol", (PatientProtocol,), times)
    config = uvicorn.Config(
        app,
        host=table.host,
        port=table.port,
        http=protocol,
        ws="auto",
        ssl_certfile=None if table.certificate is None else str(settings.path_of(table.certificate)),
        ssl_keyfile=None if table.key is None else str(settings.path_of(table.key)),
        lifespan="on",
        log_level="warning",
        access_log=False,
        server_header=False,
        backlog=_BACKLOG,
        timeout_graceful_shutdown=_GRACE_SECONDS,
        ws_max_size=1 << 20,
    )
    # uvicorn raises the signal again when it has ended; that must not end the process before its time.
    before = {one: signal.signal(one, lambda *_: None) for one in (signal.SIGTERM, signal.SIGINT)}
    try:
        asyncio.run(EndingServer(config, app.state.services).serve([opened]))
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)
        opened.close()
        os.close(lock)


def open_port(host: str, port: int) -> socket.socket:
    """A socket that listens; a `SettingError` where another program has the port, or the host is not ours."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio sends small packets at once only where the protocol is said; others wait 40 ms for an acknowledgement.
    opened = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        opened.bind((host, port))
        opened.listen(_BACKLOG)
    except OSError as error:
        opened.close()
        if error.errno == errno.EADDRINUSE:
            reason = "another program listens there: stop it, or name another port"
        elif error.errno == errno.EACCES:
            reason = "the system does not allow it: name a port from 1024 on"
        else:
            reason = f"{error.strerror or error}: name an address of this machine"
        raise SettingError(f"the server cannot listen at {host}, port {port}, because {reason}") from None
    return opened
