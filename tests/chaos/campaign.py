"""The campaign: chaos runs for some time, or so many of them, from a seed on.

    python -m tests.chaos.campaign --seconds 1200                          what `make chaos` does
    python -m tests.chaos.campaign --seed 4711 --runs 1 --runner spark     one run again, exactly
    python -m tests.chaos.campaign --runs 10 --twice                       each run twice, which must be the same run

Each run has a seed of its own, counted up from the first one. A run that goes wrong is told with its seed, and the
folder with its files stays. Runs in process come first, then those on Spark (`spark_runs`), in a process of their own.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from random import SystemRandom

from tests.chaos.chaos_runs import run_in_process, warm_up
from tests.chaos.endpoint_process import endpoint_process
from tests.chaos.oracle import ChaosError

_SEEDS = 1 << 32
_WARM_UP = 12
_SPARK_SHARE = 0.35
"""How much of the time is for Spark, where there are runs on both."""
PROJECT = Path(__file__).resolve().parents[2]


class Campaign:
    """Runs seeds in a folder, and counts what there was to see."""

    def __init__(self, folder: Path, first: int, runs: int | None, *, twice: bool = False) -> None:
        self._folder = folder
        self._twice = twice
        self._seeds = range(first, first + (_SEEDS if runs is None else runs))
        self.counts: Counter[str] = Counter()
        self.failed: list[str] = []

    def run_in_process(self, end: float) -> None:
        """Run seeds in process, until an instant of the monotonic clock."""
        warm_up(self._folder / "warm-up", _WARM_UP)
        with endpoint_process(self._folder / "orders") as url:
            for seed in self._seeds:
                if time.monotonic() > end:
                    break
                folder = self._folder / f"seed-{seed}"
                try:
                    counts = run_in_process(seed, folder, url, self._folder / "orders")
                    self._count(counts, folder)
                    if self._twice and not counts["with an endpoint"]:
                        again = run_in_process(seed, folder, url, self._folder / "orders")
                        if again != counts:
                            raise ChaosError(f"seed {seed} is another run the second time: {counts}, {again}")
                        shutil.rmtree(folder)
                        self.counts["run twice"] += 1
                except ChaosError as error:
                    self._fail(seed, "in-process", str(error))

    def run_on_spark(self, end: float) -> None:
        """Run seeds on Spark; a driver that is killed is begun again, over the same endpoint."""
        with endpoint_process(self._folder / "orders") as url:
            self._run_drivers(end, url)

    def _run_drivers(self, end: float, url: str) -> None:
        left = list(self._seeds[:1_000_000])
        while left and (seconds := end - time.monotonic()) > 0:
            arguments = [str(self._folder), str(left[0]), str(len(left)), str(seconds), url]
            driver = subprocess.Popen(
                [sys.executable, "-m", "tests.chaos.spark_runs", *arguments],
                cwd=PROJECT,
                stdout=subprocess.PIPE,
                text=True,
                start_new_session=True,
            )
            assert driver.stdout is not None
            for line in driver.stdout:
                said = json.loads(line)
                left.remove(said["seed"])
                if "wrong" in said:
                    self._fail(said["seed"], "spark", said["wrong"])
                else:
                    self._count(Counter(said["counts"]), self._folder / f"spark-{said['seed']}")
            code = driver.wait()
            with suppress(ProcessLookupError):
                # Java and the workers of a driver that was killed.
                os.killpg(driver.pid, signal.SIGKILL)
            if code == 0:
                return
            if code != -signal.SIGKILL:
                self._fail(left.pop(0), "spark", f"the driver ended with {code}")

    def _count(self, counts: Counter[str], folder: Path) -> None:
        self.counts += counts
        shutil.rmtree(folder)

    def _fail(self, seed: int, runner: str, reason: str) -> None:
        again = f"make chaos SEED={seed} RUNNER={runner}"
        self.failed.append(again)
        print(f"FAILED {reason}\nAgain: {again}\nIts files are in {self._folder}", flush=True)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=None, help="the first seed; by chance otherwise")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="how long it goes on")
    parser.add_argument("--runs", type=int, default=None, help="how many runs there are at most, on each runner")
    parser.add_argument("--runner", choices=["both", "in-process", "spark"], default="both")
    parser.add_argument("--twice", action="store_true", help="compare each run in process with its repetition")
    parser.add_argument("--folder", type=Path, default=None, help="where the files are; a temporary folder otherwise")
    options = parser.parse_args(arguments)
    first = SystemRandom().randrange(_SEEDS) if options.seed is None else options.seed
    # In memory forcing to disk costs nothing; the faults of the disk are made anyway.
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    folder = options.folder or Path(tempfile.mkdtemp(prefix="headwater-chaos-", dir=memory))
    folder.mkdir(parents=True, exist_ok=True)
    print(f"The first seed is {first}", flush=True)
    logging.getLogger("headwater").setLevel(logging.ERROR)
    campaign, begun = Campaign(folder, first, options.runs, twice=options.twice), time.monotonic()
    share = {"both": 1 - _SPARK_SHARE, "in-process": 1.0, "spark": 0.0}[options.runner]
    if options.runner != "spark":
        campaign.run_in_process(begun + options.seconds * share)
    if options.runner != "in-process":
        campaign.run_on_spark(begun + options.seconds)
    print(f"{time.monotonic() - begun:.0f} s, {len(campaign.failed)} failed")
    for line in campaign.failed:
        print(f"  {line}")
    for name, count in sorted(campaign.counts.items()):
        print(f"  {name}: {count}")
    if not campaign.failed:
        shutil.rmtree(folder, ignore_errors=True)
    return 1 if campaign.failed else 0


if __name__ == "__main__":
    if os.environ.get("PYTHONHASHSEED") != "0":
        # Sets of texts are otherwise walked in another order each time, and a seed would not be the same run.
        os.execve(
            sys.executable,
            [sys.executable, "-m", "tests.chaos.campaign", *sys.argv[1:]],
            {**os.environ, "PYTHONHASHSEED": "0"},
        )
    sys.exit(main(sys.argv[1:]))
