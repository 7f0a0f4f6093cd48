"""A run that is made to be killed: from files, and from Kafka if it is given one, to the same, with a checkpoint.

    python -m tests.spark.victim SETTINGS.json

It says on stdout where it is: `batch 3` behind the sinks, `done` at its end. `point` names where it ends itself
(`tests.spark.killing`).
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import headwater as hw
from headwater.sinks.sink import Sink
from tests.engine.programs import SENSORS, SLIDING, TUMBLING
from tests.spark import killing

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


def main(settings: dict[str, Any]) -> None:
    folder, point = Path(settings["folder"]), settings.get("point")
    if point is not None:
        killing.arm(point, folder / f"killed-{point}")
    engine = hw.Engine(
        master="local[2]",
        checkpoint=folder / "checkpoint",
        batch_bytes=settings["batch_bytes"],
        shards=2,
        evaluator=settings.get("evaluator", "auto"),
    )
    engine.stream(SENSORS, hw.files(folder / "in.tnq"))
    engine.register(SLIDING)
    engine.register(TUMBLING)
    parts = settings.get("parts", False)
    sinks: list[Sink] = [hw.FileSink(folder / "out", parts=parts)]
    if "servers" in settings:
        servers = settings["servers"]
        source = hw.kafka(servers, settings["source"], template=TEMPLATE, per_batch=settings["per_batch"])
        engine.stream(CARS, source)
        engine.register(COUNTS)
        sinks.append(hw.KafkaSink(servers, settings["target"], parts=parts))
    # The posts are sinks that take answers, so with them no answer stays on the workers.
    posts = (killing.Signpost("before-write"), *sinks, killing.Signpost("after-write"))
    engine.run(sinks=sinks if parts else posts, on_progress=lambda progress: say("batch", progress.batches))
    say("done")


if __name__ == "__main__":
    main(json.loads(Path(sys.argv[1]).read_text()))
