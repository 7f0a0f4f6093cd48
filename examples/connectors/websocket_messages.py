"""Messages over WebSocket: JSON and a template.

python examples/connectors/websocket_messages.py
"""

from __future__ import annotations

import threading
import time

from gates import STREAM, TEMPLATE, answered, messages
from websockets.sync.server import ServerConnection, serve

import headwater as hw


def gates(connection: ServerConnection) -> None:
    for message in messages():
        connection.send(message)
        time.sleep(0.1)
    for _ in connection:
        """Nothing is sent back: this waits until the other side has gone."""


with serve(gates, "127.0.0.1", 0) as server:
    threading.Thread(target=server.serve_forever, daemon=True).start()
    engine = hw.Engine(in_process=True)
    address = f"ws://127.0.0.1:{server.socket.getsockname()[1]}/gates"
    engine.stream(STREAM, hw.websocket(address, template=TEMPLATE))
    answered(engine, ticks=2)
    server.shutdown()
