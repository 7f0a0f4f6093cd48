"""Runs in process that end themselves with SIGKILL at named points of a batch, one after the other on one checkpoint.

| point         | where                                                    |
|---------------|----------------------------------------------------------|
| plan-before   | the end of the batch is known, and not on disk           |
| plan-after    | the plan is on disk, nothing is delivered                |
| write-after   | the sinks have the answers                               |
| commit-before | everything is delivered, nothing is committed            |
| commit-after  | the batch is committed, the next one is not planned      |

    python -m tests.security.killed_runs FOLDER [data]

Between two runs the stream grows, and with `data` the data set that the query reads changes. Each run is a fork of a
process that has imported everything. After each kill the answers that were there are copied to `seen-N`: whoever reads
them has seen them.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import headwater as hw
from headwater.datasets.loading.bulk_load import load
from headwater.execution.answer_batch import AnswerBatch
from headwater.running.saved_runs import SavedRun
from headwater.sinks.sink import Sink
from headwater.terms.model import Literal, NamedNode, Triple
from tests.engine.programs import SENSORS, SLIDING, TUMBLING, sensor_lines, write

POINTS = {"plan-before": 1, "plan-after": 1, "write-after": 2, "commit-before": 2, "commit-after": 2}
"""At which pass a run ends there. A batch takes all there is: the first may be a repetition, the second is new."""
FLOORS = """
PREFIX : <http://ex/>
REGISTER QUERY floors AS
SELECT ?sensor ?floor ?value FROM STREAM <http://ex/sensors> [RANGE 5s STEP 5s]
WHERE { ?sensor :value ?value . GRAPH <http://ex/floors> { ?sensor :floor ?floor } }
"""
LINES = sensor_lines(220, late_every=0, bad_every=0)
MORE = 30
"""So many lines are appended between two runs: batches that are not planned would have them, too."""


class Signpost:
    """A sink behind the others that is told of each batch."""

    def __init__(self, passing: Callable[[str], None]) -> None:
        self._passing = passing

    def open(self, spark: object) -> None:
        pass

    def write(self, run: str, batch: int, answers: AnswerBatch) -> None:
        self._passing("write-after")


def engine_of(folder: Path, *, has_data: bool, checkpoint: str | None = "checkpoint") -> hw.Engine:
    place = None if checkpoint is None else folder / checkpoint
    engine = hw.Engine(in_process=True, evaluator="reference", checkpoint=place, batch_bytes=1 << 20)
    engine.stream(SENSORS, hw.files(folder / "in.tnq"))
    for text in (SLIDING, TUMBLING):
        engine.register(text)
    if has_data:
        engine.dataset(folder / "floors")
        engine.register(FLOORS)
    return engine


def kill_at(point: str, passes: int) -> Callable[[str], None]:
    """What is called at each point: the end of the process at one of them, when it is passed for the last time."""
    left = passes

    def passing(name: str) -> None:
        nonlocal left
        if name == point:
            left -= 1
            if left <= 0:
                os.kill(os.getpid(), signal.SIGKILL)

    return passing


def arm(passing: Callable[[str], None]) -> None:
    """Have runs of this process pass the points that are not sinks."""

    def around(method: Any, before: str, after: str) -> Any:
        def passed(*args: Any, **named: Any) -> None:
            passing(before)
            method(*args, **named)
            passing(after)

        return passed

    SavedRun.plan_batch = around(SavedRun.plan_batch, "plan-before", "plan-after")  # type: ignore[method-assign]
    SavedRun.commit = around(SavedRun.commit, "commit-before", "commit-after")  # type: ignore[method-assign]


def run_killed(folder: Path, point: str, *, has_data: bool) -> None:
    """Run in a fork that is killed at a point."""
    child = os.fork()
    if child == 0:
        try:
            passing = kill_at(point, POINTS[point])
            arm(passing)
            sinks: list[Sink] = [hw.FileSink(folder / "out"), Signpost(passing)]
            engine_of(folder, has_data=has_data).run(drain=False, sinks=sinks)
        except BaseException:
            traceback.print_exc()
        finally:
            # It came to its end: there was too little to read.
            os._exit(9)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL, (point, status)


def main(folder: Path, *, has_data: bool) -> None:
    size = len(LINES) - MORE * len(POINTS)
    write(folder / "in.tnq", LINES[:size])
    if has_data:
        write(folder / "floors.nt", [f"<http://ex/sensor{n}> <http://ex/floor> <http://ex/0> ." for n in range(9)])
        load(folder / "floors", [folder / "floors.nt"], graph="http://ex/floors")
    for number, point in enumerate(POINTS):
        run_killed(folder, point, has_data=has_data)
        if (folder / "out").exists():
            shutil.copytree(folder / "out", folder / f"seen-{number}")
        write(folder / "in.tnq", LINES[size : size + MORE], append=True)
        size += MORE
        if has_data:
            sensors = [NamedNode(f"http://ex/sensor{n}") for n in range(9)]
            added = [Triple(one, NamedNode("http://ex/floor"), Literal(str(number))) for one in sensors]
            hw.DataSet.open(folder / "floors").insert(added, "http://ex/floors")
    engine_of(folder, has_data=has_data).run(sinks=[hw.FileSink(folder / "out")])


if __name__ == "__main__":
    main(Path(sys.argv[1]), has_data="data" in sys.argv[2:])
