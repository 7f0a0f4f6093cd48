"""The process that forks Spark's workers has imported what they need, and no thread runs in it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import headwater

PREPARED = """
import sys
from headwater.spark import worker_daemon
print(worker_daemon.prepare_daemon(), worker_daemon.count_threads(), "numba" in sys.modules, "pandas" in sys.modules)
"""
STRAY_THREAD = """
import sys, threading
from headwater.spark import worker_daemon
threading.Thread(target=threading.Event().wait, daemon=True).start()
worker_daemon._import_modules = lambda: None
worker_daemon.os.execv = lambda program, arguments: (print(arguments[1:]), sys.exit(3))
sys.argv = ["worker_daemon", "pyspark.worker"]
worker_daemon.main()
"""


def run(code: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": str(Path(headwater.__file__).parent.parent)}
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, timeout=120)


def test_everything_is_imported_and_nothing_else_runs() -> None:
    assert run(PREPARED).stdout.split() == ["True", "1", "True", "True"]


def test_with_a_thread_sparks_own_daemon_takes_over() -> None:
    found = run(STRAY_THREAD)
    assert found.returncode == 3, found.stderr
    assert found.stdout.strip() == "['-m', 'pyspark.daemon', 'pyspark.worker']"
