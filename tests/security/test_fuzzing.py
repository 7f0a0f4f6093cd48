"""Generated inputs end no process: each entry into pyoxigraph and the compiled scanners gives what it promises."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from tests.security.processes import PROJECT

SOAK_INPUTS = 1_000_000
_AT_A_TIME = 50_000


def run_inputs(seed: int, inputs: int, place: Path) -> str:
    """Try inputs in a process of its own; the test fails where one ends it, or gives what is not promised.

    Gives what the process printed.
    """
    run = subprocess.run(
        [sys.executable, "-m", "tests.security.fuzzing", str(seed), str(inputs), str(place)],
        cwd=PROJECT,
        capture_output=True,
        text=True,
    )
    last = place.read_text() if place.exists() else "none"
    said = f"{run.stdout[-4000:]}\n{run.stderr[-4000:]}"
    assert run.returncode == 0, f"seed {seed} ended with {run.returncode}, the last input was number {last}\n{said}"
    return run.stdout


def test_some_inputs(tmp_path: Path) -> None:
    printed = run_inputs(1, 1_300, tmp_path / "place")
    assert "\n0 functions were compiled for an input" in f"\n{printed}", "the time of compiling counts for an input"


@pytest.mark.soak
def test_a_million_inputs(tmp_path: Path) -> None:
    """The seeds are others each time; HEADWATER_FUZZ_SEED repeats them."""
    first = int(os.environ.get("HEADWATER_FUZZ_SEED") or random.randrange(1 << 40))
    print(f"the first seed is {first}")
    for seed in range(first, first + SOAK_INPUTS // _AT_A_TIME):
        run_inputs(seed, _AT_A_TIME, tmp_path / "place")
