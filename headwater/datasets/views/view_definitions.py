"""Definitions of views, and how their rows are found: on columns, by the kernel's operators, or by definition.

A `ViewDefinition` has all that is needed besides the data. So the same view can be found over the data at its version
and, in the background, over a second reader at the next version (`preparation`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from headwater.algebra.nodes import Node
from headwater.algebra.plan import QueryPlan
from headwater.algebra.scope import visible_variables
from headwater.datasets.mapped_files import Ints
from headwater.datasets.views.conjunctions import Conjunction
from headwater.datasets.views.kernel_views import evaluate_by_kernel
from headwater.datasets.views.pattern_matching import evaluate_conjunction
from headwater.datasets.views.static_tables import evaluate_on_columns
from headwater.datasets.views.stored_views import ViewRelation
from headwater.kernel.columns.delta import UNBOUND
from headwater.kernel.compiling.static_views import EvaluateByReference, View
from headwater.terms.ids.inline_layout import is_inline
from headwater.terms.ids.term_ids import encode, term_text
from headwater.terms.model import Row

if TYPE_CHECKING:
    from headwater.datasets.linked_data import LinkedData

Texts = dict[int, bytes]
"""The texts, by id, of terms that a view made and no data set has."""


@dataclass(frozen=True)
class ViewDefinition:
    """The static part of a plan that a view holds; `conjunction` is the same part if it is one."""

    plan: QueryPlan
    part: Node
    conjunction: Conjunction | None
    ask: EvaluateByReference

    def find_rows(self, data: LinkedData, texts: Texts) -> Ints:
        """The solutions of the part, evaluated on columns where possible. `texts` receives those of new terms."""
        if self.conjunction is not None:
            return evaluate_conjunction(self.conjunction, data)
        shown = visible_variables(self.part)
        table = evaluate_on_columns(self.plan, self.part, data)
        if table is not None:
            return table.rows(tuple(variable.value for variable in shown))
        rows = evaluate_by_kernel(self.plan, self.part, data, texts)
        return _encode_rows(self.ask(data), len(shown), data.text_of, texts) if rows is None else rows


def make_view(rows: Ints) -> View:
    """Make a view of rows, without followers."""
    always_bound = frozenset(index for index in range(rows.shape[1]) if not (rows[:, index] == UNBOUND).any())
    return View(ViewRelation(rows), always_bound)


def _encode_rows(rows: Iterable[Row], width: int, text_of: Callable[[int], bytes | None], texts: Texts) -> Ints:
    """Rows of terms as rows of ids; `texts` receives those that the data does not have."""
    known: dict[object, int] = {None: UNBOUND}
    encoded: list[list[int]] = []
    for row in rows:
        ids: list[int] = []
        for term in row:
            term_id = known.get(term)
            if term_id is None:
                assert term is not None
                term_id = known[term] = encode(term)
                if not is_inline(term_id) and text_of(term_id) is None:
                    texts[term_id] = term_text(term).encode()
            ids.append(term_id)
        encoded.append(ids)
    return np.array(encoded, dtype=np.int64).reshape(len(encoded), width)
