"""The campaign: chaos runs for some time, or so many of them, from a seed on.

    python -m tests.chaos.campaign --seconds 1200                          what `make chaos` does
    python -m tests.chaos.campaign --seed 4711 --runs 1 --runner spark     one run again, exactly
    python -m tests.chaos.campaign --runs 10 --twice                       each run twice, which must be the same run

Each run has a seed of its own, counted up from the first one. A run that goes wrong is told with its seed, and the
folder with its files stays. Runs in process come first, from files (`chaos_runs`) and over MQTT (`mqtt_runs`), then
those on Spark, from files (`spark_runs`) and over Kafka (`kafka_runs`), in a process of their own. A broker is started
once for all runs. Where there is none, its runs are left out, and the campaign says so.
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

from headwater.sources.jar_checksums import JarError
from tests.chaos.broker_keeper import kept_broker
from tests.chaos.chaos_runs import run_in_process, warm_up
from tests.chaos.endpoint_process import endpoint_process
from tests.chaos.mqtt_runs import run_over_mqtt
from tests.chaos.oracle import ChaosError
from tests.free_ports import free_port
from tests.sources.kafka_broker import Broker
from tests.sources.mosquitto_broker import Mosquitto, find_mosquitto

_SEEDS = 1 << 32
_WARM_UP, _FEW = 12, 3
_SHARES = {"in-process": 0.4, "mqtt": 0.2, "spark": 0.25, "kafka": 0.15}
"""How much of the time each kind of runs has, where there are all of them."""
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

    def run_over_mqtt(self, end: float) -> None:
        """Run seeds in process with streams from an MQTT broker."""
        executable = find_mosquitto()
        if executable is None:
            print("No runs over MQTT: Mosquitto is not installed (apt-get install mosquitto)", flush=True)
            return
        warm_up(self._folder / "warm-up", _FEW)
        kept = self._make_broker_folder("mosquitto")
        with kept_broker(lambda: Mosquitto(executable, kept, autosave=None)) as broker:
            for seed in self._seeds:
                if time.monotonic() > end:
                    break
                folder = self._folder / f"mqtt-{seed}"
                try:
                    self._count(run_over_mqtt(seed, folder, broker), folder)
                except ChaosError as error:
                    self._fail(seed, "mqtt", str(error))

    def run_over_kafka(self, end: float) -> None:
        """Run seeds on Spark with streams from Kafka, and answers to it."""
        kept, port = self._make_broker_folder("kafka"), free_port()
        try:
            made = Broker(kept, advertised=port)
        except JarError as error:
            print(f"No runs over Kafka: {error}", flush=True)
            return
        with kept_broker(lambda: made, port) as broker:
            self._run_drivers("kafka", end, broker.to_json())

    def _make_broker_folder(self, name: str) -> Path:
        folder = self._folder / name
        folder.mkdir(parents=True)
        return folder

    def run_on_spark(self, end: float) -> None:
        """Run seeds on Spark; a driver that is killed is begun again, over the same endpoint."""
        with endpoint_process(self._folder / "orders") as url:
            self._run_drivers("spark", end, url)

    def _run_drivers(self, kind: str, end: float, where: str) -> None:
        left = list(self._seeds[:1_000_000])
        while left and (seconds := end - time.monotonic()) > 0:
            arguments = [str(self._folder), str(left[0]), str(len(left)), str(seconds), where]
            driver = subprocess.Popen(
                [sys.executable, "-m", "tests.chaos.spark_driver", *arguments],
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
                    self._fail(said["seed"], kind, said["wrong"])
                else:
                    self._count(Counter(said["counts"]), self._folder / f"{kind}-{said['seed']}")
            code = driver.wait()
            with suppress(ProcessLookupError):
                # Java and the workers of a driver that was killed.
                os.killpg(driver.pid, signal.SIGKILL)
            if code == 0:
                return
            if code != -signal.SIGKILL:
                self._fail(left.pop(0), kind, f"the driver ended with {code}")

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
    parser.add_argument("--runs", type=int, default=None, help="how many runs there are at most, of each kind")
    parser.add_argument("--runner", choices=["all", *_SHARES], default="all")
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
    kinds = {
        "in-process": campaign.run_in_process,
        "mqtt": campaign.run_over_mqtt,
        "spark": campaign.run_on_spark,
        "kafka": campaign.run_over_kafka,
    }
    share = 0.0
    for kind, run in kinds.items():
        if options.runner in ("all", kind):
            share = 1.0 if options.runner == kind else share + _SHARES[kind]
            run(begun + options.seconds * share)
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
