"""Lines over TCP: a small server sends timed N-Quads, Headwater answers as they come.

python examples/connectors/tcp_lines.py

The same from a command line, with another server: nc -lk 9999 < examples/tollgates.tnq, and
headwater run examples/cars-per-district.rq --stream http://city/tollgates=tcp://localhost:9999 --data examples/city.ttl
"""

from __future__ import annotations

import socketserver
import threading
import time

from gates import STREAM, answered, lines

import headwater as hw


class Gates(socketserver.StreamRequestHandler):
    """Sends a line every tenth of a second, and one that nobody can read."""

    def handle(self) -> None:
        for line in ["a line that is none", *lines()]:
            self.wfile.write(f"{line}\n".encode())
            time.sleep(0.1)
        time.sleep(60)


with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Gates) as server:
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    engine = hw.Engine(in_process=True)
    engine.stream(STREAM, hw.tcp("127.0.0.1", server.server_address[1]))
    answered(engine, ticks=2)
    server.shutdown()
