"""The server: many subscribers, a fast feed, and what restarts cost: `python -m benchmarks.server`.

A server of its own on loopback, with its engine in process. Prints one JSON object last:

- `fanout_p99_ms`: of 1,000 subscribers of one query, how long after an answer is on disk the last one has it; the 99th
  percentile over the answers. `fanout_p50_ms` is the median
- `memory_mb_per_1000_subscribers`: how much more memory the HTTP process has with them
- `feed_triples_per_s`: timed N-Quads in bodies of 1 MB, each on disk before the next one, while a query reads them
- `overhead`: the rate from the first body to the last answer, against the engine alone, which has the same query, a
  checkpoint and a `FileSink`, and reads the same triples from a file. `server_triples_per_s`, `engine_triples_per_s`.
  The query is a mean and a count of each sensor over a minute, each second
- `tumbling`: the same three for a query that costs next to nothing, a count and a maximum of each ten seconds. The
  engine alone does it faster than one client can post bodies one after the other: this is what a hop costs
- `resume_lost`, `resume_doubled`: answers that a subscriber missed or had twice who came back 100 times while the
  engine was killed 20 times

The better of two turns counts for rates, because the speed of a machine may change from minute to minute.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import json
import os
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import headwater as hw
from benchmarks.reporting import machine, print_result, progress
from headwater.running.freed_memory import keep_freed_memory

_INTEGER = "http://www.w3.org/2001/XMLSchema#integer"
_STREAM = "readings"
SLIDING = (
    "SELECT ?s (AVG(?v) AS ?mean) (COUNT(?v) AS ?n) FROM STREAM <readings> [RANGE 60s STEP 1s] "
    "WHERE { ?s <http://ex/value> ?v } GROUP BY ?s"
)
TUMBLING = (
    "SELECT ?s (COUNT(?v) AS ?n) (MAX(?v) AS ?most) FROM STREAM <readings> [RANGE 10s STEP 10s] "
    "WHERE { ?s <http://ex/value> ?v } GROUP BY ?s"
)
_STEPS = {SLIDING: 1_000, TUMBLING: 10_000}
"""How many milliseconds there are between two answers."""
_TICK_QUERY = "SELECT (COUNT(?v) AS ?n) FROM STREAM <ticks> [RANGE 2s STEP 1s] WHERE { ?s <http://ex/value> ?v }"
_BODY_BYTES = 1 << 20
_PER_SECOND = 500
"""Elements in a second of event time, each with ten triples."""
_TRIPLES = 10
_PATIENCE = 300.0
_TNQ = {"Content-Type": "text/x-timed-nquads"}


def line(time_ms: int, sensor: int, value: int) -> str:
    """A triple of a reading."""
    return f'{time_ms}\t<http://ex/sensor{sensor}> <http://ex/value> "{value}"^^<{_INTEGER}> .\n'


def make_bodies(count: int) -> tuple[list[bytes], int]:
    """Bodies of about 1 MB, one behind the other in event time, and how many triples they have."""
    bodies: list[bytes] = []
    lines: list[str] = []
    size = element = triples = 0
    while len(bodies) < count:
        moment = element * 1000 // _PER_SECOND
        for place in range(_TRIPLES):
            lines.append(line(moment, (element * 7 + place) % 100, (element + place) % 1000))
            size += len(lines[-1])
        triples += _TRIPLES
        element += 1
        if size >= _BODY_BYTES:
            bodies.append("".join(lines).encode())
            lines, size = [], 0
    return bodies, triples


class BenchmarkServer:
    """A server process over a state folder."""

    def __init__(self, folder: Path) -> None:
        with socket.socket() as one:
            one.bind(("127.0.0.1", 0))
            self.port = int(one.getsockname()[1])
        self.url = f"http://127.0.0.1:{self.port}"
        self.state = folder / "headwater-state"
        path = folder / "headwater.toml"
        path.write_text("[engine]\ntrigger = '20ms'\n")
        command = [sys.executable, "-m", "headwater", "serve", "--config", str(path), "--in-process"]
        with open(folder / "server.log", "ab") as log:
            self.process = subprocess.Popen([*command, "--port", str(self.port)], stdout=log, stderr=log)
        self.client = hw.connect(self.url, patience=_PATIENCE)
        self.client.request("GET", "/ready")

    def memory_mb(self) -> float:
        """The resident memory of the HTTP process."""
        text = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(text.partition("VmRSS:")[2].split()[0]) / 1024

    def kill_engine(self) -> None:
        """Kill the engine process with SIGKILL."""
        for entry in os.listdir("/proc"):
            with suppress(OSError, ValueError):
                parent = int(Path(f"/proc/{entry}/stat").read_text().rpartition(")")[2].split()[1])
                if parent == self.process.pid:
                    os.kill(int(entry), signal.SIGKILL)

    def stop(self) -> None:
        self.client.close()
        self.process.terminate()
        self.process.wait(60)


@contextmanager
def server() -> Iterator[BenchmarkServer]:
    """A server that ends with the block."""
    with tempfile.TemporaryDirectory() as folder:
        found = BenchmarkServer(Path(folder))
        try:
            yield found
        finally:
            found.stop()


class EventCounter(asyncio.Protocol):
    """A subscriber that counts events and does nothing else with them."""

    def __init__(self, request: bytes, note: Callable[[], None]) -> None:
        self._request = request
        self._note = note
        self._rest = b""
        self.is_open = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        if not self.is_open:
            self.is_open = b"quiet" in data
        found = (self._rest + data).count(b"event: answer")
        self._rest = data[-len(b"event: answer") + 1 :] if not found else b""
        for _ in range(found):
            self._note()


async def measure_fan_out(one: BenchmarkServer, subscribers: int, answers: int) -> tuple[list[float], float]:
    """For each answer, after how many seconds the last subscriber has it; and the memory of the subscribers in MB."""
    loop = asyncio.get_running_loop()
    stream = one.client.stream("ticks")
    one.client.register(_TICK_QUERY, name="ticks")
    for second in range(3):
        stream.send_bytes(line(second * 1000, 0, second).encode())
    while one.client.query("ticks").status["last_event"] is None:
        await asyncio.sleep(0.05)
    before = one.memory_mb()
    received = 0
    has_all = asyncio.Event()

    def note() -> None:
        nonlocal received
        received += 1
        if received == subscribers:
            has_all.set()

    request = (
        f"GET /queries/ticks/answers HTTP/1.1\r\nHost: 127.0.0.1:{one.port}\r\nAccept: text/event-stream\r\n\r\n"
    ).encode()
    readers = []
    for _ in range(subscribers):
        reader, _ = await loop.create_connection(lambda: EventCounter(request, note), "127.0.0.1", one.port)
        readers.append(reader)
    while one.client.query("ticks").status["subscribers"] < subscribers:
        await asyncio.sleep(0.05)
    found: list[float] = []
    logs = one.state / "answers" / "ticks"
    for second in range(3, 3 + answers):
        received = 0
        has_all.clear()
        body = line(second * 1000, 0, second).encode()
        await asyncio.to_thread(stream.send_bytes, body)
        await asyncio.wait_for(has_all.wait(), _PATIENCE)
        now = time.time()
        written = max(path.stat().st_mtime_ns for path in logs.glob("*.log")) / 1e9
        found.append(max(0.0, now - written))
    memory = one.memory_mb() - before
    for reader in readers:
        reader.abort()
    await asyncio.sleep(0.1)
    return found, memory


def post_all(one: BenchmarkServer, bodies: list[bytes]) -> None:
    """Send bodies over one connection, each when the one before is on disk."""
    connection = http.client.HTTPConnection("127.0.0.1", one.port, timeout=_PATIENCE)
    for body in bodies:
        while True:
            connection.request("POST", f"/streams/{_STREAM}", body, _TNQ)
            response = connection.getresponse()
            text = response.read()
            if response.status == 200:
                break
            assert response.status == 503, text
            time.sleep(0.05)
    connection.close()


def last_tick(bodies: list[bytes], step: int) -> int:
    """The time of the last answer, in microseconds: that of the last window that has closed."""
    newest = int(bodies[-1].rstrip().rpartition(b"\n")[2].partition(b"\t")[0])
    return (newest - 1) // step * step * 1000


def measure_feed(bodies: list[bytes], text: str) -> tuple[float, float]:
    """Seconds until all bodies were on disk, and until the last answer was there."""
    with server() as one:
        stream = one.client.stream(_STREAM)
        one.client.register(text, name="load")
        # What is compiled and imported at first is no part of the rate.
        warm = one.client.stream("warm")
        one.client.register(text.replace("<readings>", "<warm>"), name="warm")
        warm.send_bytes(b"".join(line(second * 1000, 1, 1).encode() for second in range(30)))
        while one.client.query("warm").status["last_event"] is None:
            time.sleep(0.05)
        one.client.drop("warm")
        taken: list[float] = []
        wanted = f'"time_us": {last_tick(bodies, _STEPS[text])},'.encode()

        def take() -> None:
            # What a subscriber makes of an answer is not measured: this one looks for the last instant.
            connection = http.client.HTTPConnection("127.0.0.1", one.port, timeout=_PATIENCE)
            connection.request("GET", "/queries/load/answers?after=first", headers={"Accept": "application/x-ndjson"})
            answers, rest = connection.getresponse(), b""
            while wanted not in rest:
                found = answers.read1(1 << 16)
                assert found, "the answers have ended"
                rest = rest[-len(wanted) :] + found
            taken.append(time.monotonic())
            connection.close()

        taking = threading.Thread(target=take)
        taking.start()
        begin = time.monotonic()
        post_all(one, bodies)
        fed = time.monotonic() - begin
        taking.join(_PATIENCE)
        assert stream.name == _STREAM
        return fed, taken[0] - begin


def measure_engine(bodies: list[bytes], text: str) -> float:
    """Seconds until the engine alone has given the last answer, from a file, with a checkpoint and a sink."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "readings.tnq"
        path.write_bytes(b"".join(line(second * 1000, 1, 1).encode() for second in range(-60, 0)))
        engine = hw.Engine(in_process=True, checkpoint=Path(folder) / "checkpoint", batch_bytes=4 << 20)
        engine.stream(_STREAM, hw.files(path))
        done, warm = threading.Event(), threading.Event()
        wanted = last_tick(bodies, _STEPS[text])

        def note(answer: hw.AnswerBatch) -> None:
            warm.set()
            if int(answer.times[-1]) >= wanted:
                done.set()

        engine.register(text, name="load")
        engine.start(sinks=[hw.FileSink(Path(folder) / "answers")], on_batch=note, trigger_seconds=0.02)
        warm.wait(_PATIENCE)
        begin = time.monotonic()
        with open(path, "ab") as stream:
            for body in bodies:
                stream.write(body)
                stream.flush()
        done.wait(_PATIENCE)
        seconds = time.monotonic() - begin
        engine.stop()
        engine.wait()
        return seconds


def measure_resuming(reconnects: int, kills: int) -> tuple[int, int]:
    """How many answers a subscriber missed and had twice who came back again and again while the engine was killed."""
    ticks = max(reconnects, kills) * 2
    with server() as one:
        stream = one.client.stream("ticks")
        query = one.client.register(_TICK_QUERY, name="ticks")
        found: list[int] = []

        def follow() -> None:
            last = "first"
            part = max(1, ticks // reconnects)
            while len(found) < ticks:
                answers = query.answers(after=last)
                for _ in range(min(part, ticks - len(found))):
                    found.append(next(answers).time // 1_000_000)
                last = answers.last_event or last
                answers.close()

        following = threading.Thread(target=follow)
        following.start()
        for second in range(ticks + 1):
            if second % (ticks // kills) == ticks // kills // 2:
                one.kill_engine()
            stream.send_bytes(line(second * 1000, 0, second).encode())
        following.join(_PATIENCE)
        expected = set(range(ticks))
        return len(expected - set(found)), len(found) - len(set(found))


def main() -> None:
    # As `headwater run` and the server do: the engine alone has the same.
    keep_freed_memory()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--subscribers", type=int, default=1000)
    parser.add_argument("--answers", type=int, default=200)
    parser.add_argument("--bodies", type=int, default=100)
    parser.add_argument("--turns", type=int, default=2)
    parser.add_argument("--reconnects", type=int, default=100)
    parser.add_argument("--kills", type=int, default=20)
    chosen = parser.parse_args()
    print_result(measure(**vars(chosen)))


def measure_rates(bodies: list[bytes], triples: int, text: str, turns: int) -> dict[str, Any]:
    """The rates of a query: what is fed, what the server answers, what the engine alone answers."""
    rates = []
    for turn in range(turns):
        fed, answered = measure_feed(bodies, text)
        alone = measure_engine(bodies, text)
        rates.append((triples / fed, triples / answered, triples / alone))
        progress(f"turn {turn}: {json.dumps([round(rate) for rate in rates[-1]])} triples a second")
    fed, answered, alone = (max(column) for column in zip(*rates, strict=True))
    return {
        "feed_triples_per_s": round(fed),
        "server_triples_per_s": round(answered),
        "engine_triples_per_s": round(alone),
        "overhead": round(answered / alone, 3),
    }


def measure(subscribers: int, answers: int, bodies: int, turns: int, reconnects: int, kills: int) -> dict[str, Any]:
    """All figures."""
    found: dict[str, Any] = {}
    made, triples = make_bodies(bodies)
    sliding = measure_rates(made, triples, SLIDING, turns)
    tumbling = measure_rates(made, triples, TUMBLING, turns)
    found["feed_triples_per_s"] = max(sliding.pop("feed_triples_per_s"), tumbling.pop("feed_triples_per_s"))
    found |= {**sliding, "tumbling": tumbling}
    with server() as one:
        delays, memory = asyncio.run(measure_fan_out(one, subscribers, answers))
    found["fanout_p50_ms"] = round(1000 * statistics.median(delays), 1)
    found["fanout_p99_ms"] = round(1000 * sorted(delays)[max(0, -(-len(delays) * 99 // 100) - 1)], 1)
    found["memory_mb_per_1000_subscribers"] = round(memory * 1000 / subscribers, 1)
    progress(f"fan-out: {found['fanout_p50_ms']} ms, p99 {found['fanout_p99_ms']} ms")
    found["resume_lost"], found["resume_doubled"] = measure_resuming(reconnects, kills)
    return found | {"subscribers": subscribers, "triples": triples, "machine": machine()}


if __name__ == "__main__":
    main()
