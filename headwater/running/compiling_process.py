"""At the first use a second process compiles what evaluation needs, while the first one compiles what reading needs.

numba compiles one function at a time in a process. The code is kept in files, so what one process has compiled the
other finds. A run in process that finds nothing compiled begins such a process, which evaluates a few small queries
(`headwater.engine.first_queries`) and ends. It is ended with the run's process, and does nothing where another one
is at work.
"""

from __future__ import annotations

import atexit
import os
import subprocess
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path

import headwater.kernel.columns
from headwater.terms.compiled_code import code_folder

IN_COMPILING_PROCESS = "HEADWATER_COMPILING_PROCESS"
"""Set in the environment of the second process."""
_COMMAND = "from headwater.engine.first_queries import main; main()"
_STOP_SECONDS = 5.0
_FEW = 8


@cache
def start_compiling_process() -> subprocess.Popen[bytes] | None:
    """Begin the second process, at most once in the life of this one; None where it would not help."""
    if IN_COMPILING_PROCESS in os.environ or (os.cpu_count() or 1) < 2 or has_evaluation_code():
        return None
    with suppress(OSError):
        process = subprocess.Popen(
            [sys.executable, "-c", _COMMAND],
            env={**os.environ, IN_COMPILING_PROCESS: "1"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        atexit.register(_end, process)
        return process
    return None


def evaluation_code() -> Path | None:
    """The folder of compiled code of the windows; None where code is not kept."""
    return code_folder(Path(str(headwater.kernel.columns.__file__)).parent)


def has_evaluation_code() -> bool:
    """Whether much of it was compiled before, or nothing is kept. Planning a query compiles a few functions."""
    folder = evaluation_code()
    return folder is None or sum(1 for _ in folder.glob("*.nbc")) > _FEW


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    with suppress(subprocess.TimeoutExpired):
        process.wait(_STOP_SECONDS)
