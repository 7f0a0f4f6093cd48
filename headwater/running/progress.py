"""How a run is doing, for people and for programs: counts of all, and of each query.

engine.progress.rate                          elements a second, in the last batch
engine.progress.queries["busy"].watermark     how far the streams of one query have come
query.progress.complete_from                  from when the answers of a query that came later are complete
engine.progress.to_json()                     all of it, in one line
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any

from headwater.execution.collapsed_triples import CollapsedTriples
from headwater.execution.evaluator import Choice
from headwater.execution.late_queries import NOT_YET
from headwater.execution.suspension import QuerySuspended


@dataclass(frozen=True, slots=True)
class QueryProgress:
    """The counts of one query, each since the run was started.

    `evaluator` is `kernel` or `reference`, the latter with a `reason`; `shards` is in how many parts it is evaluated.
    `elements`, `late`, `ahead` and `bad` are those of its streams. `ticks` counts its answers, `rows` their rows and
    triples; `skipped` the ticks that were not evaluated because the run fell behind (`overload="coarsen"`).
    `watermark` is how far its streams have come together, `answered` its last tick, `lag` how far that is behind the
    newest element of its streams; all in microseconds of event time. `state_rows` are the triples in its windows,
    `state_bytes` the memory of those and of what was derived from them, None where it is not measured. `seconds` is how
    long its evaluation took, of all shards together. `complete_from` is None where its answers are complete from the
    first one on, and `headwater.execution.late_queries.NOT_YET` as long as that is not known. `choices` has for each
    join what the kernel chose as it ran, of each shard: how many mappings went to which input as which step, and which
    indexes are built or were dropped (`kernel.join_measures`); of queries that share one plan, the first one has them.
    `suspended` is the reason for which the query has no answers until it is resumed, None while it runs.
    `waits_for` has the streams that hold back elements which have come, and since when each of them has brought
    nothing, in microseconds since 1970 by the machine's clock. `collapsed` says for each pattern and window that is a
    set how many triples came while an equal one was in it.
    """

    evaluator: str = "kernel"
    reason: str | None = None
    shards: int = 1
    streams: tuple[str, ...] = ()
    elements: int = 0
    rate: float = 0.0
    late: int = 0
    bad: int = 0
    ticks: int = 0
    skipped: int = 0
    rows: int = 0
    watermark: int | None = None
    answered: int | None = None
    lag: int | None = None
    state_rows: int = 0
    state_bytes: int | None = None
    seconds: float = 0.0
    complete_from: int | None = None
    choices: tuple[Choice, ...] = ()
    suspended: str | None = None
    waits_for: Mapping[str, int] = field(default_factory=dict)
    collapsed: tuple[CollapsedTriples, ...] = ()
    ahead: int = 0

    @property
    def is_complete(self) -> bool:
        """Whether the last answers held everything that belongs into them."""
        return self.complete_from is None or (self.answered is not None and self.answered >= self.complete_from)


@dataclass(frozen=True, slots=True)
class StreamProgress:
    """The counts of one stream since the run was started, and how far it has come in microseconds since 1970."""

    elements: int = 0
    late: int = 0
    bad: int = 0
    ahead: int = 0
    watermark: int | None = None


@dataclass(frozen=True, slots=True)
class Progress:
    """The counts of a run so far, each since the run was started.

    `elements` came in from the sources in readable form; `late` of them came after their time had been answered;
    `ahead` of them jumped too far ahead in time; `bad` could not be read or had no time. `ticks` counts answers.
    `watermarks` says for each stream how far it has come, in microseconds since 1970, None before its first element.
    `rate` is in elements per second. `alerts` counts the goals of SERVICE clauses that answers did not reach.
    `state_rows` and `state_bytes` are those of the log of the windows, which is the durable state (without a
    checkpoint there is none in process). `steps` has the seconds of each step: `read` (on Spark: unpacking what was
    read), `evaluate`, `save`, `deliver`. `streams` has the counts of each stream that brought something.
    `largest_shard` is which part of the triples of a batch went to the shard that had most of them, in the mean: with N
    shards that have equally much 1 / N, and 1 where one has all.
    """

    elements: int = 0
    late: int = 0
    bad: int = 0
    ticks: int = 0
    batches: int = 0
    seconds: float = 0.0
    rate: float = 0.0
    watermarks: Mapping[str, int | None] = field(default_factory=dict)
    alerts: int = 0
    state_rows: int = 0
    state_bytes: int = 0
    steps: Mapping[str, float] = field(default_factory=dict)
    queries: Mapping[str, QueryProgress] = field(default_factory=dict)
    ahead: int = 0
    streams: Mapping[str, StreamProgress] = field(default_factory=dict)
    largest_shard: float = 1.0

    @property
    def collapsed(self) -> int:
        """How many triples came while an equal one was in a window that is a set, of all patterns of all queries."""
        return sum(one.count for query in self.queries.values() for one in query.collapsed)

    @property
    def suspended(self) -> dict[str, str]:
        """The queries that are suspended, and why."""
        return {name: one.suspended for name, one in self.queries.items() if one.suspended is not None}

    def to_json(self) -> str:
        """All counts as one line of JSON; instants and distances are in microseconds."""
        return json.dumps(_plain(self), ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class RunSummary(Progress):
    """What a run did in all. `stopped` where it was stopped before it had read everything.

    `warnings` has what is probably wrong with the queries over their data, a sentence each.
    """

    stopped: bool = False
    warnings: tuple[str, ...] = ()

    def raise_if_all_suspended(self) -> None:
        """Raise a `QuerySuspended` if no query is left that runs."""
        if len(self.suspended) == len(self.queries):
            for name, reason in self.suspended.items():
                raise QuerySuspended(name, reason)


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        found = {part.name: _plain(getattr(value, part.name)) for part in fields(value)}
        if isinstance(value, QueryProgress):
            found["complete"] = value.is_complete
        return found
    if isinstance(value, Mapping):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, tuple):
        return [_plain(inner) for inner in value]
    if isinstance(value, float):
        return round(value, 6)
    # No clock reaches this instant, and not every reader of JSON can count so far.
    return None if value == NOT_YET else value
