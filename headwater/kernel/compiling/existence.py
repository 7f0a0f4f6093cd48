"""EXISTS, by the definition (SPARQL 1.1, section 18.6): does the pattern have a solution with the row's values put in?

Most patterns can be evaluated by themselves, and a row has a solution where one of them is compatible with it (a
semi-join). That is so while nothing inside a pattern looks at a value that the pattern itself does not bind
(`is_closed`). Where a filter does look outside, the values of the rows around are joined into the pattern, each
combination K once, and everything inside sees them as columns:

    L FILTER EXISTS { P FILTER(?inside > ?outside) }     →     L ⋉ σ(K ⋈ P)        K = δ(π_outside(L))

A value that may be unbound is in K under a second name, too, with a mark where it is unbound, so that unbound values
are compared like any other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from headwater.algebra.nodes import (
    Bgp,
    Distinct,
    ExistsPlan,
    Extend,
    Filter,
    Graph,
    Group,
    Join,
    LeftJoin,
    Minus,
    Node,
    OrderBy,
    PathMatch,
    Project,
    QuadPattern,
    Reduced,
    Slice,
    Union,
    Unit,
    Values,
    Window,
)
from headwater.algebra.scope import (
    all_variables,
    certain_variables,
    expression_variables,
    expressions_of,
    nodes_of,
    sub_expressions,
    visible_variables,
)
from headwater.algebra.unrolled_paths import can_be_empty
from headwater.kernel.columns.delta import UNBOUND
from headwater.kernel.columns.ring_index import Ints
from headwater.kernel.compiling.join_inputs import JoinInput, join_all
from headwater.kernel.compiling.unsupported import UnsupportedByKernel
from headwater.kernel.operators.distinct import DistinctOperator
from headwater.kernel.operators.extend import ColumnFunction, ExtendOperator
from headwater.kernel.operators.mark_existence import ExistenceOperator
from headwater.kernel.operators.operator import Operator
from headwater.kernel.operators.projection import ProjectionOperator
from headwater.kernel.operators.semi_join import MinusOperator, SemiJoinOperator
from headwater.kernel.operators.triple_patterns import SharedOperator, TickClock
from headwater.kernel.operators.union import UnionOperator
from headwater.language.expressions import Expression, Timestamp
from headwater.terms.ids.inline_layout import NO_ID
from headwater.terms.model import NamedNode, Variable

Variables = frozenset[Variable]


class PlanCompiler(Protocol):
    """What is needed of the compiler of the plan around."""

    clock: TickClock

    def input(self, node: Node, graph: NamedNode) -> JoinInput: ...

    def filter_rows(self, given: JoinInput, condition: Expression, graph: NamedNode) -> Operator: ...

    def extend_rows(self, given: JoinInput, variable: str, expression: Expression, graph: NamedNode) -> Operator: ...

    def left_join(
        self, left: JoinInput, right: JoinInput, condition: Expression | None, graph: NamedNode
    ) -> Operator: ...

    def window_graph(self, number: int) -> NamedNode: ...

    def time_columns(self, variables: Variables) -> list[str]: ...

    def new_name(self, what: str) -> str: ...


@dataclass(frozen=True)
class _Pair:
    """The rows around, the solutions of the pattern, and the columns on which a row and its solutions agree."""

    left: Operator
    right: Operator
    shared: tuple[str, ...]


class ExistsCompiler:
    """Compiles EXISTS for the compiler of a plan."""

    def __init__(self, compiler: PlanCompiler) -> None:
        self._compiler = compiler

    def keep_rows(self, given: JoinInput, exists: ExistsPlan, graph: NamedNode) -> Operator:
        """The rows for which EXISTS, or NOT EXISTS, is true."""
        pair = self._pair(given, exists.plan, graph)
        rows = SemiJoinOperator(pair.left, pair.right, pair.shared, negated=exists.negated)
        return _project(rows, given.operator.variables)

    def mark_rows(self, given: JoinInput, exists: ExistsPlan, graph: NamedNode, name: str) -> Operator:
        """The rows with the truth of EXISTS, or NOT EXISTS, in one more column."""
        pair = self._pair(given, exists.plan, graph)
        rows = ExistenceOperator(pair.left, pair.right, pair.shared, name, negated=exists.negated)
        return _project(rows, (*given.operator.variables, name))

    def left_join(self, left: JoinInput, right: JoinInput, condition: Expression, graph: NamedNode) -> Operator:
        """OPTIONAL whose condition is more than a test of rows, by its definition: the joined rows that satisfy it, and
        each left row without such a partner."""
        rows, shared = self._with_comparable_columns(left, left.operator.variables)
        matches = SharedOperator(
            self._compiler.filter_rows(join_all([rows, right]), condition, graph), self._compiler.clock
        )
        alone = SemiJoinOperator(rows.operator, matches, shared, negated=True)
        names = dict.fromkeys((*left.operator.variables, *right.operator.variables))
        return UnionOperator([matches, alone], tuple(names))

    def _pair(self, given: JoinInput, plan: Node, graph: NamedNode) -> _Pair:
        columns = given.operator.variables
        around = frozenset(v for v in all_variables(plan) if v.value in columns)
        pattern = _strip_irrelevant(plan, around)
        around &= all_variables(pattern)
        if is_closed(pattern, around):
            right = self._compiler.input(pattern, graph).operator
            return _Pair(given.operator, right, tuple(v for v in columns if v in right.variables))
        return self._compile_correlated(given, pattern, graph, around)

    def _compile_correlated(self, given: JoinInput, pattern: Node, graph: NamedNode, around: Variables) -> _Pair:
        times = self._compiler.time_columns(around & _timestamped_variables(pattern))
        outside = [v for v in given.operator.variables if Variable(v) in around or v in times]
        left, shared = self._with_comparable_columns(given, outside)
        columns = tuple(dict.fromkeys([*outside, *shared]))
        values = SharedOperator(DistinctOperator(ProjectionOperator(left.operator, columns)), self._compiler.clock)
        outer = JoinInput(values, left.always_bound & frozenset(columns), left.resources & frozenset(columns))
        right = self._within(pattern, graph, outer, around)
        return _Pair(left.operator, right.operator, shared)

    def _with_comparable_columns(self, given: JoinInput, outside: Sequence[str]) -> tuple[JoinInput, tuple[str, ...]]:
        """Rows for several readers with columns that compare some of their columns, unbound values included."""
        rows: Operator = given.operator
        shared = [v for v in outside if v in given.always_bound]
        for name in outside:
            if name not in given.always_bound:
                shared.append(self._compiler.new_name("k"))
                rows = ExtendOperator(rows, shared[-1], _mark_unbound(rows.column_of(name)))
        rows_with_marks = JoinInput(
            SharedOperator(rows, self._compiler.clock), given.always_bound | frozenset(shared), given.resources
        )
        return rows_with_marks, tuple(shared)

    def _within(self, plan: Node, graph: NamedNode, outer: JoinInput, around: Variables) -> JoinInput:
        """The solutions of a pattern under each combination of the values around it, which stay columns."""
        compiler = self._compiler
        if is_closed(plan, around):
            return join_all([outer, compiler.input(plan, graph)])
        match plan:
            case Filter(inner, condition):
                below = self._within(inner, graph, outer, around)
                return replace(below, operator=compiler.filter_rows(below, condition, graph))
            case Join(left, right):
                return join_all([self._within(left, graph, outer, around), self._beside(right, graph, outer, around)])
            case Union(left, right):
                branches = [self._within(branch, graph, outer, around) for branch in (left, right)]
                both = branches[0].always_bound & branches[1].always_bound
                return JoinInput(UnionOperator([branch.operator for branch in branches]), both)
            case LeftJoin(left, right, condition):
                first = self._within(left, graph, outer, around)
                second = self._beside(right, graph, outer, around)
                return JoinInput(compiler.left_join(first, second, condition, graph), first.always_bound)
            case Minus(left, right) if not around & frozenset(visible_variables(right)) and is_closed(right, around):
                below = self._within(left, graph, outer, around)
                return JoinInput(
                    MinusOperator(below.operator, compiler.input(right, graph).operator), below.always_bound
                )
            case Extend(inner, variable, expression) if variable not in around:
                below = self._within(inner, graph, outer, around)
                return JoinInput(compiler.extend_rows(below, variable.value, expression, graph), below.always_bound)
            case Graph(NamedNode() as name, inner):
                return self._within(inner, name, outer, around)
            case Window((number,), None, inner):
                return self._within(inner, compiler.window_graph(number), outer, around)
            case Distinct(inner) | Reduced(inner) | OrderBy(inner, _):
                return self._within(inner, graph, outer, around)
            case Project(inner, variables) if around & all_variables(inner) <= frozenset(variables):
                below = self._within(inner, graph, outer, around)
                kept = dict.fromkeys([*outer.operator.variables, *(v.value for v in variables)])
                return JoinInput(ProjectionOperator(below.operator, tuple(kept)), below.always_bound & kept.keys())
        raise UnsupportedByKernel(f"EXISTS that looks outside from within {type(plan).__name__}")

    def _beside(self, plan: Node, graph: NamedNode, outer: JoinInput, around: Variables) -> JoinInput:
        """A pattern to be joined with rows that have the values around already."""
        return (
            self._compiler.input(plan, graph) if is_closed(plan, around) else self._within(plan, graph, outer, around)
        )


def is_closed(plan: Node, around: Variables) -> bool:
    """Whether putting values for the variables `around` into a pattern only chooses among its own solutions."""
    return not around & _timestamped_variables(plan) and _is_only_restricted(plan, around)


def _is_only_restricted(plan: Node, around: Variables) -> bool:
    """Whether substituting values for `around` keeps just those of its solutions that have these values."""
    shown = around & frozenset(visible_variables(plan))
    match plan:
        case Bgp() | QuadPattern() | Values() | Unit():
            return True
        case PathMatch(_, path, _):
            return not shown or not can_be_empty(path)
        case Join(left, right) | Union(left, right):
            return _is_only_restricted(left, around) and _is_only_restricted(right, around)
        case Graph(_, inner) | Window(_, _, inner) | Distinct(inner) | Reduced(inner) | OrderBy(inner, _):
            return _is_only_restricted(inner, around)
        case Filter(inner, condition):
            return around & expression_variables(condition) <= certain_variables(inner) and _is_only_restricted(
                inner, around
            )
        case Extend(inner, variable, expression):
            sees_itself = around & expression_variables(expression) <= certain_variables(inner)
            return variable not in around and sees_itself and _is_only_restricted(inner, around)
        case LeftJoin(left, right, condition):
            always_bound = certain_variables(left)
            seen = frozenset() if condition is None else around & expression_variables(condition)
            is_determined = around & frozenset(
                visible_variables(right)
            ) <= always_bound and seen <= always_bound | certain_variables(right)
            return is_determined and _is_only_restricted(left, around) and _is_only_restricted(right, around)
        case Minus(left, right):
            return (
                not around & frozenset(visible_variables(right))
                and _is_only_restricted(left, around)
                and _is_only_restricted(right, around)
            )
        case Project(inner, _):
            return _is_only_restricted(inner, shown)
        case Group(inner, keys, _):
            own = frozenset(variable for variable, expression in keys if expression is None)
            return shown <= own & certain_variables(inner) and _is_only_restricted(inner, shown)
        case Slice():
            return not shown
    return False


def _strip_irrelevant(plan: Node, around: Variables) -> Node:
    """The pattern of an EXISTS without DISTINCT, ORDER BY, OPTIONAL and others that never change whether it matches."""
    match plan:
        case Distinct(inner) | Reduced(inner) | OrderBy(inner, _) | LeftJoin(inner, _, _):
            return _strip_irrelevant(inner, around)
        case Slice(inner, 0, limit) if limit != 0:
            return _strip_irrelevant(inner, around)
        case Extend(inner, variable, _) if variable not in around:
            return _strip_irrelevant(inner, around)
        case Project(inner, variables) if around & all_variables(inner) <= frozenset(variables):
            return _strip_irrelevant(inner, around)
    return plan


def _timestamped_variables(plan: Node) -> Variables:
    """The variables whose timestamp is read inside a pattern."""
    parts = (part for node in nodes_of(plan) for e in expressions_of(node) for part in sub_expressions(e))
    return frozenset(part.variable for part in parts if isinstance(part, Timestamp))


def _mark_unbound(column: int) -> ColumnFunction:
    def mark_rows(rows: Ints) -> Ints:
        values = rows[:, column]
        return np.where(values == UNBOUND, NO_ID, values)

    return mark_rows


def _project(rows: Operator, variables: tuple[str, ...]) -> Operator:
    return rows if rows.variables == variables else ProjectionOperator(rows, variables)
