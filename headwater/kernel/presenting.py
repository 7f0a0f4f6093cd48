"""ORDER BY, LIMIT and OFFSET at the top of a query: what the result looks like at a tick.

The operators below keep the result as a bag; here it becomes a sequence, in the order that `reference.ordering`
settles: the keys of ORDER BY, then all variables of the answer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from headwater.algebra.nodes import Distinct, Node, OrderBy, Project, Reduced, Slice
from headwater.kernel.index import Ints
from headwater.kernel.vocabulary import Vocabulary
from headwater.language.expressions import Expression
from headwater.reference.value_order import OrderKey, order_key
from headwater.terms.model import Row, Variable

Evaluate = Callable[[Ints], Ints]


@dataclass(frozen=True)
class Presentation:
    """The top of a plan: keys with whether they descend, the answer's variables, and what is cut off."""

    keys: tuple[tuple[Expression, bool], ...]
    variables: tuple[Variable, ...]
    distinct: bool
    offset: int
    limit: int | None

    @classmethod
    def of(cls, plan: Node) -> tuple[Presentation | None, Node]:
        """The presentation that a plan asks for, if any, and the plan below it."""
        top: Node = plan
        offset, limit, distinct = 0, None, False
        if isinstance(top, Slice):
            offset, limit, top = top.offset, top.limit, top.inner
        if isinstance(top, Distinct | Reduced):
            distinct, top = True, top.inner
        if not isinstance(top, Project) or not (isinstance(plan, Slice) or isinstance(top.inner, OrderBy)):
            return None, plan
        keys = top.inner.keys if isinstance(top.inner, OrderBy) else ()
        below = top.inner.inner if isinstance(top.inner, OrderBy) else top.inner
        return cls(keys, top.variables, distinct, offset, limit), below


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
        """The answer, in order."""
        given = self._presentation
        sortable = [(key(below).tolist(), down) for key, (_, down) in zip(self._keys, given.keys, strict=True)]
        shown = below[:, self._columns]
        sortable += [(shown[:, place].tolist(), False) for place in range(shown.shape[1])]
        order = list(range(below.shape[0]))
        for ids, descending in reversed(sortable):
            order.sort(key=lambda number, ids=ids: self._key(ids[number]), reverse=descending)  # type: ignore[misc]
        rows = self._vocabulary.terms_of(shown[np.array(order, dtype=np.int64)])
        if given.distinct:
            rows = list(dict.fromkeys(rows))
        end = None if given.limit is None else given.offset + given.limit
        return rows[given.offset : end]

    def _key(self, number: int) -> OrderKey:
        known = self._known.get(number)
        if known is None:
            if len(self._known) > 65_536:
                self._known.clear()
            term = self._vocabulary.term_of(number)
            known = self._known[number] = (-1,) if term is None else order_key(term)
        return known
