"""Lines over TCP, and messages over WebSocket, for trying things.

    tcp("localhost", 9999)                                     lines of timed N-Quads, as `nc -lk 9999` would send them
    tcp("localhost", 9999, format="csv", template="row.tpl")   a row in each line
    websocket("ws://localhost:8080/observations", format="turtle")

Headwater connects to the server named, and connects again when it goes away. What the server sends meanwhile is lost:
neither protocol can ask for it again. What was received is in the spool.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from headwater.egress.credentials import Credentials, split_user_info
from headwater.errors import SettingError
from headwater.sources.payloads import Decoder, PayloadFormat
from headwater.sources.receivers import INSTALL_CONNECTORS, NetworkSource, Receiver, Timeouts, make_received_source
from headwater.sources.source import SourceError
from headwater.sources.spool import KEEP_SECONDS, Spool
from headwater.terms.arguments import check_text
from headwater.terms.redaction import redact_url
from headwater.terms.template import RowTemplate

_CONNECT_SECONDS = 10.0
_POLL_SECONDS = 0.2
_BLOCK = 1 << 16
_LONGEST_LINE = 16 << 20
_MOST_AT_ONCE = 1_000
_NO_CELLS: Mapping[str, str] = {}


class LineReceiver(Receiver):
    """Takes each line of a TCP connection as a message; blank lines are none."""

    def __init__(self, host: str, port: int, decoder: Decoder, spool: Spool) -> None:
        super().__init__(f"tcp://{host}:{port}", decoder, spool)
        self._server = host, port

    def receive(self) -> None:
        with socket.create_connection(self._server, timeout=_CONNECT_SECONDS) as connection:
            self.note_connection()
            connection.settimeout(_POLL_SECONDS)
            rest = b""
            try:
                while not self.stopping.is_set():
                    try:
                        block = connection.recv(_BLOCK)
                    except TimeoutError:
                        continue
                    if not block:
                        break
                    *lines, rest = (rest + block).split(b"\n")
                    if len(rest) > _LONGEST_LINE:
                        lines, rest = [*lines, rest], b""
                    self._store_lines(lines)
            finally:
                # A last line without an end is all that there will be of it.
                self._store_lines([rest])

    def _store_lines(self, lines: list[bytes]) -> None:
        self.store([(line.rstrip(b"\r"), _NO_CELLS) for line in lines if line.strip()])


class WebSocketReceiver(Receiver):
    """Takes each message of a WebSocket connection, text or binary."""

    def __init__(self, url: str, decoder: Decoder, spool: Spool) -> None:
        super().__init__(redact_url(url), decoder, spool)
        self._url, self._credentials = split_user_info(url)

    def receive(self) -> None:
        from websockets.exceptions import ConnectionClosed, WebSocketException
        from websockets.sync.client import connect

        try:
            credentials = self._credentials or Credentials.from_environment(self._url)
            with connect(
                self._url,
                open_timeout=_CONNECT_SECONDS,
                max_size=_LONGEST_LINE,
                additional_headers=credentials.as_headers(),
            ) as connection:
                self.note_connection()
                while not self.stopping.is_set():
                    messages: list[bytes] = []
                    try:
                        wait = _POLL_SECONDS
                        while len(messages) < _MOST_AT_ONCE:
                            message = connection.recv(timeout=wait)
                            messages.append(message.encode() if isinstance(message, str) else message)
                            wait = 0
                    except TimeoutError:
                        pass
                    finally:
                        self.store([(message, _NO_CELLS) for message in messages])
        except ConnectionClosed:
            return
        except WebSocketException as error:
            raise ConnectionError(str(error) or type(error).__name__) from error


def tcp(
    host: str,
    port: int,
    *,
    format: str | None = None,
    template: RowTemplate | str | Path | None = None,
    time: str | None = None,
    spool: str | Path | None = None,
    keep: float = KEEP_SECONDS,
    connect_timeout: int | str | None = None,
    read_timeout: int | str | None = None,
) -> NetworkSource:
    """A stream of lines from a TCP server. Without a format they are timed N-Quads, or JSON with a template.

    `format`, `template` and `time` say what a line means (see `headwater.sources.payloads`); `spool`,
    `keep` and the time-outs are those of `mqtt`.
    """
    check_text("host", host)
    if not isinstance(port, int) or not 0 < port < 1 << 16:
        raise SettingError(f"{port!r} is no port: expected a number from 1 to 65535")
    chosen = format or (PayloadFormat.TNQ if template is None and time is None else None)
    decoder = Decoder.of(chosen, template=template, time=time)

    timeouts = Timeouts.of(connect_timeout, read_timeout)

    def make(decoder: Decoder, folder: Spool) -> Receiver:
        return LineReceiver(host, port, decoder, folder)

    return make_received_source(f"tcp://{host}:{port}", decoder, make, spool, keep, timeouts)


def websocket(
    url: str,
    *,
    format: str | None = None,
    template: RowTemplate | str | Path | None = None,
    time: str | None = None,
    spool: str | Path | None = None,
    keep: float = KEEP_SECONDS,
    connect_timeout: int | str | None = None,
    read_timeout: int | str | None = None,
) -> NetworkSource:
    """A stream of messages from a WebSocket server, `ws://…` or `wss://…`; the rest is as in `mqtt`."""
    parts = urlsplit(check_text("url", url))
    if parts.scheme not in ("ws", "wss") or not parts.hostname:
        raise SettingError(f"{redact_url(url)!r} is no WebSocket address: expected ws://host:port/path or wss://…")
    try:
        import websockets  # noqa: F401
    except ImportError:
        raise SourceError(f"WebSocket needs the package websockets. {INSTALL_CONNECTORS}") from None
    decoder = Decoder.of(format, template=template, time=time)

    timeouts = Timeouts.of(connect_timeout, read_timeout)

    def make(decoder: Decoder, folder: Spool) -> Receiver:
        return WebSocketReceiver(url, decoder, folder)

    return make_received_source(redact_url(url), decoder, make, spool, keep, timeouts)
