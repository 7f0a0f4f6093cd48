"""Where the time of a micro-batch goes: by Spark's own progress, and by what the stateful step measures."""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_NAMES = {
    "triggerExecution": "batch",
    "latestOffset": "offsets",
    "queryPlanning": "planning",
    "walCommit": "log_offsets",
    "addBatch": "add_batch",
    "commitOffsets": "commit",
}
"""The names of Spark's durations, in the order in which they come, and ours."""
_BATCHES = 100
"""As many Spark remembers."""
_STATE = {"allUpdatesTimeMs": "state_updates", "commitTimeMs": "state_commit"}


def parts_of_batches(spark: SparkSession, steps: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The median milliseconds of each part in the last batches with rows; `steps` are our sums after each batch."""
    found: dict[str, list[float]] = {}
    for query in spark.streams.active:
        for progress in query.recentProgress:
            batch: dict[str, Any] = json.loads(progress.json)
            if batch.get("numInputRows"):
                for name, milliseconds in _parts_of(batch).items():
                    found.setdefault(name, []).append(milliseconds)
    recent = steps[-_BATCHES:]
    for before, after in pairwise(recent):
        for name, seconds in after.items():
            found.setdefault(f"our_{name}", []).append((seconds - before.get(name, 0.0)) * 1e3)
    return {name: round(statistics.median(values), 1) for name, values in found.items()}


def _parts_of(batch: Mapping[str, Any]) -> dict[str, float]:
    """The milliseconds of the parts of one batch."""
    durations = batch["durationMs"]
    parts = {ours: float(durations[theirs]) for theirs, ours in _NAMES.items() if theirs in durations}
    for theirs, ours in _STATE.items():
        parts[ours] = float(sum(one.get(theirs, 0) for one in batch["stateOperators"]))
    return parts
