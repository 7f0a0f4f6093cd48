"""The rows of a view, found from nothing: on columns, by the kernel's operators, or by definition.

A `Recipe` is all that this needs besides the data, so that the same view can be found over the data as it is and, in
the background, over a copy of it at the version that comes next (`preparing`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from headwater.algebra.nodes import Node
from headwater.algebra.plan import QueryPlan
from headwater.algebra.scope import visible
from headwater.datasets.mapped_files import Ints
from headwater.datasets.views.conjunctions import Conjunction
from headwater.datasets.views.kernel_views import rows_by_kernel
from headwater.datasets.views.pattern_matching import solutions
from headwater.datasets.views.static_tables import table_of
from headwater.datasets.views.stored_views import ViewRelation
from headwater.kernel.columns.delta import UNBOUND
from headwater.kernel.compiling.static_views import AskByDefinition, View
from headwater.terms.ids.inline_layout import is_inline
from headwater.terms.ids.term_ids import encode, term_text
from headwater.terms.model import Row

if TYPE_CHECKING:
    from headwater.datasets.linked_data import LinkedData

Texts = dict[int, bytes]
"""Terms that a view made and no data set has."""


@dataclass(frozen=True)
class Recipe:
    """How a part of a plan is found; `conjunction` is what it says if that is no more than patterns and conditions."""

    plan: QueryPlan
    part: Node
    conjunction: Conjunction | None
    ask: AskByDefinition

    def rows(self, data: LinkedData, texts: Texts) -> Ints:
        """The solutions of the part, on columns where that can be done."""
        if self.conjunction is not None:
            return solutions(self.conjunction, data)
        shown = visible(self.part)
        table = table_of(self.plan, self.part, data)
        if table is not None:
            return table.rows(tuple(variable.value for variable in shown))
        rows = rows_by_kernel(self.plan, self.part, data, texts)
        return _encoded(self.ask(data), len(shown), data.text_of, texts) if rows is None else rows


def view_of(rows: Ints) -> View:
    """Rows as a view that nobody follows yet."""
    sure = frozenset(place for place in range(rows.shape[1]) if not (rows[:, place] == UNBOUND).any())
    return View(ViewRelation(rows), sure)


def _encoded(rows: Iterable[Row], width: int, text_of: Callable[[int], bytes | None], texts: Texts) -> Ints:
    known: dict[object, int] = {None: UNBOUND}
    listed: list[list[int]] = []
    for row in rows:
        ids: list[int] = []
        for term in row:
            number = known.get(term)
            if number is None:
                assert term is not None
                number = known[term] = encode(term)
                if not is_inline(number) and text_of(number) is None:
                    texts[number] = term_text(term).encode()
            ids.append(number)
        listed.append(ids)
    return np.array(listed, dtype=np.int64).reshape(len(listed), width)
