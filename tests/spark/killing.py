"""Named points in the way of a batch at which a run ends itself, and all its processes, with SIGKILL.

| point          | where                                                              | process       |
|----------------|--------------------------------------------------------------------|---------------|
| chunk-before   | a piece is about to be read                                        | Python worker |
| chunk-after    | its chunks are written, and nobody has taken them                  | Python worker |
| state-before   | the batch is evaluated, its state is not saved                     | Python worker |
| state-after    | the state is with Spark, which has not committed it                | Python worker |
| part-before    | the state is with Spark, the worker writes no answers yet          | Python worker |
| part-after     | the worker has written its answers, and the driver does not know   | Python worker |
| before-write   | the state is committed, no sink has the answers                    | driver        |
| after-write    | the sinks have the answers, the batch is not committed             | driver        |
| commit-before  | workers have written their answers, which have no name yet         | driver        |
| commit-between | the answers of one shard have their name, those of another do not  | driver        |
| committed      | the batch is committed, the next one is not planned                | Python worker |

`arm` puts them in. A point is passed some times before it strikes, and strikes once: a file remembers it.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import headwater as hw
from headwater.running.program_description import ProgramDescription
from headwater.running.shipping import Shipped
from headwater.running.worker_delivery import WorkerDelivery
from headwater.sinks import file_sink
from headwater.spark import spark_source
from headwater.spark import stateful_step as stateful
from headwater.terms.durable_files import place_files

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

POINTS = ("chunk-before", "chunk-after", "state-before", "state-after", "before-write", "after-write", "committed")
PART_POINTS = ("part-before", "part-after", "commit-before", "commit-between")
"""Those that a run passes only where workers write answers."""
_POINT, _MARK, _GROUP = "HEADWATER_KILL_AT", "HEADWATER_KILL_MARK", "HEADWATER_KILL_GROUP"
_PASSED = 2


def weaken(monkeypatch: pytest.MonkeyPatch, mark: Path) -> None:
    """Have the next Python worker die, alone, in the middle of a batch: once."""
    monkeypatch.setenv(_POINT, "state-before")
    monkeypatch.setenv(_MARK, str(mark))
    monkeypatch.setattr(stateful, "EvaluationProcessor", FragileProcessor)


def arm(point: str, mark: Path) -> None:
    """Have this process and those that it starts end at a point; to be called before Spark is started."""
    os.environ |= {_POINT: point, _MARK: str(mark), _GROUP: str(os.getpgid(0))}
    stateful.EvaluationProcessor = FragileProcessor  # type: ignore[misc,assignment]
    spark_source.HeadwaterSource = FragileSource  # type: ignore[misc]
    file_sink.place_files = place_files_in_danger  # type: ignore[attr-defined]


def place_files_in_danger(places: Mapping[Path, Path]) -> None:
    """Files get their names, with two points."""
    passing("commit-before", "")
    for unfinished, path in places.items():
        place_files({unfinished: path})
        passing("commit-between", "")


def passing(point: str, batch: object) -> None:
    """Says that a batch is at a point; the end, where it was armed."""
    if os.environ.get(_POINT) != point:
        return
    mark = Path(os.environ[_MARK])
    # Workers do not know what the others saw: each pass leaves a file.
    passes = len(list(mark.parent.glob(f"{mark.name}.*")))
    if passes < _PASSED:
        (mark.parent / f"{mark.name}.{passes}").write_text(str(batch))
    elif not mark.exists():
        mark.write_text(str(batch))
        if _GROUP in os.environ:
            os.killpg(int(os.environ[_GROUP]), signal.SIGKILL)
        os.kill(os.getpid(), signal.SIGKILL)


class FragileProcessor(stateful.EvaluationProcessor):
    """The stateful step with its two points. It takes along what the driver was told."""

    def __init__(
        self,
        definition: Shipped[ProgramDescription],
        delivery: Shipped[WorkerDelivery] | None = None,
        handover: Path | None = None,
    ) -> None:
        super().__init__(definition, delivery, handover)
        self._told = {name: os.environ[name] for name in (_POINT, _MARK, _GROUP) if name in os.environ}

    def init(self, handle: Any) -> None:
        os.environ |= self._told
        super().init(handle)

    def _save(self, evaluation: Any) -> None:
        passing("state-before", "")
        super()._save(evaluation)
        passing("state-after", "")

    def _deliver(self, outcome: Any, key: int) -> Any:
        passing("part-before", "")
        found = super()._deliver(outcome, key)
        passing("part-after", "")
        return found


class FragileSource(spark_source.HeadwaterSource):
    """The source as Spark makes it, in whatever process."""

    def streamReader(self, schema: Any) -> Any:
        reader = super().streamReader(schema)
        reader.__class__ = FragileReader
        return reader


class FragileReader(spark_source.HeadwaterReader):
    """The reader with its three points."""

    def read(self, partition: Any) -> Iterator[Any]:
        passing("chunk-before", "")
        yield from super().read(partition)
        passing("chunk-after", "")

    def commit(self, end: dict[str, Any]) -> None:
        super().commit(end)
        passing("committed", "")


class Signpost:
    """A sink that writes nothing: it says that the batch has come here, and waits."""

    def __init__(self, point: str, pause: float = 0.0) -> None:
        self._point = point
        self._pause = pause

    def open(self, spark: SparkSession | None) -> None:
        return

    def write(self, run: str, batch: int, answers: Sequence[hw.Answer]) -> None:
        passing(self._point, batch)
        time.sleep(self._pause)
