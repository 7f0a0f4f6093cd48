"""A real Kafka broker for tests: one process in KRaft mode on loopback, from its own Maven artefacts."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headwater.sources.kafka_jars import ensure_kafka, fetch_jars
from tests.free_ports import free_port

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ARTEFACT = "org.apache.kafka:kafka_2.13:3.9.2"
_CLUSTER = "AAAAAAAAAAAAAAAAAAAAAA"
_START_SECONDS = 90


class Broker:
    """A broker whose data outlive its process, so that it can go away and come back.

    A topic is made when it is first used, with so many partitions. With `advertised` clients are told to connect to
    that port, where something has to pass on what they send.
    """

    def __init__(self, folder: Path, partitions: int = 2, advertised: int | None = None) -> None:
        self.port, controller = free_port(), free_port()
        self.servers = f"127.0.0.1:{self.port}"
        self._java = java_with_kafka()
        self._settings = folder / "server.properties"
        self._log = folder / "broker.log"
        self._process: subprocess.Popen[bytes] | None = None
        settings = {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": f"1@127.0.0.1:{controller}",
            "listeners": f"PLAINTEXT://{self.servers},CONTROLLER://127.0.0.1:{controller}",
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{advertised or self.port}",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
            "log.dirs": str(folder / "data"),
            "offsets.topic.replication.factor": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "group.initial.rebalance.delay.ms": "0",
            "num.partitions": str(partitions),
        }
        self._settings.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        self._run("kafka.tools.StorageTool", "format", "-t", _CLUSTER, "-c", str(self._settings))

    def start(self) -> None:
        with open(self._log, "ab") as log:
            command = [*self._java, "kafka.Kafka", str(self._settings)]
            self._process = subprocess.Popen(command, stdout=log, stderr=log)
        end = time.monotonic() + _START_SECONDS
        while time.monotonic() < end:
            try:
                with socket.create_connection(("127.0.0.1", self.port), timeout=1):
                    return
            except OSError:
                if self._process.poll() is not None:
                    break
                time.sleep(0.1)
        raise RuntimeError(f"the broker does not listen: {self._log.read_text()[-2000:]}")

    @property
    def pid(self) -> int:
        """The process, which must have been started."""
        assert self._process is not None
        return self._process.pid

    def kill(self) -> None:
        """The broker is gone from one moment to the next."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(30)
            self._process = None

    def freeze(self) -> None:
        """The broker keeps its connections, and answers nobody until `thaw`."""
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """The broker goes on."""
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        if self._process is None:
            raise RuntimeError("the broker does not run")
        self._process.send_signal(number)

    def _run(self, *arguments: str) -> None:
        run = subprocess.run([*self._java, *arguments], capture_output=True, text=True, timeout=120)
        assert run.returncode == 0, run.stdout + run.stderr


def java_with_kafka() -> list[str]:
    """The command to which the name of a class of Kafka is added; a `JarError` where Kafka cannot be had."""
    jars = fetch_jars((ARTEFACT,), transitive=True)
    java = os.environ.get("JAVA_HOME")
    program = str(Path(java) / "bin" / "java") if java else shutil.which("java") or "java"
    memory = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
    return [program, *memory, "-cp", os.pathsep.join(map(str, jars))]


def put(spark: SparkSession, servers: str, topic: str, values: Iterable[bytes | None], partition: int = 0) -> None:
    """Write records into a partition of a topic, in their order."""
    ensure_kafka(spark)
    rows = [(partition, value) for value in values]
    frame = spark.createDataFrame(rows, "partition int, value binary").coalesce(1)
    frame.write.format("kafka").options(**{"kafka.bootstrap.servers": servers, "topic": topic}).save()


def taken(spark: SparkSession, servers: str, topic: str) -> list[Any]:
    """All records of a topic, in the order of their offsets."""
    options = {"kafka.bootstrap.servers": servers, "subscribe": topic, "includeHeaders": "true"}
    rows: list[Any] = spark.read.format("kafka").options(**options).load().collect()
    return sorted(rows, key=lambda row: (row.partition, row.offset))
