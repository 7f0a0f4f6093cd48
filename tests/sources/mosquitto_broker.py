"""A real MQTT broker for tests: Mosquitto on loopback, which keeps messages for clients that are away."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from paho.mqtt.client import Client
from paho.mqtt.enums import CallbackAPIVersion

from tests.free_ports import free_port

_SAVE_SECONDS = 10.0


class Mosquitto:
    """A broker of its own, whose folder and port stay the same when it is started again.

    What it keeps is in memory. It saves that when it is ended in order, when it is told to, and by itself after every
    `autosave` seconds (None: never).
    """

    def __init__(self, executable: str, folder: Path, *, autosave: int | None = 1) -> None:
        self.port = free_port()
        self._command = [executable, "-c", str(folder / "mosquitto.conf")]
        self._saved = folder / "mosquitto.db"
        (folder / "mosquitto.conf").write_text(
            f"listener {self.port} 127.0.0.1\nallow_anonymous true\npersistence true\nmax_queued_messages 0\n"
            f"persistence_location {folder}/\nautosave_interval {autosave or 0}\n"
            + ("user root\n" if os.getuid() == 0 else "")
        )
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self._process = subprocess.Popen(self._command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for _ in range(100):
            try:
                with socket.create_connection(("127.0.0.1", self.port), timeout=1):
                    return
            except OSError:
                time.sleep(0.05)
        raise RuntimeError("Mosquitto does not listen")

    @property
    def pid(self) -> int:
        """The process, which must have been started."""
        assert self._process is not None
        return self._process.pid

    def stop(self) -> None:
        """End it as an operator would: it saves what it keeps."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait(10)
            self._process = None

    def kill(self) -> None:
        """The broker is gone from one moment to the next, with all that it has not saved."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(10)
            self._process = None

    def save(self) -> None:
        """Have it save what it keeps, and wait until it has."""
        before = self._saved_at()
        os.kill(self.pid, signal.SIGUSR1)
        end = time.monotonic() + _SAVE_SECONDS
        while self._saved_at() == before:
            if time.monotonic() > end:
                raise RuntimeError("Mosquitto does not save what it keeps")
            time.sleep(0.005)

    def _saved_at(self) -> tuple[int, int] | None:
        try:
            status = self._saved.stat()
        except FileNotFoundError:
            return None
        return status.st_mtime_ns, status.st_ino

    def publish(self, messages: Sequence[tuple[str, str | bytes]]) -> None:
        """Send messages with their topics; the broker has acknowledged them when this returns."""
        client = Client(CallbackAPIVersion.VERSION2, client_id="publisher")
        client.connect("127.0.0.1", self.port)
        client.loop_start()
        try:
            for topic, payload in messages:
                client.publish(topic, payload, qos=1).wait_for_publish(10)
            client.disconnect()
        finally:
            client.loop_stop()


def subscribe(port: int, name: str, topic: str) -> None:
    """Have a broker keep the messages of a topic for a client of that name from now on."""
    client = Client(CallbackAPIVersion.VERSION2, client_id=name, clean_session=False)
    client.connect("127.0.0.1", port)
    client.loop_start()
    try:
        client.subscribe(topic, 1)
        # The broker has subscribed it when it acknowledges what came behind that.
        client.publish(f"begun/{name}", b"", qos=1).wait_for_publish(10)
        client.disconnect()
    finally:
        client.loop_stop()


def find_mosquitto() -> str | None:
    return shutil.which("mosquitto") or shutil.which("mosquitto", path="/usr/sbin:/usr/local/sbin")
