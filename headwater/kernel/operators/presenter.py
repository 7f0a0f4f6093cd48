"""ORDER BY, LIMIT and OFFSET: a bag becomes a sequence, and a part of it the answer or the rows of a sub-query.

The order is the one that `reference.ordering` settles: the keys of ORDER BY, then all variables that are shown.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from headwater.algebra.presentation import Presentation
from headwater.kernel.columns.ordered_rows import rows_in_order
from headwater.kernel.columns.ring_index import Ints
from headwater.kernel.columns.vocabulary import Vocabulary
from headwater.terms.model import Literal, Row
from headwater.values.term_order import OrderKey, order_key

Evaluate = Callable[[Ints], Ints]


class Presenter:
    """Turns the rows below a presentation into the answer's rows."""

    def __init__(
        self, presentation: Presentation, keys: Sequence[Evaluate], columns: list[int], vocabulary: Vocabulary
    ) -> None:
        self._presentation = presentation
        self._keys = keys
        self._columns = columns
        self._vocabulary = vocabulary
        self._known: dict[int, OrderKey] = {}

    def rows(self, below: Ints) -> list[Row]:
        """The rows that are shown, as terms, in the order of the query, or in that of their texts if it has none."""
        chosen = self.chosen(below)
        return self._vocabulary.terms_of(chosen) if self._keys else rows_in_order(chosen.tolist(), self._vocabulary)

    def chosen(self, below: Ints) -> Ints:
        """The rows that are shown, in order."""
        given = self._presentation
        shown = below[:, self._columns]
        order = list(range(below.shape[0]))
        for place in reversed(range(shown.shape[1])):
            texts = list(map(self._text_key, shown[:, place].tolist()))
            order.sort(key=texts.__getitem__)
        for key, (_, descending) in reversed(list(zip(self._keys, given.keys, strict=True))):
            values = list(map(self._key, key(below).tolist()))
            order.sort(key=values.__getitem__, reverse=descending)
        if given.distinct:
            first: dict[tuple[int, ...], int] = {}
            for number in order:
                first.setdefault(tuple(shown[number].tolist()), number)
            order = list(first.values())
        end = None if given.limit is None else given.offset + given.limit
        kept: Ints = shown[np.array(order[given.offset : end], dtype=np.int64)]
        return kept

    def _text_key(self, number: int) -> OrderKey:
        """The order of values, and of texts where values are equal."""
        term = self._vocabulary.term_of(number)
        if not isinstance(term, Literal):
            return self._key(number)
        return (*self._key(number), term.value, term.datatype.value)

    def _key(self, number: int) -> OrderKey:
        known = self._known.get(number)
        if known is None:
            if len(self._known) > 65_536:
                self._known.clear()
            term = self._vocabulary.term_of(number)
            known = self._known[number] = (-1,) if term is None else order_key(term)
        return known
