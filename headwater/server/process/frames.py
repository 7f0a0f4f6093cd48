"""Messages between the HTTP process and the engine process: plain values, each behind its length.

    request     {"id": 7, "call": "put_query", "arguments": {…}}
    reply       {"id": 7, "value": …} or {"id": 7, "error": {"kind": …, "message": …}}
    notice      {"notice": "answers", "value": …}, which nobody asked for

Replies come in any order, so that a slow call holds up no other.
"""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
from typing import Any

from headwater.terms.packing import Plain, pack, unpack

_LENGTH = struct.Struct("<Q")
_LONGEST = 1 << 32


def pack_frame(value: Plain) -> tuple[bytes, bytes]:
    """A message as bytes: its length, and what it is."""
    data = pack(value)
    return _LENGTH.pack(len(data)), data


async def read_frame(reader: asyncio.StreamReader) -> Plain:
    """The next message; an `IncompleteReadError` where the other side has gone."""
    (size,) = _LENGTH.unpack(await reader.readexactly(_LENGTH.size))
    return unpack(await reader.readexactly(_check_size(size)))


class FrameSocket:
    """A socket with messages, for threads: one receives, any may send."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._sending = threading.Lock()

    def send(self, value: Plain) -> None:
        """Send a message; nothing happens where the other side has gone."""
        head, data = pack_frame(value)
        with self._sending:
            try:
                self._connection.sendall(head + data)
            except OSError:
                # Whoever receives sees the end, too.
                return

    def receive(self) -> dict[str, Any] | None:
        """The next message; None where the other side has gone."""
        head = self._receive_exactly(_LENGTH.size)
        if head is None:
            return None
        body = self._receive_exactly(_check_size(_LENGTH.unpack(head)[0]))
        return None if body is None else unpack(memoryview(body))

    def _receive_exactly(self, size: int) -> bytearray | None:
        found = bytearray(size)
        view, filled = memoryview(found), 0
        while filled < size:
            try:
                count = self._connection.recv_into(view[filled:])
            except OSError:
                return None
            if not count:
                return None
            filled += count
        return found


def _check_size(size: int) -> int:
    if size > _LONGEST:
        raise ValueError(f"a message of {size} bytes")
    return int(size)
