"""Static parts on columns: conjunctions, and OPTIONAL, MINUS, UNION, FILTER and projections over them.

    L OPTIONAL R     R's patterns look up what each row of L has bound; a row without a match stays as it is
    L MINUS R        the same lookup; only the rows of L without a match stay

Both require that the variables that L and R share are bound in every row of L. Otherwise, and for all other operators,
`evaluate_on_columns` gives None, and the kernel evaluates the part (`kernel_views`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from headwater.algebra.nodes import Filter, Graph, Join, LeftJoin, Minus, Node, Project, Union
from headwater.algebra.plan import QueryPlan
from headwater.algebra.scope import expression_variables, visible_variables
from headwater.datasets.mapped_files import Ints
from headwater.datasets.views.conjunctions import Conjunction
from headwater.datasets.views.pattern_matching import extend_bindings
from headwater.kernel.columns.delta import UNBOUND
from headwater.kernel.columns.vocabulary import Vocabulary
from headwater.kernel.expressions.compiled_expressions import CompiledExpression, can_evaluate
from headwater.language.expressions import Expression
from headwater.terms.model import NamedNode

if TYPE_CHECKING:
    from headwater.datasets.linked_data import LinkedData

_ROW = "#"
"""The column with the index of the row of L that a match belongs to; no variable has this name."""


@dataclass(frozen=True)
class SolutionTable:
    """Solutions as columns; `always_bound` are the variables that are bound in all of them."""

    columns: dict[str, Ints]
    size: int
    always_bound: frozenset[str]

    def select_rows(self, mask: npt.NDArray[np.bool_]) -> SolutionTable:
        """The rows where the mask is True."""
        return SolutionTable(
            {name: column[mask] for name, column in self.columns.items()}, int(mask.sum()), self.always_bound
        )

    def rows(self, names: tuple[str, ...]) -> Ints:
        """The values of some variables, one row for each solution."""
        rows = np.full((self.size, len(names)), UNBOUND, dtype=np.int64)
        for index, name in enumerate(names):
            if name in self.columns:
                rows[:, index] = self.columns[name]
        return rows


def evaluate_on_columns(plan: QueryPlan, part: Node, data: LinkedData) -> SolutionTable | None:
    """The solutions of a part; None if it cannot be evaluated on columns."""
    return _ColumnEvaluator(plan, data).evaluate(part, None)


class _ColumnEvaluator:
    """Evaluates the nodes of a static part on columns."""

    def __init__(self, plan: QueryPlan, data: LinkedData) -> None:
        self._plan = plan
        self._data = data
        self._vocabulary = Vocabulary(data.text_of, data.kinds_of)

    def evaluate(self, node: Node, graph: NamedNode | None) -> SolutionTable | None:
        """The solutions of a node within a graph (None: the default graph); None if columns are not enough."""
        conjunction = self._conjunction(node, graph)
        if conjunction is not None:
            columns, size = extend_bindings({}, 1, conjunction, self._data)
            return SolutionTable(columns, size, frozenset(columns))
        match node:
            case Graph(NamedNode() as name, inner):
                return self.evaluate(inner, name)
            case LeftJoin(left, right, condition):
                return self._optional(left, right, condition, graph)
            case Minus(left, right):
                return self._minus(left, right, graph)
            case Join(left, right):
                return self._join(left, right, graph) or self._join(right, left, graph)
            case Union(left, right):
                return self._union(left, right, graph)
            case Filter(inner, condition):
                table = self.evaluate(inner, graph)
                return None if table is None else self._filter(table, condition)
            case Project(inner, variables):
                table = self.evaluate(inner, graph)
                kept = {variable.value for variable in variables}
                if table is None:
                    return None
                columns = {name: column for name, column in table.columns.items() if name in kept}
                return SolutionTable(columns, table.size, table.always_bound & kept)
        return None

    def _conjunction(self, node: Node, graph: NamedNode | None) -> Conjunction | None:
        return Conjunction.of(self._plan, node if graph is None else Graph(graph, node))

    def _extend_rows(self, left: SolutionTable, right: Node, graph: NamedNode | None) -> SolutionTable | None:
        """Join a table, with the row index as a column, with a conjunction; None if lookups do not give the join."""
        conjunction = self._conjunction(right, graph)
        if conjunction is None or not conjunction.patterns:
            return None
        shared = set(conjunction.variables) & left.columns.keys()
        if not shared or not shared <= left.always_bound:
            return None
        start = {**left.columns, _ROW: np.arange(left.size)}
        columns, size = extend_bindings(start, left.size, conjunction, self._data)
        return SolutionTable(columns, size, left.always_bound | set(conjunction.variables))

    def _join(self, left: Node, right: Node, graph: NamedNode | None) -> SolutionTable | None:
        table = self.evaluate(left, graph)
        matches = None if table is None else self._extend_rows(table, right, graph)
        if matches is not None:
            del matches.columns[_ROW]
        return matches

    def _optional(
        self, left: Node, right: Node, condition: Expression | None, graph: NamedNode | None
    ) -> SolutionTable | None:
        table = self.evaluate(left, graph)
        matches = None if table is None else self._extend_rows(table, right, graph)
        if condition is not None and matches is not None:
            matches = self._filter(matches, condition)
        if table is None or matches is None:
            return None
        is_unmatched = np.ones(table.size, dtype=np.bool_)
        is_unmatched[matches.columns.pop(_ROW)] = False
        return _concatenate(matches, table.select_rows(is_unmatched), table.always_bound)

    def _minus(self, left: Node, right: Node, graph: NamedNode | None) -> SolutionTable | None:
        table = self.evaluate(left, graph)
        if table is None:
            return None
        if not {v.value for v in visible_variables(right)} & table.columns.keys():
            # Without shared variables MINUS removes nothing.
            return table
        matches = self._extend_rows(table, right, graph)
        if matches is None:
            return None
        is_unmatched = np.ones(table.size, dtype=np.bool_)
        is_unmatched[matches.columns[_ROW]] = False
        return table.select_rows(is_unmatched)

    def _union(self, left: Node, right: Node, graph: NamedNode | None) -> SolutionTable | None:
        one = self.evaluate(left, graph)
        other = None if one is None else self.evaluate(right, graph)
        return None if one is None or other is None else _concatenate(one, other, one.always_bound & other.always_bound)

    def _filter(self, table: SolutionTable, condition: Expression) -> SolutionTable | None:
        names = tuple(sorted(variable.value for variable in expression_variables(condition)))
        if not can_evaluate(condition) or not set(names) <= table.columns.keys():
            return None
        test = CompiledExpression(condition, names, self._vocabulary, base=self._plan.base)
        return table.select_rows(test.test_rows(table.rows(names)))


def _concatenate(one: SolutionTable, other: SolutionTable, always_bound: frozenset[str]) -> SolutionTable:
    """The rows of both."""
    names = tuple(dict.fromkeys([*one.columns, *other.columns]))
    rows = np.concatenate([one.rows(names), other.rows(names)])
    return SolutionTable({name: rows[:, index] for index, name in enumerate(names)}, rows.shape[0], always_bound)
