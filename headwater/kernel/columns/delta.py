"""What changed between two ticks: the mappings that came and those that went (the paper's new and negative mappings).

A mapping is a row of ids, one per variable of the operator that gives it; `UNBOUND` stands where a variable has no
value. Rows are a bag: three equal rows are three mappings. A difference never needs to be minimal: a row that both
came and went cancels out downstream.
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
"""Which of the rows satisfy a condition; an error counts as not."""


def no_rows(width: int) -> Ints:
    return np.zeros((0, width), dtype=np.int64)


class Delta:
    """Rows that came and rows that went.

    With `is_fresh`, all that there was before went: whoever holds state may begin anew with what came, and need not
    look at the rows that went. They are there all the same, and found when they are asked for.
    """

    __slots__ = ("_make", "_removed", "added", "is_fresh")

    def __init__(self, added: Ints, removed: Ints | Callable[[], Ints], *, is_fresh: bool = False) -> None:
        self.added = added
        self.is_fresh = is_fresh
        self._make = None if isinstance(removed, np.ndarray) else removed
        self._removed = removed if isinstance(removed, np.ndarray) else None

    @classmethod
    def nothing(cls, width: int) -> Delta:
        return cls(no_rows(width), no_rows(width))

    @property
    def removed(self) -> Ints:
        if self._removed is None:
            assert self._make is not None
            self._removed = self._make()
        return self._removed

    @property
    def is_empty(self) -> bool:
        """Whether nothing came and, as far as is known without a look, nothing went."""
        return not self.is_fresh and not self.added.shape[0] and not self.removed.shape[0]

    def mapped(self, function: Callable[[Ints], Ints]) -> Delta:
        """What came and what went, each put through a function of rows."""
        if self.is_fresh:
            return Delta(function(self.added), lambda: function(self.removed), is_fresh=True)
        return Delta(function(self.added), function(self.removed))


def stacked(parts: list[Ints], width: int) -> Ints:
    """Rows one below the other."""
    full = [part for part in parts if part.shape[0]]
    if not full:
        return no_rows(width)
    return full[0] if len(full) == 1 else np.concatenate(full)
