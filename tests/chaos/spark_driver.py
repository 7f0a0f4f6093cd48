"""The process in which chaos runs on Spark are.

    python -m tests.chaos.spark_driver FOLDER SEED RUNS SECONDS WHERE

WHERE is the address of an endpoint, or a broker (`KeptBroker.to_json`): then the streams come through Kafka. Each run
that is done is a line of JSON with its seed and what there was to see, or what is wrong. A driver that is killed takes
this process with it: whoever started it starts it again with the same seed.
"""

from __future__ import annotations

import json
import logging
import sys
import time
from pathlib import Path
from typing import Any

import headwater as hw
from headwater.sources.kafka_jars import ensure_kafka
from tests.chaos.broker_keeper import KeptBroker
from tests.chaos.kafka_runs import run_over_kafka
from tests.chaos.oracle import ChaosError
from tests.chaos.spark_runs import run_on_spark


def main(folder: Path, first: int, runs: int, seconds: float, where: str) -> None:
    broker = KeptBroker.from_json(where) if where.startswith("{") else None
    end = time.monotonic() + seconds
    logging.getLogger("headwater").setLevel(logging.ERROR)
    spark = hw.Engine(master="local[2]").session()
    spark.sparkContext.setLogLevel("OFF")
    if broker is not None:
        ensure_kafka(spark)
    for seed in range(first, first + runs):
        if time.monotonic() > end:
            break
        said: dict[str, Any] = {"seed": seed}
        try:
            if broker is None:
                said["counts"] = run_on_spark(seed, folder / f"spark-{seed}", spark, kills_driver=True, url=where)
            else:
                said["counts"] = run_over_kafka(seed, folder / f"kafka-{seed}", spark, broker, kills_driver=True)
        except ChaosError as error:
            said["wrong"] = str(error)
        print(json.dumps(said), flush=True)
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4]), sys.argv[5])
