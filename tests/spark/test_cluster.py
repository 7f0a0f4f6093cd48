"""On a cluster: a standalone master and two worker processes on loopback, and the program given to spark-submit."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import headwater as hw
from tests.engine.programs import sensor_lines, write
from tests.spark import submitted

PROJECT = Path(__file__).resolve().parents[2]
_START_SECONDS = 120.0
pytestmark = [pytest.mark.spark, pytest.mark.slow]


def environment() -> dict[str, str]:
    import pyspark

    return {
        **os.environ,
        "SPARK_HOME": str(Path(pyspark.__file__).parent),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_MEMORY": "128m",
        "SPARK_NO_DAEMONIZE": "1",
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "PYTHONPATH": str(PROJECT),
    }


def command(name: str, *arguments: str) -> list[str]:
    return [str(Path(environment()["SPARK_HOME"]) / "bin" / name), *arguments]


class Cluster:
    """A master and its workers, each a process of its own."""

    def __init__(self, folder: Path, workers: int) -> None:
        self._folder = folder
        self._processes: list[subprocess.Popen[bytes]] = []
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        self.url = f"spark://127.0.0.1:{port}"
        address = ("--host", "127.0.0.1", "--port", str(port), "--webui-port", "0")
        self._start("master", "org.apache.spark.deploy.master.Master", *address)
        for number in range(workers):
            limits = ("--cores", "1", "--memory", "600m", "--webui-port", "0", "--work-dir", str(folder / f"w{number}"))
            worker = "org.apache.spark.deploy.worker.Worker"
            self._start(f"worker{number}", worker, "--host", "127.0.0.1", *limits, self.url)
        self._wait_for(workers)

    def _start(self, name: str, *arguments: str) -> None:
        with open(self._folder / f"{name}.log", "ab") as log:
            started = subprocess.Popen(command("spark-class", *arguments), env=environment(), stdout=log, stderr=log)
        self._processes.append(started)

    def _wait_for(self, workers: int) -> None:
        end = time.monotonic() + _START_SECONDS
        while time.monotonic() < end:
            text = (self._folder / "master.log").read_text()
            if len(set(re.findall(r"Registering worker (\S+)", text))) == workers:
                return
            assert all(process.poll() is None for process in self._processes), text
            time.sleep(0.2)
        raise RuntimeError(f"the workers did not come: {(self._folder / 'master.log').read_text()[-2000:]}")

    def stop(self) -> None:
        for process in reversed(self._processes):
            process.terminate()
            process.wait(30)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    made = Cluster(tmp_path_factory.mktemp("cluster"), workers=2)
    yield made
    made.stop()


def test_spark_submit_on_a_cluster_of_two_workers(cluster: Cluster, tmp_path: Path) -> None:
    stream = write(tmp_path / "in.tnq", sensor_lines(120))
    static = tmp_path / "plan.ttl"
    static.write_text("".join(f"<http://ex/s{n}> <http://ex/floor> {n % 2} .\n" for n in range(4)))
    settings = {
        "spark.executor.memory": "512m",
        "spark.executor.cores": "1",
        "spark.cores.max": "2",
        "spark.scheduler.minRegisteredResourcesRatio": "1.0",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.executorEnv.PYTHONPATH": str(PROJECT),
    }
    options = [part for name, value in settings.items() for part in ("--conf", f"{name}={value}")]
    script = str(PROJECT / "tests" / "pipeline" / "submitted.py")
    out = tmp_path / "out.txt"
    arguments = (str(stream), str(static), str(tmp_path / "checkpoint"), str(out))
    done = subprocess.run(
        command("spark-submit", "--master", cluster.url, *options, script, *arguments),
        env=environment(),
        capture_output=True,
        text=True,
        timeout=300,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    facts, *lines = out.read_text().splitlines(keepends=True)
    master, executors, shards, batches = facts.split()
    assert (master, executors, shards) == (cluster.url, "2", "2")
    assert int(batches) > 2
    expected, _ = submitted.run(hw.Engine(in_process=True), str(stream), str(static))
    assert len(expected) > 20 and lines == expected
