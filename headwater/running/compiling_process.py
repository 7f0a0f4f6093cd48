"""At the first use a second process compiles the kernel, while the run's own process compiles what reading needs.

numba compiles one function at a time in a process. The code is kept in files, so what one process has compiled the
other finds. A run in process that finds nothing compiled begins `headwater.kernel.precompile`, which ends by itself,
or with the run's process.
"""

from __future__ import annotations

import atexit
import os
import subprocess
import sys
from contextlib import suppress
from functools import cache

from headwater.kernel.precompile import KERNEL_ONLY, kernel_code

_STOP_SECONDS = 5.0
_FEW = 8


@cache
def start_compiling_process() -> subprocess.Popen[bytes] | None:
    """Begin the second process, at most once in the life of this one; None where it would not help."""
    if (os.cpu_count() or 1) < 2 or has_kernel_code():
        return None
    with suppress(OSError):
        process = subprocess.Popen(
            [sys.executable, "-m", "headwater.kernel.precompile", KERNEL_ONLY],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        atexit.register(_end, process)
        return process
    return None


def has_kernel_code() -> bool:
    """Whether much of the kernel was compiled before, or nothing is kept. Planning a query compiles a few functions."""
    folder = kernel_code()
    return folder is None or sum(1 for _ in folder.glob("*.nbc")) > _FEW


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    with suppress(subprocess.TimeoutExpired):
        process.wait(_STOP_SECONDS)
