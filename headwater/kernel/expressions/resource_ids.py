"""Which ids are IRIs or blank nodes. A hashed id does not say so; the vocabulary looks it up once for each id."""

from __future__ import annotations

import numpy as np

from headwater.kernel.columns.ring_index import Ints
from headwater.kernel.columns.vocabulary import Vocabulary
from headwater.kernel.expressions.comparison import insert_ids
from headwater.terms.ids.term_texts import TermKind

_CACHE_SIZE = 65_536
_SMALLEST_TABLE = 64


class ResourceIds:
    """A cache of the ids looked up so far: `members` is an open-addressing table of the resources for compiled code."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._clear()

    def _clear(self) -> None:
        self._looked_up: set[int] = set()
        self._resources = np.empty(0, dtype=np.int64)
        self.members: Ints = np.full(_SMALLEST_TABLE, -1, dtype=np.int64)

    def find_resources(self, *columns: Ints) -> bool:
        """Look up the ids that were never looked up; gives whether one of them is a resource."""
        new = {term_id for column in columns for term_id in column.tolist() if term_id >= 0} - self._looked_up
        if not new:
            return False
        if len(self._looked_up) + len(new) > _CACHE_SIZE:
            self._clear()
        self._looked_up |= new
        new_ids = np.fromiter(new, dtype=np.int64, count=len(new))
        kinds = self._vocabulary.kinds_of(new_ids)
        new_ids = new_ids[(kinds == TermKind.IRI) | (kinds == TermKind.BLANK)]
        if not new_ids.shape[0]:
            return False
        self._resources = np.concatenate([self._resources, new_ids])
        if 2 * self._resources.shape[0] > self.members.shape[0]:
            size = 1 << (4 * self._resources.shape[0] - 1).bit_length()
            self.members = np.full(size, -1, dtype=np.int64)
            new_ids = self._resources
        insert_ids(self.members, new_ids)
        return True
