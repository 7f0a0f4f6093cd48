"""What changed between two ticks: the mappings that came and those that went (the paper's new and negative mappings).

A mapping is a row of ids, one per variable of the operator that gives it; `UNBOUND` stands where a variable has no
value. Rows are a bag: three equal rows are three mappings. A difference never needs to be minimal: a row that both
came and went cancels out downstream.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headwater.kernel.index import Ints
from headwater.terms.inline_layout import NO_TERM

UNBOUND = NO_TERM


def no_rows(width: int) -> Ints:
    return np.zeros((0, width), dtype=np.int64)


@dataclass(slots=True)
class Delta:
    """Rows that came and rows that went."""

    added: Ints
    removed: Ints

    @classmethod
    def nothing(cls, width: int) -> Delta:
        return cls(no_rows(width), no_rows(width))

    @property
    def is_empty(self) -> bool:
        return not self.added.shape[0] and not self.removed.shape[0]


def stacked(parts: list[Ints], width: int) -> Ints:
    """Rows one below the other."""
    full = [part for part in parts if part.shape[0]]
    if not full:
        return no_rows(width)
    return full[0] if len(full) == 1 else np.concatenate(full)
