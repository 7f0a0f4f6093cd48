"""Chaos runs on Spark: many in one session; a run whose driver is killed goes on in another process.

The run goes on behind the life in which it was killed (`spark_driver`). The faults of the disk are those of the
driver's own files: sinks, dead letters, the record of the checkpoint.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import headwater as hw
from headwater.commands.ending import failure_text
from headwater.sinks.sink import Sink
from headwater.spark import stateful_step
from tests.chaos.chaos_runs import Story, check_what_was_seen
from tests.chaos.endpoint_process import tell
from tests.chaos.faulty_disk import Fault, FaultyDisk
from tests.chaos.lives import (
    VISITS,
    Ending,
    Life,
    a_row_of_behaviours,
    note_suspension,
    noting,
    prepare_service,
)
from tests.chaos.oracle import ChaosError, compare, evaluate_definition
from tests.chaos.random_programs import RandomProgram, a_program
from tests.spark import killing

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KINDS = ("worker", "worker", "full", "broken", "slow", "clock", "stop", "none")
_WORKER_POINTS = ("state-before", "state-after")


def run_on_spark(
    seed: int, folder: Path, spark: SparkSession, *, kills_driver: bool, url: str | None = None
) -> Counter[str]:
    """Run a seed on Spark, or go on with it; gives what there was to see. A `ChaosError` says what is wrong.

    With a `url` some programs ask that endpoint, whose orders are a file beside the folder.
    """
    random = Random(seed)
    kinds = (*KINDS, "kill-before", "kill-after") if kills_driver else KINDS
    lives = [*(a_life_on_spark(random, kinds) for _ in range(random.randint(1, 2))), Life()]
    asks = random.randrange(4) == 0 and url is not None
    program = a_program(random, len(lives), url if asks else None)
    program = replace(program, batch_bytes=random.choice([800, 2000]), changes_data=False)
    orders = folder.parent / "orders"
    # A checkpoint is cut into shards once; other queries may not be cut so.
    shards = 1 if program.visitor is not None else random.randint(1, 2)
    story, run = Story(seed, program), folder / "run"
    if not run.exists():
        run.mkdir(parents=True)
        (folder / "url").write_text(url or "")
        program.write_data(run)
    try:
        for number, life in enumerate(lives):
            notes = folder / f"life-{number}"
            if not notes.exists():
                program.write_part(run, number)
                notes.mkdir()
                tell(orders, life.behaviours if asks else ())
                live_on_spark(program, folder, number, life, spark, shards, is_last=number == len(lives) - 1)
            ending = read_ending(notes, asks and bool(life.behaviours))
            story.lives.append((life, ending))
            if not ending.is_expected:
                raise ChaosError(f"life {number} {ending.how}: {ending.text}")
            check_what_was_seen(program, folder)
        if ending.how != "done":
            raise ChaosError(f"the last run, without a fault, {ending.how}: {ending.text}")
        tell(orders, ())
        evaluate_definition(program, folder)
        wanted = compare(program, folder, endpoint_failed=any(life.behaviours for life in lives))
    except ChaosError as error:
        raise ChaosError(f"on Spark with {shards} shards: {error}\n{story.tell()}") from None
    return Counter({f"on Spark, {name}": count for name, count in story.counts(wanted).items()})


def a_life_on_spark(random: Random, kinds: tuple[str, ...]) -> Life:
    """What happens in a run on Spark, of faults of these kinds."""
    kind = random.choice(kinds)
    behaviours = tuple(a_row_of_behaviours(random))
    at, visit = round(2 ** random.uniform(0, 5.5)), random.choice(VISITS)
    if kind == "none":
        return Life(visit=visit, behaviours=behaviours)
    if kind == "stop":
        return Life(stops_at=random.randint(1, 2), visit=visit, behaviours=behaviours)
    lasts = random.choice([1, 1000]) if kind in ("full", "broken") else 20
    return Life((Fault(kind, at, lasts, -10.0 if kind == "clock" else 0.0),), visit=visit, behaviours=behaviours)


def live_on_spark(
    program: RandomProgram,
    folder: Path,
    number: int,
    life: Life,
    spark: SparkSession,
    shards: int,
    *,
    is_last: bool,
    sources: Mapping[str, Any] | None = None,
    sinks: Sequence[Sink] = (),
    follow: bool = False,
    beside: Callable[[hw.Engine], AbstractContextManager[Any]] = nullcontext,
) -> None:
    """Run a program once, in this process, and note how it ended.

    `sources` are those of streams that do not come from files, `sinks` come behind the files of the answers, and
    `beside` is what happens meanwhile.
    """
    run, notes = folder / "run", folder / f"life-{number}"
    note = noting(notes / "struck")
    engine = program.make_engine(
        run,
        visitor=life.visit in ("there", "goes"),
        sources=sources,
        spark=spark,
        shards=shards,
        evaluator=program.evaluator,
        checkpoint=run / "checkpoint",
        dead_letters=run / "letters",
        batch_bytes=program.batch_bytes,
    )

    prepare_service(program, engine, folder)

    def on_progress(progress: hw.Progress) -> None:
        note_suspension(program, progress, folder)
        if life.stops_at == progress.batches:
            engine.stop()
        if program.visitor is not None and life.visit_at == progress.batches:
            if life.visit == "comes":
                program.visitor.register(engine)
            elif life.visit == "goes":
                engine.drop(program.visitor.name)

    how, text, mark = "done", "", notes / "worker-died"
    try:
        with ExitStack() as stack:
            if any(fault.kind == "worker" for fault in life.faults):
                stack.enter_context(_fragile_workers(mark, _WORKER_POINTS[number % 2]))
            disk = FaultyDisk(run, life.faults, note, counts_all_threads=True)
            stack.enter_context(disk.installed())
            stack.enter_context(beside(engine))
            to_files = hw.FileSink(run / "out", format=program.format)
            engine.run(follow=follow, drain=is_last, sinks=[to_files, *sinks], on_progress=on_progress)
    except Exception as error:
        how, text = "failed", failure_text(error)
    if mark.exists():
        note("worker")
    (notes / "ending.json").write_text(json.dumps({"how": how, "text": text}))


@contextmanager
def _fragile_workers(mark: Path, point: str) -> Iterator[None]:
    """Have one Python worker of the runs in this context die at a point of a batch."""
    settings = {"HEADWATER_KILL_AT": point, "HEADWATER_KILL_MARK": str(mark)}
    kept: Any = stateful_step.EvaluationProcessor
    os.environ |= settings
    stateful_step.EvaluationProcessor = killing.FragileProcessor  # type: ignore[misc,assignment]
    try:
        yield
    finally:
        stateful_step.EvaluationProcessor = kept  # type: ignore[misc]
        for name in settings:
            del os.environ[name]


def read_ending(notes: Path, endpoint_failed: bool = False) -> Ending:
    """How a run ended that has noted it, or was killed."""
    struck = tuple((notes / "struck").read_text().split()) if (notes / "struck").exists() else ()
    struck = (*struck, "endpoint") if endpoint_failed else struck
    if not (notes / "ending.json").exists():
        return Ending("killed", "", struck)
    ending = json.loads((notes / "ending.json").read_text())
    return Ending(ending["how"], ending["text"], struck)
