"""Memory that arrays give up stays in processes that run nothing but an engine."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys

import pytest

FAULTS = """
import resource, sys
import numpy as np
from headwater.running.freed_memory import keep_freed_memory
if len(sys.argv) > 1:
    keep_freed_memory()
def fill_arrays():
    # Together more than the C library keeps by itself: twice the largest array that it has seen.
    return sum(one.sum() for one in [np.ones(3 << 20) for _ in range(4)])
fill_arrays()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(4):
    fill_arrays()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def count_faults(*arguments: str, **environment: str) -> int:
    """How many pages the system has cleared for arrays that follow each other."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("MALLOC_")}
    command = [sys.executable, "-c", FAULTS, *arguments]
    run = subprocess.run(command, env=inherited | environment, capture_output=True, text=True, check=True)
    return int(run.stdout)


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallopt"), reason="this C library has no such setting")
def test_arrays_are_made_of_what_others_gave_up() -> None:
    kept, given_back = count_faults("keep"), count_faults()
    assert 10 * kept < given_back


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallopt"), reason="this C library has no such setting")
def test_a_setting_of_the_user_counts() -> None:
    assert count_faults("keep", MALLOC_TRIM_THRESHOLD_="0", MALLOC_MMAP_THRESHOLD_="65536") > 4_000
