"""Which ids are IRIs or blank nodes. An id does not say so; the vocabulary is asked once per id."""

from __future__ import annotations

import numpy as np

from headwater.kernel.columns.ring_index import Ints
from headwater.kernel.columns.vocabulary import Vocabulary
from headwater.kernel.expressions.comparison import insert_ids
from headwater.terms.ids.term_texts import Kind

_REMEMBERED = 65_536
_SMALLEST = 64


class ResourceIds:
    """Remembers what was asked: `members` is an open-addressing table of resources for compiled code."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._forget()

    def _forget(self) -> None:
        self._asked: set[int] = set()
        self._found = np.empty(0, dtype=np.int64)
        self.members: Ints = np.full(_SMALLEST, -1, dtype=np.int64)

    def learn(self, *columns: Ints) -> bool:
        """Ask about ids that were never asked about; whether one of them is a resource."""
        new = {number for column in columns for number in column.tolist() if number >= 0} - self._asked
        if not new:
            return False
        if len(self._asked) + len(new) > _REMEMBERED:
            self._forget()
        self._asked |= new
        fresh = np.fromiter(new, dtype=np.int64, count=len(new))
        kinds = self._vocabulary.kinds_of(fresh)
        fresh = fresh[(kinds == Kind.IRI) | (kinds == Kind.BLANK)]
        if not fresh.shape[0]:
            return False
        self._found = np.concatenate([self._found, fresh])
        if 2 * self._found.shape[0] > self.members.shape[0]:
            size = 1 << (4 * self._found.shape[0] - 1).bit_length()
            self.members = np.full(size, -1, dtype=np.int64)
            fresh = self._found
        insert_ids(self.members, fresh)
        return True
