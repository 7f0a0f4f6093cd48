"""A delta: the rows that were added and removed between two ticks (the paper's new and negative mappings).

A row holds one id for each variable of its operator; `UNBOUND` where the variable has no value. Rows form a bag: three
equal rows are three solutions. A delta need not be minimal: a row that is both added and removed cancels out later.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from headwater.kernel.columns.ring_index import Ints
from headwater.terms.ids.inline_layout import NO_TERM

UNBOUND = NO_TERM

Mask = npt.NDArray[np.bool_]
Condition = Callable[[Ints], Mask]
"""Tests rows: a mask of those that satisfy the condition. An error counts as false."""


def no_rows(width: int) -> Ints:
    return np.zeros((0, width), dtype=np.int64)


class Delta:
    """Rows that were added and rows that were removed.

    With `is_reset`, all rows that there were are removed: an operator may drop its state and start with the added rows,
    without reading the removed ones. `removed` still gives them; it may compute them on first use.
    """

    __slots__ = ("_compute_removed", "_removed", "added", "is_reset")

    def __init__(self, added: Ints, removed: Ints | Callable[[], Ints], *, is_reset: bool = False) -> None:
        self.added = added
        self.is_reset = is_reset
        self._compute_removed = None if isinstance(removed, np.ndarray) else removed
        self._removed = removed if isinstance(removed, np.ndarray) else None

    @classmethod
    def empty(cls, width: int) -> Delta:
        return cls(no_rows(width), no_rows(width))

    @property
    def removed(self) -> Ints:
        if self._removed is None:
            assert self._compute_removed is not None
            self._removed = self._compute_removed()
        return self._removed

    @property
    def is_computed_later(self) -> bool:
        """Whether the removed rows are computed on first use, and were not yet."""
        return self._removed is None

    @property
    def is_empty(self) -> bool:
        """Whether nothing changed; a reset counts as a change, because its removed rows may not be computed yet."""
        return not self.is_reset and not self.added.shape[0] and not self.removed.shape[0]

    def map_rows(self, function: Callable[[Ints], Ints]) -> Delta:
        """Apply a function to the added and to the removed rows."""
        if self.is_reset:
            return Delta(function(self.added), lambda: function(self.removed), is_reset=True)
        return Delta(function(self.added), function(self.removed))


def stack_rows(tables: list[Ints], width: int) -> Ints:
    """Concatenate tables of rows."""
    nonempty = [table for table in tables if table.shape[0]]
    if not nonempty:
        return no_rows(width)
    return nonempty[0] if len(nonempty) == 1 else np.concatenate(nonempty)
