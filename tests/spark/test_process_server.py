"""A process that the launcher asks for runs as if Python had been started, but from what the server has imported."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from headwater.spark import process_client
from headwater.spark.process_server import Launcher

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.skipif(not Launcher.is_possible(), reason="processes cannot be forked here")

TOLD = """
import json, os, sys
given = sys.stdin.read()
print(json.dumps([sys.argv[1:], os.environ.get("WORD"), os.getcwd(), given, "numba" in sys.modules, __name__]))
print("to standard error", file=sys.stderr)
sys.exit(7)
"""
SLEEPS = """
import os, pathlib, time
pathlib.Path("started").write_text(str(os.getpid()))
time.sleep(600)
"""


@pytest.fixture(scope="module")
def launcher(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Launcher]:
    made = Launcher({})
    yield made
    made.close()


@pytest.fixture
def modules(tmp_path: Path) -> Path:
    (tmp_path / "told.py").write_text(TOLD)
    (tmp_path / "sleeps.py").write_text(SLEEPS)
    (tmp_path / "fails.py").write_text("raise ValueError('on purpose')")
    return tmp_path


def environment(modules: Path) -> dict[str, str]:
    return os.environ | {"PYTHONPATH": str(modules), "WORD": "a word"}


def run(program: list[str], modules: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*program, *arguments],
        env=environment(modules),
        cwd=modules,
        input="what was given",
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_arguments_variables_folder_and_files_are_those_of_the_launcher(launcher: Launcher, modules: Path) -> None:
    found = run([str(launcher.program)], modules, "-m", "told", "one", "two")
    assert found.stdout == f'[["one", "two"], "a word", "{modules}", "what was given", true, "__main__"]\n'
    assert found.stderr == "to standard error\n"
    assert found.returncode == 7


def test_an_error_is_printed_and_told(launcher: Launcher, modules: Path) -> None:
    found = run([str(launcher.program)], modules, "-m", "fails")
    assert "ValueError: on purpose" in found.stderr
    assert found.returncode == 1


def test_what_is_no_module_is_for_python_itself(launcher: Launcher, modules: Path) -> None:
    found = run([str(launcher.program)], modules, "-c", "import sys; print(sys.executable, 'numba' in sys.modules)")
    assert found.stdout == f"{sys.executable} False\n"


def test_without_a_server_python_itself_takes_over(modules: Path) -> None:
    nobody = [sys.executable, "-I", "-S", process_client.__file__, str(modules / "socket")]
    found = run(nobody, modules, "-m", "told", "one")
    assert found.stdout == f'[["one"], "a word", "{modules}", "what was given", false, "__main__"]\n'
    assert found.returncode == 7


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def until(modules: Path, process: subprocess.Popen[bytes]) -> int:
    """The number of the process, once it runs."""
    while not (modules / "started").exists() or not (modules / "started").read_text():
        assert process.poll() is None
        time.sleep(0.02)
    return int((modules / "started").read_text())


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_what_ends_the_launcher_ends_the_process(launcher: Launcher, modules: Path, number: int) -> None:
    process = subprocess.Popen([launcher.program, "-m", "sleeps"], env=environment(modules), cwd=modules)
    pid = until(modules, process)
    assert pid != process.pid
    process.send_signal(number)
    assert process.wait(20) == (128 + signal.SIGTERM if number == signal.SIGTERM else -signal.SIGKILL)
    for _ in range(500):
        if not is_running(pid):
            return
        time.sleep(0.02)
    pytest.fail("it runs on")


def test_the_server_ends_with_the_process_that_started_it() -> None:
    code = "from headwater.spark.process_server import Launcher; print(Launcher({}).server.pid)"
    pid = int(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)
    for _ in range(1000):
        if not is_running(pid):
            return
        time.sleep(0.02)
    pytest.fail("it runs on")


def test_all_workers_of_spark_come_from_it(spark: SparkSession) -> None:
    def forked(numbers: object) -> list[bool]:
        return ["headwater.spark.process_server" in open("/proc/self/cmdline").read()]

    assert spark.sparkContext.parallelize([0], 1).mapPartitions(forked).collect() == [True]
