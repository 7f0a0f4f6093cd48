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
from headwater.kernel.columns.ring_index import Ints, as_contiguous
from headwater.terms.compiled_code import compiled


@compiled
def _find_last_changes(groups, ticks, seen, is_last):  # type: ignore[no-untyped-def]
    """Find out which rows are the last of their group at their tick (`is_last`); `seen` has -1 for each group."""
    for i in range(groups.shape[0] - 1, -1, -1):
        is_last[i] = seen[groups[i]] != ticks[i]
        seen[groups[i]] = ticks[i]


@compiled
def _compare_with_shown(groups, ticks, rows, is_alive, shown, is_shown, changed, changed_ticks, signs):  # type: ignore[no-untyped-def]
    """Write what changes of groups replace, one after the other, and bring up to date what each group shows.

    Gives how many rows were written to `changed`, with their ticks and signs.
    """
    n = 0
    for i in range(groups.shape[0]):
        group = groups[i]
        is_same = is_alive[i] == is_shown[group]
        for c in range(rows.shape[1]):
            is_same &= rows[i, c] == shown[group, c]
        if is_same:
            continue
        if is_shown[group]:
            for c in range(rows.shape[1]):
                changed[n, c] = shown[group, c]
            changed_ticks[n], signs[n] = ticks[i], -1
            n += 1
        if is_alive[i]:
            for c in range(rows.shape[1]):
                changed[n, c] = rows[i, c]
            changed_ticks[n], signs[n] = ticks[i], 1
            n += 1
        for c in range(rows.shape[1]):
            shown[group, c] = rows[i, c]
        is_shown[group] = is_alive[i]
    return n


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
        size = 2 * self.groups.shape[0]
        changed, ticks = np.empty((size, rows.shape[1]), np.int64), np.empty(size, np.int64)
        signs: Signs = np.empty(size, np.int8)
        n = _compare_with_shown(
            self.groups, self.ticks, as_contiguous(rows), is_alive, shown, is_shown, changed, ticks, signs
        )
        return DeltaRun(changed[:n], ticks[:n], signs[:n])
