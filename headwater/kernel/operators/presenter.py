"""ORDER BY, LIMIT and OFFSET: a bag becomes a sequence, and a slice of it the answer or the rows of a sub-query.

    ORDER BY ?n LIMIT 2 OFFSET 1      {4, 2, 1, 3}   →   [2, 3]

The order is total: the keys of ORDER BY, then all variables that are shown, by value and then by text.
State: none but a cache of order keys.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from headwater.algebra.presentation import Presentation
from headwater.kernel.columns.ring_index import Ints
from headwater.kernel.columns.vocabulary import Vocabulary
from headwater.kernel.operators.extend import ColumnFunction
from headwater.terms.model import Literal, Row
from headwater.values.ordered_rows import sort_rows
from headwater.values.term_order import OrderKey, order_key


class Presenter:
    """Orders and slices rows, as terms or as ids. `keys` compute the sort keys, `columns` are those that are shown."""

    def __init__(
        self, presentation: Presentation, keys: Sequence[ColumnFunction], columns: list[int], vocabulary: Vocabulary
    ) -> None:
        self._presentation = presentation
        self._keys = keys
        self._columns = columns
        self._vocabulary = vocabulary
        self._order_keys: dict[int, OrderKey] = {}

    def present(self, below: Ints) -> list[Row]:
        """The rows that are shown, as terms: in the order of the query, or of their texts if it has none."""
        rows = self.order_and_slice(below)
        return (
            self._vocabulary.terms_of_rows(rows)
            if self._keys
            else sort_rows(rows.tolist(), self._vocabulary.sort_texts)
        )

    def order_and_slice(self, below: Ints) -> Ints:
        """The rows that are shown, as ids, in order."""
        presentation = self._presentation
        shown = below[:, self._columns]
        order = list(range(below.shape[0]))
        for place in reversed(range(shown.shape[1])):
            texts = list(map(self._text_key, shown[:, place].tolist()))
            order.sort(key=texts.__getitem__)
        for key, (_, descending) in reversed(list(zip(self._keys, presentation.keys, strict=True))):
            values = list(map(self._key, key(below).tolist()))
            order.sort(key=values.__getitem__, reverse=descending)
        if presentation.is_distinct:
            first: dict[tuple[int, ...], int] = {}
            for place in order:
                first.setdefault(tuple(shown[place].tolist()), place)
            order = list(first.values())
        end = None if presentation.limit is None else presentation.offset + presentation.limit
        sliced: Ints = shown[np.array(order[presentation.offset : end], dtype=np.int64)]
        return sliced

    def _text_key(self, term_id: int) -> OrderKey:
        """A sort key by value, and by text where values are equal."""
        term = self._vocabulary.term_of(term_id)
        if not isinstance(term, Literal):
            return self._key(term_id)
        return (*self._key(term_id), term.value, term.datatype.value)

    def _key(self, term_id: int) -> OrderKey:
        key = self._order_keys.get(term_id)
        if key is None:
            if len(self._order_keys) > 65_536:
                self._order_keys.clear()
            term = self._vocabulary.term_of(term_id)
            key = self._order_keys[term_id] = (-1,) if term is None else order_key(term)
        return key
