"""A run in real-time mode that can be killed at named points, in a process of its own.

| point           | where                                                              | process          |
|-----------------|--------------------------------------------------------------------|------------------|
| step            | records are evaluated, nobody has their answers                    | worker           |
| snapshot-before | the batch is read to its end, its snapshot is not written          | worker           |
| snapshot-after  | the snapshot is written, the task has not ended                    | worker           |
| merge           | the shards have given parts of answers, they are not merged        | worker           |
| logged          | Spark has logged how far the batch has read, and not committed it  | driver           |
| committed       | the batch is committed, the next one begins                        | driver           |

Without `realtime` the run has micro-batches.

With `takes_answers`, `callbacks` has the keys of the answers that this process took.

Whoever wants other queries writes `register` or the name of a query into the file `change`.

Whoever wants a kill writes a point into the file `kill`; the first process that comes there takes the file away and
ends itself, or with `group` all processes of the run. `kills` has what struck, and `worker-…` the processes of workers.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import headwater as hw
from headwater.running.evaluation import BatchOutcome
from headwater.spark.realtime import answer_rows, realtime_runner, shard_worker
from headwater.spark.spark_logs import last_commit

QUERIES = (
    """PREFIX : <http://ex/>
REGISTER QUERY totals AS
SELECT ?sensor (COUNT(?value) AS ?n) FROM STREAM <http://ex/s> [RANGE 10s STEP 1s]
WHERE { ?sensor :value ?value } GROUP BY ?sensor""",
    """PREFIX : <http://ex/>
REGISTER QUERY highest AS
SELECT ?sensor (MAX(?value) AS ?n) FROM STREAM <http://ex/s> [RANGE 4s STEP 2s]
WHERE { ?sensor :value ?value } GROUP BY ?sensor ORDER BY DESC(?n) LIMIT 2""",
)
COMES_LATER = """PREFIX : <http://ex/>
REGISTER QUERY recent AS
SELECT ?sensor (COUNT(?value) AS ?n) FROM STREAM <http://ex/s> [RANGE 3s STEP 1s]
WHERE { ?sensor :value ?value } GROUP BY ?sensor"""
TEMPLATE = """
@time {at} as milliseconds
<http://ex/{id}> <http://ex/value> "{v}"^^<http://www.w3.org/2001/XMLSchema#integer> .
"""
WORKER_POINTS = ("step", "snapshot-before", "snapshot-after", "merge")
DRIVER_POINTS = ("logged", "committed")


def strike(folder: Path, point: str, detail: object) -> None:
    """Be killed here, if that was asked for."""
    order = folder / "kill"
    try:
        wanted = order.read_text()
    except FileNotFoundError:
        return
    if wanted.split()[0] != point:
        return
    mine = folder / f"taken-{os.getpid()}"
    try:
        order.rename(mine)
    except FileNotFoundError:
        return
    with open(folder / "kills", "a") as kills:
        kills.write(f"{wanted} {detail}\n")
    if wanted.endswith("group"):
        os.killpg(os.getpgid(0), signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)


class FragileState(shard_worker.ShardState):
    """The state of a shard with the points of a worker."""

    folder: Path

    def take(self, outcome: BatchOutcome) -> None:
        super().take(outcome)
        strike(self.folder, "step", "")

    def finish(self, run: str, batch: int, letters: shard_worker.DeadLetterFolder) -> None:
        strike(self.folder, "snapshot-before", batch)
        super().finish(run, batch, letters)
        strike(self.folder, "snapshot-after", batch)


@dataclass(frozen=True)
class FragileWorker(shard_worker.ShardWorker):
    """A worker that says who it is, and keeps a fragile state."""

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        from pyspark import TaskContext

        marks = Path(self.folder).parents[1]
        context = TaskContext.get()
        assert context is not None
        (marks / f"worker-{context.partitionId()}").write_text(str(os.getpid()))
        FragileState.folder = marks
        shard_worker.ShardState = FragileState  # type: ignore[misc]
        yield from super().__call__(batches)


@dataclass(frozen=True)
class FragileMerger(answer_rows.MergeWorker):
    """A worker that merges, with its point."""

    marks: str = ""

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        def watched() -> Iterator[Any]:
            for batch in batches:
                strike(Path(self.marks), "merge", batch.num_rows)
                yield batch

        yield from super().__call__(watched())


def watch_logs(marks: Path, logs: Path) -> None:
    """Strike when Spark has logged the offsets of a batch, or committed it."""
    logged = committed = last_commit(logs)
    while True:
        if (logs / "offsets" / str(logged + 1)).exists():
            logged += 1
            is_committed = (logs / "commits" / str(logged)).exists()
            strike(marks, "logged", f"{logged} {'committed' if is_committed else 'not committed'}")
        elif committed < logged and (logs / "commits" / str(committed + 1)).exists():
            committed += 1
            strike(marks, "committed", committed)
        else:
            time.sleep(0.001)


def change_queries(engine: hw.Engine, marks: Path) -> None:
    """Register the query that comes later where `change` says `register`, or drop the query that it names."""
    order = marks / "change"
    while True:
        if order.exists():
            wanted = order.read_text()
            if wanted == "register":
                engine.register(COMES_LATER)
            elif wanted:
                engine.drop(wanted)
            order.unlink()
        time.sleep(0.05)


def main() -> None:
    settings = json.loads(sys.argv[1])
    marks, checkpoint = Path(settings["marks"]), Path(settings["marks"]) / "checkpoint"
    vars(realtime_runner).update(ShardWorker=FragileWorker, MergeWorker=partial(FragileMerger, marks=str(marks)))
    threading.Thread(target=watch_logs, args=(marks, checkpoint / "realtime" / "spark"), daemon=True).start()
    engine = hw.Engine(shards=settings["shards"], checkpoint=checkpoint)
    engine.stream("http://ex/s", hw.kafka(settings["servers"], settings["source"], template=TEMPLATE))
    for query in QUERIES:
        engine.register(query)
    threading.Thread(target=change_queries, args=(engine, marks), daemon=True).start()
    with open(marks / "callbacks", "a") as callbacks:

        def note(answer: hw.Answer) -> None:
            print(f"{answer.query}|{answer.time}|{answer.part}", file=callbacks, flush=True)

        sinks = [hw.KafkaSink(settings["servers"], settings["target"])]
        on_answer = note if settings.get("takes_answers") else None
        engine.run(realtime=settings["realtime"], follow=True, sinks=sinks, on_answer=on_answer)


if __name__ == "__main__":
    main()
