"""The state of a program besides its window log, and the plain values that checkpoints hold of it."""

from __future__ import annotations

from dataclasses import dataclass, field, fields

from headwater.execution.evaluator import EvaluatorState
from headwater.execution.late_queries import LateStart
from headwater.execution.static_data import Version
from headwater.execution.stream_reads import ReadHistory
from headwater.execution.window_log import StreamKey
from headwater.terms.packing import Plain
from headwater.windows.partitioned_clock import PartitionedClock
from headwater.windows.stream_clock import DerivedStreamClock, StreamClock

_CLOCKS: dict[str, type[StreamClock]] = {
    "source": StreamClock,
    "derived": DerivedStreamClock,
    "partitioned": PartitionedClock,
}


@dataclass
class ProgramState:
    """What a later process needs besides the window log; it is small, whatever the windows hold.

    `queries` has the fingerprint of each query, `removed` and `reads` say what the log lacks, `late_starts` has the
    queries that started while their streams were under way, `suspended` those that are suspended (`suspension`).
    """

    clocks: dict[StreamKey, StreamClock]
    states: dict[str, EvaluatorState]
    queries: dict[str, str]
    removed: dict[StreamKey, int]
    reads: ReadHistory
    late_starts: dict[str, LateStart]
    data_version: Version | None
    suspended: dict[str, Plain] = field(default_factory=dict)

    def to_plain(self) -> Plain:
        """The state as plain values; queries that are evaluated as one share what their evaluator saved."""
        shared = {id(one): one for one in self.states.values()}
        places = {name: place for place, name in enumerate(shared)}
        return {
            "clocks": {key: _clock_to_plain(clock) for key, clock in self.clocks.items()},
            "evaluators": [one.to_plain() for one in shared.values()],
            "states": {name: places[id(one)] for name, one in self.states.items()},
            "queries": dict(self.queries),
            "removed": dict(self.removed),
            "reads": self.reads.to_plain(),
            "late_starts": {name: one.to_plain() for name, one in self.late_starts.items()},
            "data_version": self.data_version,
            "suspended": dict(self.suspended),
        }

    @classmethod
    def from_plain(cls, value: Plain) -> ProgramState:
        """The state that `to_plain` gave."""
        shared = [EvaluatorState.from_plain(one) for one in value["evaluators"]]
        return cls(
            clocks={key: _clock_from_plain(one) for key, one in value["clocks"].items()},
            states={name: shared[place] for name, place in value["states"].items()},
            queries=value["queries"],
            removed=value["removed"],
            reads=ReadHistory.from_plain(value["reads"]),
            late_starts={name: LateStart.from_plain(one) for name, one in value["late_starts"].items()},
            data_version=value["data_version"],
            suspended=value["suspended"],
        )

    @property
    def next_times(self) -> dict[str, int | None]:
        """By stream, the time after its newest element; None where it has brought none."""
        found: dict[str, int | None] = {}
        for (stream, _), clock in self.clocks.items():
            marks = [
                mark
                for mark in (found.get(stream), None if clock.newest_time is None else clock.newest_time + 1)
                if mark is not None
            ]
            found[stream] = max(marks, default=None)
        return found


def _clock_to_plain(clock: StreamClock) -> Plain:
    (kind,) = (name for name, one in _CLOCKS.items() if one is type(clock))
    return [kind, {one.name: getattr(clock, one.name) for one in fields(clock)}]


def _clock_from_plain(value: Plain) -> StreamClock:
    kind, values = value
    return _CLOCKS[kind](**values)
