"""Static parts on columns: conjunctions, and OPTIONAL, MINUS, UNION, FILTER and projections over them.

    L OPTIONAL R     R's patterns look up what each row of L has bound; a row without a match stays as it is
    L MINUS R        the same, and the rows of L without a match stay

Both need that what the sides share is bound in every row of L; otherwise, and for all other operators, `table_of` says
that it cannot, and the kernel evaluates the part (`kernel_views`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from headwater.algebra.nodes import Filter, Graph, Join, LeftJoin, Minus, Node, Project, Union
from headwater.algebra.plan import QueryPlan
from headwater.algebra.scope import mentioned, visible
from headwater.datasets.mapped_files import Ints
from headwater.datasets.views.conjunctions import Conjunction
from headwater.datasets.views.pattern_matching import extended
from headwater.kernel.columns.delta import UNBOUND
from headwater.kernel.columns.vocabulary import Vocabulary
from headwater.kernel.expressions.compiled_expressions import CompiledExpression, can_evaluate
from headwater.language.expressions import Expression
from headwater.terms.model import NamedNode

if TYPE_CHECKING:
    from headwater.datasets.linked_data import LinkedData

_ROW = "#"
"""No variable is called so: the number of the row that a match goes on from."""


@dataclass(frozen=True)
class Table:
    """Solutions as columns; `sure` are the variables that are bound in all of them."""

    columns: dict[str, Ints]
    size: int
    sure: frozenset[str]

    def picked(self, rows: npt.NDArray[np.bool_]) -> Table:
        """Some of the rows."""
        return Table({name: column[rows] for name, column in self.columns.items()}, int(rows.sum()), self.sure)

    def rows(self, names: tuple[str, ...]) -> Ints:
        """The values of some variables, a row for each solution."""
        found = np.full((self.size, len(names)), UNBOUND, dtype=np.int64)
        for place, name in enumerate(names):
            if name in self.columns:
                found[:, place] = self.columns[name]
        return found


def table_of(plan: QueryPlan, part: Node, data: LinkedData) -> Table | None:
    """The solutions of a part in the default graph; None where columns are not enough."""
    return _Tables(plan, data).of(part, None)


class _Tables:
    def __init__(self, plan: QueryPlan, data: LinkedData) -> None:
        self._plan = plan
        self._data = data
        self._vocabulary = Vocabulary(data.text_of, data.kinds_of)

    def of(self, node: Node, graph: NamedNode | None) -> Table | None:
        conjunction = self._conjunction(node, graph)
        if conjunction is not None:
            columns, size = extended({}, 1, conjunction, self._data)
            return Table(columns, size, frozenset(columns))
        match node:
            case Graph(NamedNode() as name, inner):
                return self.of(inner, name)
            case LeftJoin(left, right, condition):
                return self._optional(left, right, condition, graph)
            case Minus(left, right):
                return self._minus(left, right, graph)
            case Join(left, right):
                return self._join(left, right, graph) or self._join(right, left, graph)
            case Union(left, right):
                return self._union(left, right, graph)
            case Filter(inner, condition):
                found = self.of(inner, graph)
                return None if found is None else self._filtered(found, condition)
            case Project(inner, variables):
                found = self.of(inner, graph)
                kept = {variable.value for variable in variables}
                if found is None:
                    return None
                columns = {name: column for name, column in found.columns.items() if name in kept}
                return Table(columns, found.size, found.sure & kept)
        return None

    def _conjunction(self, node: Node, graph: NamedNode | None) -> Conjunction | None:
        return Conjunction.of(self._plan, node if graph is None else Graph(graph, node))

    def _matched(self, left: Table, right: Node, graph: NamedNode | None) -> Table | None:
        """Each row of a table, by its number, with each match of a conjunction; None where that is not the join."""
        conjunction = self._conjunction(right, graph)
        if conjunction is None or not conjunction.patterns:
            return None
        shared = set(conjunction.variables) & left.columns.keys()
        if not shared or not shared <= left.sure:
            return None
        start = {**left.columns, _ROW: np.arange(left.size)}
        columns, size = extended(start, left.size, conjunction, self._data)
        return Table(columns, size, left.sure | set(conjunction.variables))

    def _join(self, left: Node, right: Node, graph: NamedNode | None) -> Table | None:
        table = self.of(left, graph)
        found = None if table is None else self._matched(table, right, graph)
        if found is not None:
            del found.columns[_ROW]
        return found

    def _optional(self, left: Node, right: Node, condition: Expression | None, graph: NamedNode | None) -> Table | None:
        table = self.of(left, graph)
        found = None if table is None else self._matched(table, right, graph)
        if condition is not None and found is not None:
            found = self._filtered(found, condition)
        if table is None or found is None:
            return None
        alone = np.ones(table.size, dtype=np.bool_)
        alone[found.columns.pop(_ROW)] = False
        return _stacked(found, table.picked(alone), table.sure)

    def _minus(self, left: Node, right: Node, graph: NamedNode | None) -> Table | None:
        table = self.of(left, graph)
        if table is None:
            return None
        if not {v.value for v in visible(right)} & table.columns.keys():
            # Nothing in common takes nothing away.
            return table
        found = self._matched(table, right, graph)
        if found is None:
            return None
        alone = np.ones(table.size, dtype=np.bool_)
        alone[found.columns[_ROW]] = False
        return table.picked(alone)

    def _union(self, left: Node, right: Node, graph: NamedNode | None) -> Table | None:
        one = self.of(left, graph)
        other = None if one is None else self.of(right, graph)
        return None if one is None or other is None else _stacked(one, other, one.sure & other.sure)

    def _filtered(self, table: Table, condition: Expression) -> Table | None:
        names = tuple(sorted(variable.value for variable in mentioned(condition)))
        if not can_evaluate(condition) or not set(names) <= table.columns.keys():
            return None
        test = CompiledExpression(condition, names, self._vocabulary, base=self._plan.base)
        return table.picked(test.test_rows(table.rows(names)))


def _stacked(one: Table, other: Table, sure: frozenset[str]) -> Table:
    """The rows of both."""
    names = tuple(dict.fromkeys([*one.columns, *other.columns]))
    rows = np.concatenate([one.rows(names), other.rows(names)])
    return Table({name: rows[:, place] for place, name in enumerate(names)}, rows.shape[0], sure)
