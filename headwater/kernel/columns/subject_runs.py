"""Whether the triples of each subject come in one piece, as those of an observation do.

    1000  :o1 a :Rainfall   :o1 :procedure :s1   :o1 :value 3   :o2 a :Snowfall   :o2 :procedure :s7 …
          └────────────────── run of :o1 ────────────────────┘  └────────── run of :o2 ──────────┘

A run is consecutive triples of one subject and one time. While no subject of a window has a second run, all its triples
enter the window at one tick and leave it at one tick. Then a join on the subject needs no state (`StarOperator`).
"""

from __future__ import annotations

import numpy as np

from headwater.kernel.columns.ring_index import Ints, as_contiguous
from headwater.terms.compiled_code import compiled

_FREE = -1
"""A free slot of the table; it is no subject's id."""
_SMALLEST_TABLE = 1 << 10
_LONGEST_RUN = 32
"""A subject with more triples may make many rows, of which a join with other patterns would read few."""


@compiled
def _count_runs(triples):  # type: ignore[no-untyped-def]
    """How many runs there may be: how often the subject changes."""
    runs = min(1, triples.shape[0])
    for row in range(1, triples.shape[0]):
        runs += triples[row, 0] != triples[row - 1, 0]
    return runs


@compiled
def _enter_runs(times, starts, triples, table, last):  # type: ignore[no-untyped-def]
    """Enter the subject of each run into the table; gives how many, or -1 where a subject has two runs or a long one.

    `last` has the subject, time and length of the last run, which the first triples may continue.
    """
    subject, time, length = last[0], last[1], last[2]
    entered = 0
    mask = table.shape[0] - 1
    for item in range(times.shape[0]):
        for row in range(starts[item], starts[item + 1]):
            length += 1
            if triples[row, 0] != subject or times[item] != time:
                subject, time, length = triples[row, 0], times[item], 1
                # The ids of subjects are hashes.
                slot = (subject ^ (subject >> 32)) & mask
                while table[slot] != _FREE and table[slot] != subject:
                    slot = (slot + 1) & mask
                if table[slot] == subject or subject < 0:
                    return -1
                table[slot] = subject
                entered += 1
            if length > _LONGEST_RUN:
                return -1
    last[0], last[1], last[2] = subject, time, length
    return entered


class SubjectRuns:
    """The subjects of a window; `has_single_runs` turns false when one of them has a second run."""

    def __init__(self) -> None:
        self.has_single_runs = True
        self._table: Ints = np.zeros(0, dtype=np.int64)
        self._entered = 0
        self._last: Ints = np.zeros(3, dtype=np.int64)

    def has_room(self, triples: Ints) -> bool:
        """Whether these triples can be added, or all that are still in the window have to be entered anew."""
        return bool(2 * (self._entered + int(_count_runs(as_contiguous(triples)))) <= self._table.shape[0])

    def clear(self, triples: Ints) -> None:
        """Forget all subjects, and make room for those of these triples and as many more."""
        size = _SMALLEST_TABLE
        while size < 4 * int(_count_runs(as_contiguous(triples))):
            size *= 2
        self._table = np.full(size, _FREE, dtype=np.int64)
        self._entered = 0
        self._last = np.array((_FREE, 0, 0), dtype=np.int64)

    def add(self, times: Ints, starts: Ints, triples: Ints) -> None:
        """Add items in time order: their times, where the triples of each begin and end, and the triples."""
        entered = int(_enter_runs(times, starts, as_contiguous(triples), self._table, self._last))
        self._entered += max(0, entered)
        self.has_single_runs &= entered >= 0
