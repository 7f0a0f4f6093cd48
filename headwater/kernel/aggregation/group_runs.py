"""What groups show after each tick of a run.

A group that changes at a tick has one `GroupChange` there, at its last row: what the group shows then replaces what it
showed after its change before.

    + (a)  tick 0      + (a)  tick 1      + (b)  tick 1      − (a)  tick 1        COUNT(*)
    (a 1)                                 (b 1)              (a 1)                tick 1 changes b alone
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from headwater.kernel.columns.delta import Mask
from headwater.kernel.columns.delta_run import DeltaRun, Signs
from headwater.kernel.columns.ring_index import Ints
from headwater.terms.compiled_code import compiled


@compiled
def _find_last_changes(groups, ticks, seen, is_last):  # type: ignore[no-untyped-def]
    """Find out which rows are the last of their group at their tick (`is_last`); `seen` has -1 for each group."""
    for i in range(groups.shape[0] - 1, -1, -1):
        is_last[i] = seen[groups[i]] != ticks[i]
        seen[groups[i]] = ticks[i]


@compiled
def _find_previous(groups, last, previous, is_last):  # type: ignore[no-untyped-def]
    """Find for each change the one before of the same group (`previous`), -1 for the first.

    `last` has -1 for each group. `is_last` is true, and becomes false for changes that are not the last of their group.
    """
    for i in range(groups.shape[0]):
        previous[i] = last[groups[i]]
        if previous[i] >= 0:
            is_last[previous[i]] = False
        last[groups[i]] = i


@dataclass(frozen=True, slots=True)
class GroupChanges:
    """The changes of groups in a run: the group and tick of each, and which rows of the run end one (`is_end`)."""

    groups: Ints
    ticks: Ints
    is_end: Mask

    @classmethod
    def of_run(cls, groups: Ints, ticks: Ints, group_count: int) -> GroupChanges:
        """The changes that rows of some groups make."""
        is_end: npt.NDArray[np.bool_] = np.empty(groups.shape[0], np.bool_)
        _find_last_changes(groups, ticks, np.full(group_count, -1, np.int64), is_end)
        return cls(groups[is_end], ticks[is_end], is_end)

    def compare(self, rows: Ints, is_alive: Mask, shown: Ints, is_shown: Mask) -> DeltaRun:
        """The run of what groups show: `rows` after each change, where the group has rows then.

        `shown` is what each group showed before, and is brought up to date.
        """
        previous, is_last = np.empty(self.groups.shape[0], np.int64), np.ones(self.groups.shape[0], np.bool_)
        _find_previous(self.groups, np.full(is_shown.shape[0], -1, np.int64), previous, is_last)
        is_first = previous < 0
        before, was_alive = rows[previous], is_alive[previous]
        before[is_first], was_alive[is_first] = shown[self.groups[is_first]], is_shown[self.groups[is_first]]
        has_changed = (is_alive != was_alive) | (rows != before).any(axis=1)
        shown[self.groups[is_last]], is_shown[self.groups[is_last]] = rows[is_last], is_alive[is_last]
        # Each change removes a row, then adds one, as far as there is one.
        both = np.stack((before, rows), axis=1).reshape(-1, rows.shape[1])
        is_there = np.stack((has_changed & was_alive, has_changed & is_alive), axis=1).ravel()
        signs: Signs = np.tile(np.array([-1, 1], np.int8), rows.shape[0])
        return DeltaRun(both[is_there], np.repeat(self.ticks, 2)[is_there], signs[is_there])
