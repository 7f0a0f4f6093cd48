"""Compatible mappings: rows that agree on every variable that both of them bind (SPARQL 1.1, section 18.3).

A variable may be unbound in some rows, and then agrees with any value. Rows are therefore kept with a `mask` in front:
the set of shared variables that they bind, as bits. A row with mask a is compatible with those rows of mask b that are
equal to it on a ∩ b. One ring index for each a ∩ b, with b as part of the key, finds them all:

    { μ' ∈ R | μ' ~ μ }  =  Σ_b  { μ' ∈ R | mask(μ') = b  and  μ' = μ on mask(μ) ∩ b }

There are few masks at a time, and only one where every variable is always bound.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from headwater.kernel.columns.delta import UNBOUND, Delta, no_rows
from headwater.kernel.columns.relation import NO_ROW_IDS, Key, Relation
from headwater.kernel.columns.ring_index import Ints, Links

Pairs = tuple[Ints, Ints]
"""Places in a batch, and for each the id of a partner."""


@dataclass(frozen=True, slots=True)
class MaskProbe:
    """Finds the rows with a mask by an index, whose key is the mask and the values of `columns` of the probing row."""

    mask: int
    index_key: Key
    columns: tuple[int, ...]


class JoinSide:
    """One input of a binary operator: its rows, indexed by the shared variables, which stand in the columns `shared`.

    With `has_disjoint_partners=False`, rows that share no bound variable are no partners, as MINUS requires.
    """

    def __init__(self, width: int, shared: tuple[int, ...], *, has_disjoint_partners: bool = True) -> None:
        self._shared = shared
        self._has_disjoint_partners = has_disjoint_partners
        self.relation = Relation(width + 1)
        self._nothing = no_rows(width + 1)
        self._masks: Counter[int] = Counter()
        self._probe_keys: list[Links] = [np.arange(n + 1, dtype=np.int32) for n in range(len(shared) + 1)]

    def add_masks(self, rows: Ints) -> Ints:
        """Put the mask of each row in front of it."""
        if not rows.shape[0]:
            return self._nothing
        masked = np.empty((rows.shape[0], rows.shape[1] + 1), dtype=np.int64)
        masked[:, 1:] = rows
        mask = np.zeros(rows.shape[0], dtype=np.int64)
        for bit, column in enumerate(self._shared):
            mask |= (rows[:, column] != UNBOUND).astype(np.int64) << bit
        masked[:, 0] = mask
        return masked

    def cancel_and_take(self, delta: Delta) -> Pairs:
        """Remove what a delta removes; gives the ids of these rows, and the rows still to add, with masks in front.

        A removed row that was never here cancels one of the added rows.
        """
        added = self.add_masks(delta.added)
        if not delta.removed.shape[0]:
            return NO_ROW_IDS, added
        row_ids, added = self.relation.cancel_and_take(added, self.add_masks(delta.removed))
        self.count_masks(self.relation.rows[row_ids], -1)
        return row_ids, added

    def add(self, masked: Ints) -> Ints:
        """Add rows with masks in front; gives their row ids."""
        if not masked.shape[0]:
            return NO_ROW_IDS
        self.count_masks(masked, 1)
        return self.relation.add(masked)

    def count_masks(self, masked: Ints, by: int) -> None:
        """Count the masks of rows that come (by 1) or go (by -1)."""
        for mask, places in _group_by_mask(masked):
            self._masks[mask] += by * (masked if places is None else places).shape[0]
            if not self._masks[mask]:
                del self._masks[mask]

    def rows(self, row_ids: Ints) -> Ints:
        """The values of rows, also of rows just removed."""
        if not row_ids.shape[0]:
            return self._nothing[:, 1:]
        values: Ints = self.relation.rows[row_ids, 1:]
        return values

    def masked_rows(self, row_ids: Ints) -> Ints:
        """The same with masks in front."""
        if not row_ids.shape[0]:
            return self._nothing
        values: Ints = self.relation.rows[row_ids]
        return values

    def find_partners(self, masked: Ints, columns: tuple[int, ...]) -> Pairs:
        """Find all rows that are compatible with rows of the other input, whose shared variables stand at `columns`."""
        if not masked.shape[0]:
            return NO_ROW_IDS, NO_ROW_IDS
        probe_places: list[Ints] = []
        partners: list[Ints] = []
        for mask, places in _group_by_mask(masked):
            rows = masked if places is None else masked[places]
            for probe in self.list_probes(mask, columns):
                some, row_ids = self._find_rows(probe, rows)
                if row_ids.shape[0]:
                    probe_places.append(some if places is None else places[some])
                    partners.append(row_ids)
        if not partners:
            return NO_ROW_IDS, NO_ROW_IDS
        if len(partners) == 1:
            return probe_places[0], partners[0]
        return np.concatenate(probe_places), np.concatenate(partners)

    def list_probes(self, mask: int, columns: tuple[int, ...]) -> list[MaskProbe]:
        """The probes that find the rows which are compatible with a row of the other input that has a mask."""
        probes = []
        for other in self._masks:
            common = mask & other
            if common or self._has_disjoint_partners:
                bits = [bit for bit in range(len(self._shared)) if common >> bit & 1]
                index_key = (0, *(self._shared[bit] + 1 for bit in bits))
                probes.append(MaskProbe(other, index_key, tuple(columns[bit] + 1 for bit in bits)))
                self.relation.index(index_key)
        return probes

    def _find_rows(self, probe: MaskProbe, rows: Ints) -> Pairs:
        """Find the partners of rows of the other input by one probe."""
        keys = np.empty((rows.shape[0], len(probe.index_key)), dtype=np.int64)
        keys[:, 0] = probe.mask
        keys[:, 1:] = rows[:, probe.columns]
        index = self.relation.index(probe.index_key)
        heads, counts, total = index.probe(self.relation.rows, keys, self._probe_keys[len(probe.columns)])
        return index.expand(heads, counts, total) if total else (NO_ROW_IDS, NO_ROW_IDS)

    @property
    def capacity(self) -> int:
        """Row ids are below this."""
        return len(self.relation.rows)

    def ids(self) -> Ints:
        """The values of all rows."""
        return self.relation.ids()[:, 1:]

    @property
    def nbytes(self) -> int:
        return self.relation.nbytes


def _group_by_mask(masked: Ints) -> Iterator[tuple[int, Ints | None]]:
    """The masks of a batch, each with its places; None for all places."""
    if not masked.shape[0]:
        return
    masks = masked[:, 0]
    first = int(masks[0])
    if masked.shape[0] == 1 or bool((masks == first).all()):
        yield first, None
        return
    for mask in np.unique(masks).tolist():
        yield mask, np.flatnonzero(masks == mask)


class MappingLayout:
    """The columns of the join of two inputs: those of the left, then those that only the right has."""

    def __init__(self, left: tuple[str, ...], right: tuple[str, ...], shared: tuple[str, ...] | None = None) -> None:
        both = tuple(variable for variable in left if variable in right) if shared is None else shared
        self.left_shared = tuple(left.index(variable) for variable in both)
        self.right_shared = tuple(right.index(variable) for variable in both)
        self.right_only = [column for column, variable in enumerate(right) if variable not in left]
        self.variables = (*left, *(right[column] for column in self.right_only))
        self._left_width = len(left)
        self._nothing = no_rows(len(self.variables))

    def join_pairs(self, left: Ints, right: Ints) -> Ints:
        """Join pairs of compatible rows: where the left row is unbound, the value comes from the right."""
        if not left.shape[0]:
            return self._nothing
        rows = np.empty((left.shape[0], len(self.variables)), dtype=np.int64)
        rows[:, : self._left_width] = left
        rows[:, self._left_width :] = right[:, self.right_only]
        for here, there in zip(self.left_shared, self.right_shared, strict=True):
            column = rows[:, here]
            np.copyto(column, right[:, there], where=column == UNBOUND)
        return rows

    def pad_left(self, left: Ints) -> Ints:
        """Left rows without a partner: the columns that only the right has are unbound."""
        if not left.shape[0]:
            return self._nothing
        rows = np.full((left.shape[0], len(self.variables)), UNBOUND, dtype=np.int64)
        rows[:, : self._left_width] = left
        return rows
