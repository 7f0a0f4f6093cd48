"""Ports for servers that a test starts later."""

from __future__ import annotations

import socket
from random import SystemRandom

_PORTS = range(10_000, 30_000)
"""Below those that the system gives to connections, so that none of them takes a port before its server does."""


def free_port() -> int:
    """A port of the loopback address on which nobody listens."""
    while True:
        port = SystemRandom().choice(_PORTS)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
