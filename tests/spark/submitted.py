"""What a user gives to spark-submit: `spark-submit submitted.py STREAM-FILE STATIC-FILE CHECKPOINT OUT-FILE`.

The session is that of spark-submit, wherever it runs.
"""

from __future__ import annotations

import sys
from pathlib import Path

import headwater as hw
from headwater.sinks.answer_text import format_answer_json

QUERY = """
PREFIX : <http://ex/>
REGISTER QUERY floors AS
SELECT ?sensor ?floor (COUNT(?value) AS ?n) FROM STREAM <http://ex/sensors> [RANGE 20s STEP 5s]
FROM NAMED <http://ex/plan>
WHERE { ?sensor :value ?value GRAPH <http://ex/plan> { ?sensor :floor ?floor } } GROUP BY ?sensor ?floor
"""


def run(engine: hw.Engine, stream: str, static: str) -> tuple[list[str], hw.RunSummary]:
    engine.stream("http://ex/sensors", stream)
    engine.dataset(static, graph="http://ex/plan")
    engine.register(QUERY)
    lines: list[str] = []
    return lines, engine.run(on_answer=lambda answer: lines.append(format_answer_json(answer)))


def main(stream: str, static: str, checkpoint: str, out: str) -> None:
    engine = hw.Engine(checkpoint=checkpoint, batch_bytes=3000, shards=2)
    lines, summary = run(engine, stream, static)
    spark = engine.session()
    tracker = spark.sparkContext._jsc.sc().statusTracker()
    # The driver is one of them.
    executors = len(tracker.getExecutorInfos()) - 1
    facts = [spark.sparkContext.master, str(executors), str(summary.queries["floors"].shards), str(summary.batches)]
    Path(out).write_text(f"{' '.join(map(str, facts))}\n{''.join(lines)}")


if __name__ == "__main__":
    main(*sys.argv[1:])
