"""Whether a join keeps ordered indexes for its comparisons, by what was measured (OA13, CQ7).

Without them, each change is paired with all rows that agree on the shared variables, and the condition is tested for
each pair. With them, each change costs an insertion or a removal and a probe in trees, and only pairs within the bounds
are tested. The choice compares the two costs for what happened since it was made last:

    without   pairs tested
    with      changes · height of a tree  +  pairs within the bounds

Where ordered indexes are kept, the pairs that there would be without them are not seen. They are estimated: a change
met a share of the rows of other inputs before, and meets the same share now. A join of two inputs without shared
variables pairs a change with all of them, so it begins with ordered indexes. If these turn out not to pay, each further
attempt is made after twice the time.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log2

_PAIR_NANOSECONDS = 40.0
"""To make a pair, to fetch its values and to test the condition."""
_FOUND_NANOSECONDS = 20.0
"""To find a row in a tree, in addition."""
_LEVEL_NANOSECONDS = 40.0
"""For each doubling of a tree: to compute order keys, to insert or remove a row, and to probe with it."""
_PAIRS_TO_REVIEW = 4096
_CHANGES_TO_REVIEW = 4096
_LONGEST_PAUSE = 64
_ADVANTAGE = 1.3
"""The other way must be better by this factor."""


@dataclass
class RangeChoice:
    """Counts what a join did, and decides. `share` is the share of other inputs' rows that a change is paired with if
    there is no order; infinite where several inputs would be multiplied: then the order always stays."""

    is_ordered: bool
    share: float = 1.0
    changes: int = 0
    others: int = 0
    pairs: int = 0
    kept: int = 0
    switches: int = 0
    _pause: int = 0
    _reviews_to_wait: int = 0

    def record(self, changes: int, others: int, pairs: int, kept: int) -> None:
        """Count changes of rows, for each the rows of the other inputs, pairs tested, and those that satisfied."""
        self.changes += changes
        self.others += others
        self.pairs += pairs
        self.kept += kept

    @property
    def is_due(self) -> bool:
        """Whether enough has happened to choose again."""
        return self.pairs >= _PAIRS_TO_REVIEW or self.changes >= _CHANGES_TO_REVIEW

    def should_switch(self, rows: int) -> bool:
        """Whether the join should go over to the other way, with so many rows in all inputs. Begins to count anew."""
        changes, others, pairs, kept = self.changes, self.others, self.pairs, self.kept
        self.changes = self.others = self.pairs = self.kept = 0
        if not self.is_ordered:
            if others:
                self.share = pairs / others
            if self._reviews_to_wait:
                self._reviews_to_wait -= 1
                return False
            return _unordered_cost(pairs) > _ADVANTAGE * _ordered_cost(changes, kept, rows)
        if _ordered_cost(changes, pairs, rows) > _ADVANTAGE * _unordered_cost(self.share * max(1, others)):
            self._pause = min(_LONGEST_PAUSE, 2 * self._pause + 1)
            self._reviews_to_wait = self._pause
            return True
        return False

    def switch(self) -> None:
        """Take note that the join went over to the other way."""
        self.is_ordered = not self.is_ordered
        self.switches += 1


def _unordered_cost(pairs: float) -> float:
    return pairs * _PAIR_NANOSECONDS


def _ordered_cost(changes: int, pairs: int, rows: int) -> float:
    return changes * _LEVEL_NANOSECONDS * log2(rows + 2) + pairs * (_PAIR_NANOSECONDS + _FOUND_NANOSECONDS)
