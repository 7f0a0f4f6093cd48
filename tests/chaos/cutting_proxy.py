"""A TCP proxy on loopback that cuts connections, also in the midst of a message, and holds bytes up."""

from __future__ import annotations

import socket
import struct
import threading
import time
from contextlib import suppress

_CHUNK = 1 << 16
_RESET = struct.pack("ii", 1, 0)
"""To close with a reset, as when a host is gone."""


class CuttingProxy:
    """Passes bytes on, both ways, between its own port and another one, until it is told something else."""

    def __init__(self, target: int, port: int = 0) -> None:
        self._target = target
        self._server = socket.create_server(("127.0.0.1", port))
        self.port: int = self._server.getsockname()[1]
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._bytes_left: int | None = None
        self._pause, self._slow_until = 0.0, 0.0
        self.connections = 0
        """How many connections were made through it."""
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """End all connections at once."""
        with self._lock:
            ended, self._open = self._open, set()
            self._bytes_left = None
        for one in ended:
            # A close alone does not wake a thread that waits for bytes.
            with suppress(OSError):
                one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def cut_after(self, length: int) -> None:
        """End all connections when so many more bytes have passed."""
        with self._lock:
            self._bytes_left = length

    def slow_down(self, pause: float, seconds: float) -> None:
        """For some seconds, hold each chunk of bytes up for a pause."""
        self._pause, self._slow_until = pause, time.monotonic() + seconds

    def calm_down(self) -> None:
        """Pass everything on again."""
        with self._lock:
            self._bytes_left = None
        self._slow_until = 0.0

    def _accept(self) -> None:
        while True:
            client, _ = self._server.accept()
            try:
                server = socket.create_connection(("127.0.0.1", self._target), timeout=5)
                server.settimeout(None)
            except OSError:
                client.close()
                continue
            for one in (client, server):
                one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self._lock:
                self._open |= {client, server}
                self.connections += 1
            for one, other in ((client, server), (server, client)):
                threading.Thread(target=self._pass_on, args=(one, other), daemon=True).start()

    def _pass_on(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(_CHUNK):
                if time.monotonic() < self._slow_until:
                    time.sleep(self._pause)
                passing = self._length_to_pass(len(data))
                target.sendall(data[:passing])
                if passing < len(data):
                    self.cut()
                    return
        with self._lock:
            self._open -= {source, target}
        for one in (source, target):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def _length_to_pass(self, length: int) -> int:
        """How many of some bytes still pass."""
        with self._lock:
            if self._bytes_left is None:
                return length
            passing = min(length, self._bytes_left)
            self._bytes_left -= passing
            return passing
