"""Runs code in a process of its own, so that a test can see that a process ends by a signal."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent.parent


def run_python(code: str, *arguments: str, seconds: float = 120, **variables: str) -> str:
    """What a program writes; the test fails where it ends by a signal or with a traceback."""
    run = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=PROJECT,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=seconds,
    )
    assert run.returncode == 0, f"it ended with {run.returncode}: {run.stderr[-2000:]}"
    return run.stdout
