"""A run that is made to be killed: from Kafka and files to Kafka and files, with a checkpoint.

    python -m tests.pipeline.connectors.victim SETTINGS.json

It says on stdout where it is: `at before-write 3` and `at after-write 3` around the sinks, `batch 3` behind them,
`done` at its end. Whoever wants to hit a moment before it passes gives `pause`, in seconds.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import headwater as hw
from tests.pipeline.programs import SENSORS, SLIDING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CARS = "http://ex/cars"
COUNTS = """
PREFIX : <http://ex/>
REGISTER QUERY counts AS
SELECT ?car (COUNT(?value) AS ?n) FROM STREAM <http://ex/cars> [RANGE 20s STEP 5s]
WHERE { ?car :value ?value } GROUP BY ?car
"""
TEMPLATE = """
@time {at} as seconds
<http://ex/{id}> <http://ex/value> "{v}" .
"""


def say(*words: object) -> None:
    print(*words, flush=True)


class Signpost:
    """A sink that writes nothing: it says that the batch has come here, and waits."""

    def __init__(self, point: str, pause: float) -> None:
        self._point = point
        self._pause = pause

    def open(self, spark: SparkSession | None) -> None:
        return

    def write(self, run: str, batch: int, answers: Sequence[hw.Answer]) -> None:
        say("at", self._point, batch)
        time.sleep(self._pause)


def main(settings: dict[str, Any]) -> None:
    folder = Path(settings["folder"])
    engine = hw.Engine(master="local[2]", checkpoint=folder / "checkpoint", batch_bytes=settings["batch_bytes"])
    engine.stream(SENSORS, hw.files(folder / "in.tnq"))
    source = hw.kafka(settings["servers"], settings["source"], template=TEMPLATE, per_batch=settings["per_batch"])
    engine.stream(CARS, source)
    engine.register(SLIDING)
    engine.register(COUNTS)
    pause = settings.get("pause", 0.0)
    sinks = (
        Signpost("before-write", pause),
        hw.FileSink(folder / "out"),
        hw.KafkaSink(settings["servers"], settings["target"]),
        Signpost("after-write", pause),
    )
    engine.run(sinks=sinks, on_progress=lambda progress: say("batch", progress.batches))
    say("done")


if __name__ == "__main__":
    main(json.loads(Path(sys.argv[1]).read_text()))
