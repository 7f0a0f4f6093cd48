"""Compatible mappings: those that agree on every variable that both of them bind.

A variable may be unbound in some rows, and then says nothing. Rows are therefore kept with a `pattern`, the set of
shared variables that they bind, as bits in a column of their own. Between a row of pattern a and the rows of pattern b
compatibility is equality on a ∩ b, so one ring index per a ∩ b, with b as part of the key, finds them all:

    { μ' ∈ R | μ' ~ μ }  =  Σ_b  { μ' ∈ R | pattern(μ') = b  and  μ' = μ on pattern(μ) ∩ b }

There are few patterns at a time; where everything is always bound there is one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from headwater.kernel.columns.delta import UNBOUND, Delta, no_rows
from headwater.kernel.columns.relation import NOTHING, Relation
from headwater.kernel.columns.ring_index import Ints, Links

Pairs = tuple[Ints, Ints]
"""Places in a batch, and the row that stands against each."""


class Side:
    """One input of a binary operator: its rows, to be found by the values of the shared variables at `shared`.

    With `disjoint=False` rows that share no bound variable do not meet, as MINUS wants it.
    """

    def __init__(self, width: int, shared: tuple[int, ...], *, disjoint: bool = True) -> None:
        self._shared = shared
        self._disjoint = disjoint
        self._relation = Relation(width + 1)
        self._nothing = no_rows(width + 1)
        self._patterns: Counter[int] = Counter()
        self._probe_keys: list[Links] = [np.arange(n + 1, dtype=np.int32) for n in range(len(shared) + 1)]

    def marked(self, rows: Ints) -> Ints:
        """Rows with their pattern in front."""
        if not rows.shape[0]:
            return self._nothing
        marked = np.empty((rows.shape[0], rows.shape[1] + 1), dtype=np.int64)
        marked[:, 1:] = rows
        pattern = np.zeros(rows.shape[0], dtype=np.int64)
        for bit, column in enumerate(self._shared):
            pattern |= (rows[:, column] != UNBOUND).astype(np.int64) << bit
        marked[:, 0] = pattern
        return marked

    def exchange(self, delta: Delta) -> Pairs:
        """Take what went; gives the numbers it had, and what is left to add of what came, with patterns in front."""
        added = self.marked(delta.added)
        if not delta.removed.shape[0]:
            return NOTHING, added
        numbers, added = self._relation.exchange(added, self.marked(delta.removed))
        self._count(self._relation.rows[numbers], -1)
        return numbers, added

    def add(self, marked: Ints) -> Ints:
        """Add rows with their patterns in front; gives their numbers."""
        if not marked.shape[0]:
            return NOTHING
        self._count(marked, 1)
        return self._relation.add(marked)

    def _count(self, marked: Ints, by: int) -> None:
        for pattern, places in _by_pattern(marked):
            self._patterns[pattern] += by * (marked if places is None else places).shape[0]
            if not self._patterns[pattern]:
                del self._patterns[pattern]

    def rows(self, numbers: Ints) -> Ints:
        """The values of rows, also of those just taken."""
        if not numbers.shape[0]:
            return self._nothing[:, 1:]
        values: Ints = self._relation.rows[numbers, 1:]
        return values

    def marked_rows(self, numbers: Ints) -> Ints:
        """The same, with their patterns in front."""
        if not numbers.shape[0]:
            return self._nothing
        values: Ints = self._relation.rows[numbers]
        return values

    def partners(self, marked: Ints, columns: tuple[int, ...]) -> Pairs:
        """All rows here that are compatible with rows from elsewhere, whose shared variables stand at `columns`."""
        if not marked.shape[0]:
            return NOTHING, NOTHING
        which: list[Ints] = []
        found: list[Ints] = []
        for pattern, places in _by_pattern(marked):
            probes = marked if places is None else marked[places]
            for other in self._patterns:
                common = pattern & other
                if not common and not self._disjoint:
                    continue
                bits = [bit for bit in range(len(self._shared)) if common >> bit & 1]
                keys = np.empty((probes.shape[0], len(bits) + 1), dtype=np.int64)
                keys[:, 0] = other
                for place, bit in enumerate(bits, 1):
                    keys[:, place] = probes[:, columns[bit] + 1]
                index = self._relation.index((0, *(self._shared[bit] + 1 for bit in bits)))
                heads, counts, total = index.probe(self._relation.rows, keys, self._probe_keys[len(bits)])
                if total:
                    some, numbers = index.expand(heads, counts, total)
                    which.append(some if places is None else places[some])
                    found.append(numbers)
        if not found:
            return NOTHING, NOTHING
        return (which[0], found[0]) if len(found) == 1 else (np.concatenate(which), np.concatenate(found))

    @property
    def capacity(self) -> int:
        """Row numbers are below this."""
        return len(self._relation.rows)

    def ids(self) -> Ints:
        """The values of all rows there are."""
        return self._relation.ids()[:, 1:]

    @property
    def nbytes(self) -> int:
        return self._relation.nbytes


def _by_pattern(marked: Ints) -> Iterator[tuple[int, Ints | None]]:
    """The patterns of a batch and the places of each; None for all places."""
    if not marked.shape[0]:
        return
    patterns = marked[:, 0]
    first = int(patterns[0])
    if marked.shape[0] == 1 or bool((patterns == first).all()):
        yield first, None
        return
    for pattern in np.unique(patterns).tolist():
        yield pattern, np.flatnonzero(patterns == pattern)


class Layout:
    """The columns of two inputs joined: those of the left, then those that only the right has."""

    def __init__(self, left: tuple[str, ...], right: tuple[str, ...], shared: tuple[str, ...] | None = None) -> None:
        both = tuple(variable for variable in left if variable in right) if shared is None else shared
        self.left_shared = tuple(left.index(variable) for variable in both)
        self.right_shared = tuple(right.index(variable) for variable in both)
        self.right_only = [column for column, variable in enumerate(right) if variable not in left]
        self.variables = (*left, *(right[column] for column in self.right_only))
        self._left_width = len(left)
        self._nothing = no_rows(len(self.variables))

    def joined(self, left: Ints, right: Ints) -> Ints:
        """Pairs of compatible rows as one row each: what the left leaves unbound comes from the right."""
        if not left.shape[0]:
            return self._nothing
        rows = np.empty((left.shape[0], len(self.variables)), dtype=np.int64)
        rows[:, : self._left_width] = left
        rows[:, self._left_width :] = right[:, self.right_only]
        for here, there in zip(self.left_shared, self.right_shared, strict=True):
            column = rows[:, here]
            np.copyto(column, right[:, there], where=column == UNBOUND)
        return rows

    def padded(self, left: Ints) -> Ints:
        """Left rows alone: what only the right has is unbound."""
        if not left.shape[0]:
            return self._nothing
        rows = np.full((left.shape[0], len(self.variables)), UNBOUND, dtype=np.int64)
        rows[:, : self._left_width] = left
        return rows
