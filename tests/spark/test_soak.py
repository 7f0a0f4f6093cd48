"""An hour at half the top rate: the memory of driver, Java and Python workers stays flat, and so does the state.

    make soak SOAK=tests/spark/test_soak.py                                    an hour
    HEADWATER_SOAK_SECONDS=180 make soak SOAK=tests/spark/test_soak.py         three minutes

The run is the command `headwater run --follow` on Spark, fed by a folder to which this test adds and from which it
removes what was read. It prints what it measured as JSON.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

PROJECT = Path(__file__).resolve().parents[2]
SECONDS = float(os.environ.get("HEADWATER_SOAK_SECONDS", "3600"))
SENSORS = 500
ELEMENTS = 1000
"""Of each second."""
STREAM = "http://ex/readings"
QUERIES = {
    "averages": """
        PREFIX : <http://ex/>
        REGISTER QUERY averages AS SELECT ?sensor (AVG(?value) AS ?mean) (COUNT(?value) AS ?n)
        FROM STREAM <http://ex/readings> [RANGE 10s STEP 1s] WHERE { ?sensor :value ?value } GROUP BY ?sensor
    """,
    "high": """
        PREFIX : <http://ex/>
        REGISTER QUERY high AS SELECT ?sensor ?value
        FROM STREAM <http://ex/readings> [RANGE 5s STEP 5s] WHERE { ?sensor :value ?value FILTER(?value > 9990) }
    """,
}
GROWTH, SLACK_MB = 1.15, 40.0
"""How much more the last quarter may have than the second one."""


def block(second: int, triples: int) -> str:
    """The readings of one second, at least one in each millisecond; those of a millisecond are one element."""
    step = 1000 / triples
    return "".join(
        f"{second * 1000 + int(n * step)}\t<http://ex/s{n % SENSORS}> <http://ex/value> "
        f'"{(n * 7919 + second) % 10_000}"^^<http://www.w3.org/2001/XMLSchema#integer> .\n'
        for n in range(triples)
    )


class Run:
    """`headwater run` as a process of its own."""

    def __init__(self, folder: Path, name: str, *options: str) -> None:
        self.progress = folder / f"{name}.jsonl"
        self.checkpoint = folder / f"{name}-checkpoint"
        queries = [str(write(folder / f"{query}.rq", text)) for query, text in QUERIES.items()]
        streams = ("--stream", f"{STREAM}={folder / name / '*.tnq'}", "--checkpoint", str(self.checkpoint))
        code = "from headwater.cli import main; main()"
        arguments = [sys.executable, "-c", code, "run", *queries, *streams, "--progress-json", str(self.progress)]
        with open(folder / f"{name}.log", "wb") as log:
            self.process = subprocess.Popen(
                [*arguments, "--format", "json", *options], stdout=subprocess.DEVNULL, stderr=log, cwd=PROJECT
            )

    def counts(self) -> list[dict[str, Any]]:
        if not self.progress.exists():
            return []
        return [json.loads(line) for line in self.progress.read_text().splitlines(keepends=True) if line[-1] == "\n"]


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(".part")
    unfinished.write_text(text)
    unfinished.rename(path)
    return path


def top_rate(folder: Path) -> float:
    """Triples a second when everything is there from the beginning, its start not counted."""
    each = 100_000
    for second in range(12):
        write(folder / "top" / f"{second:06d}.tnq", block(second, each))
    run = Run(folder, "top")
    assert run.process.wait(900) == 0, (folder / "top.log").read_text()
    *batches, _ = run.counts()
    first, last = batches[0], batches[-1]
    seconds_read = (last["elements"] - first["elements"]) / ELEMENTS
    return float(seconds_read * each / (last["seconds"] - first["seconds"]))


def processes(root: int) -> Iterator[tuple[str, int]]:
    """The role of each process under one, and its resident bytes."""
    page = os.sysconf("SC_PAGE_SIZE")
    found: dict[int, tuple[int, str, int]] = {}
    for path in Path("/proc").iterdir():
        if path.name.isdigit():
            try:
                stat = (path / "stat").read_text().rpartition(")")[2].split()
                command = (path / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                found[int(path.name)] = int(stat[1]), command, int((path / "statm").read_text().split()[1]) * page
            except (OSError, IndexError):
                continue
    for number, (_, command, resident) in found.items():
        above, parents = number, []
        while above in found and above != root:
            above = found[above][0]
            parents.append(above)
        if above == root:
            java = "java" in command.split(" ", 1)[0]
            yield "driver" if number == root else "java" if java else "workers", resident


@dataclass
class Samples:
    """What was measured, by name, in order."""

    values: dict[str, list[float]] = field(default_factory=dict)

    def add(self, measured: Mapping[str, float]) -> None:
        for name, value in measured.items():
            self.values.setdefault(name, []).append(value)

    def quarters(self, name: str) -> tuple[float, float]:
        """The medians of the second and of the last quarter."""
        listed = self.values[name]
        quarter = max(1, len(listed) // 4)
        return statistics.median(listed[quarter : 2 * quarter]), statistics.median(listed[-quarter:])


def folder_bytes(folder: Path) -> int:
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.stat().st_size
        except OSError:
            continue
    return total


@pytest.mark.soak
def test_memory_and_state_stay_flat(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    top = top_rate(tmp_path)
    rate = max(ELEMENTS, int(top / 2))
    write(tmp_path / "feed" / "000000.tnq", block(0, rate))
    run = Run(tmp_path, "feed", "--follow")
    samples = Samples()
    try:
        while not run.counts():
            assert run.process.poll() is None, (tmp_path / "feed.log").read_text()
            time.sleep(1)
        begin, second, removed = time.monotonic(), 1, 0
        while time.monotonic() - begin < SECONDS:
            write(tmp_path / "feed" / f"{second:06d}.tnq", block(second, rate))
            second += 1
            counts = run.counts()
            read = counts[-1]["elements"] // ELEMENTS
            while removed < read - 30:
                (tmp_path / "feed" / f"{removed:06d}.tnq").unlink()
                removed += 1
            if second % 5 == 0:
                samples.add(measured(run, counts[-1], behind=second - read))
            assert run.process.poll() is None, (tmp_path / "feed.log").read_text()
            time.sleep(max(0.0, begin + second - 1 - time.monotonic()))
    finally:
        run.process.terminate()
        run.process.wait(60)
    told = {name: samples.quarters(name) for name in samples.values}
    with capsys.disabled():
        print(json.dumps({"top_rate": top, "rate": rate, "seconds": SECONDS, "quarters": told}))
    for name in ("driver_mb", "java_mb", "workers_mb", "state_mb", "state_rows", "query_rows"):
        early, late = told[name]
        assert late <= early * GROWTH + (SLACK_MB if name.endswith("_mb") else 0), f"{name}: {early:.1f} → {late:.1f}"
    assert told["behind_s"][1] <= told["behind_s"][0] + 10, "it does not keep up with half of its top rate"


def measured(run: Run, counts: Mapping[str, Any], behind: float) -> dict[str, float]:
    resident = {"driver": 0, "java": 0, "workers": 0}
    for role, size in processes(run.process.pid):
        resident[role] += size
    return {
        **{f"{role}_mb": size / 1e6 for role, size in resident.items()},
        "state_mb": counts["state_bytes"] / 1e6,
        "state_rows": counts["state_rows"],
        "query_rows": sum(query["state_rows"] for query in counts["queries"].values()),
        "checkpoint_mb": folder_bytes(run.checkpoint) / 1e6,
        "behind_s": behind,
    }
