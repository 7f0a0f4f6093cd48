"""EXISTS, by the definition (SPARQL 1.1, section 18.6): does the pattern have a solution with the row's values put in?

Most patterns can be evaluated by themselves, and a row has a solution where one of them is compatible with it (a
semi-join). That is so while nothing inside a pattern looks at a value that the pattern itself does not bind
(`is_closed`). Where a filter does look outside, the values of the rows around are joined into the pattern, each
combination K once, and everything inside sees them as columns:

    L FILTER EXISTS { P FILTER(?inside > ?outside) }     →     L ⋉ σ(K ⋈ P)        K = δ(π_outside(L))

A value that may be unbound takes part in K under a second name too, with a mark in place of nothing, so that rows are
told apart by it.
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
from headwater.kernel.compiling.join_inputs import Input, joined
from headwater.kernel.compiling.unsupported import NotForTheKernel
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
    """What is asked of the compiler of the plan around."""

    clock: TickClock

    def input(self, node: Node, graph: NamedNode) -> Input: ...

    def filtered(self, given: Input, condition: Expression, graph: NamedNode) -> Operator: ...

    def extended(self, given: Input, variable: str, expression: Expression, graph: NamedNode) -> Operator: ...

    def left_joined(self, left: Input, right: Input, condition: Expression | None, graph: NamedNode) -> Operator: ...

    def window_graph(self, number: int) -> NamedNode: ...

    def time_columns(self, variables: Variables) -> list[str]: ...

    def fresh(self, what: str) -> str: ...


@dataclass(frozen=True)
class _Pair:
    """The rows around, the solutions of the pattern, and the columns on which a row and its solutions agree."""

    left: Operator
    right: Operator
    shared: tuple[str, ...]


class Existence:
    """Compiles EXISTS for the compiler of a plan."""

    def __init__(self, compiler: PlanCompiler) -> None:
        self._compiler = compiler

    def kept(self, given: Input, exists: ExistsPlan, graph: NamedNode) -> Operator:
        """The rows for which EXISTS, or NOT EXISTS, is true."""
        pair = self._pair(given, exists.plan, graph)
        rows = SemiJoinOperator(pair.left, pair.right, pair.shared, negated=exists.negated)
        return _projected(rows, given.operator.variables)

    def marked(self, given: Input, exists: ExistsPlan, graph: NamedNode, name: str) -> Operator:
        """The rows with the truth of EXISTS, or NOT EXISTS, in one more column."""
        pair = self._pair(given, exists.plan, graph)
        rows = ExistenceOperator(pair.left, pair.right, pair.shared, name, negated=exists.negated)
        return _projected(rows, (*given.operator.variables, name))

    def left_joined(self, left: Input, right: Input, condition: Expression, graph: NamedNode) -> Operator:
        """OPTIONAL whose condition is more than a test of rows, word for word: what joins and satisfies it, and each
        left row that nothing does."""
        rows, shared = self._told_apart(left, left.operator.variables)
        found = SharedOperator(self._compiler.filtered(joined([rows, right]), condition, graph), self._compiler.clock)
        alone = SemiJoinOperator(rows.operator, found, shared, negated=True)
        names = dict.fromkeys((*left.operator.variables, *right.operator.variables))
        return UnionOperator([found, alone], tuple(names))

    def _pair(self, given: Input, plan: Node, graph: NamedNode) -> _Pair:
        columns = given.operator.variables
        around = frozenset(v for v in all_variables(plan) if v.value in columns)
        pattern = _bare(plan, around)
        around &= all_variables(pattern)
        if is_closed(pattern, around):
            right = self._compiler.input(pattern, graph).operator
            return _Pair(given.operator, right, tuple(v for v in columns if v in right.variables))
        return self._correlated(given, pattern, graph, around)

    def _correlated(self, given: Input, pattern: Node, graph: NamedNode, around: Variables) -> _Pair:
        times = self._compiler.time_columns(around & _timed(pattern))
        outside = [v for v in given.operator.variables if Variable(v) in around or v in times]
        left, shared = self._told_apart(given, outside)
        columns = tuple(dict.fromkeys([*outside, *shared]))
        values = SharedOperator(DistinctOperator(ProjectionOperator(left.operator, columns)), self._compiler.clock)
        outer = Input(values, left.sure & frozenset(columns), left.resources & frozenset(columns))
        right = self._within(pattern, graph, outer, around)
        return _Pair(left.operator, right.operator, shared)

    def _told_apart(self, given: Input, outside: Sequence[str]) -> tuple[Input, tuple[str, ...]]:
        """Rows for several readers, and the columns that are equal where some columns are, unbound ones included."""
        rows: Operator = given.operator
        shared = [v for v in outside if v in given.sure]
        for name in outside:
            if name not in given.sure:
                shared.append(self._compiler.fresh("k"))
                rows = ExtendOperator(rows, shared[-1], _marking_gaps(rows.column_of(name)))
        told = Input(SharedOperator(rows, self._compiler.clock), given.sure | frozenset(shared), given.resources)
        return told, tuple(shared)

    def _within(self, plan: Node, graph: NamedNode, outer: Input, around: Variables) -> Input:
        """The solutions of a pattern under each combination of the values around it, which stay columns."""
        compiler = self._compiler
        if is_closed(plan, around):
            return joined([outer, compiler.input(plan, graph)])
        match plan:
            case Filter(inner, condition):
                below = self._within(inner, graph, outer, around)
                return replace(below, operator=compiler.filtered(below, condition, graph))
            case Join(left, right):
                return joined([self._within(left, graph, outer, around), self._beside(right, graph, outer, around)])
            case Union(left, right):
                branches = [self._within(branch, graph, outer, around) for branch in (left, right)]
                both = branches[0].sure & branches[1].sure
                return Input(UnionOperator([branch.operator for branch in branches]), both)
            case LeftJoin(left, right, condition):
                first = self._within(left, graph, outer, around)
                second = self._beside(right, graph, outer, around)
                return Input(compiler.left_joined(first, second, condition, graph), first.sure)
            case Minus(left, right) if not around & frozenset(visible_variables(right)) and is_closed(right, around):
                below = self._within(left, graph, outer, around)
                return Input(MinusOperator(below.operator, compiler.input(right, graph).operator), below.sure)
            case Extend(inner, variable, expression) if variable not in around:
                below = self._within(inner, graph, outer, around)
                return Input(compiler.extended(below, variable.value, expression, graph), below.sure)
            case Graph(NamedNode() as name, inner):
                return self._within(inner, name, outer, around)
            case Window((number,), None, inner):
                return self._within(inner, compiler.window_graph(number), outer, around)
            case Distinct(inner) | Reduced(inner) | OrderBy(inner, _):
                return self._within(inner, graph, outer, around)
            case Project(inner, variables) if around & all_variables(inner) <= frozenset(variables):
                below = self._within(inner, graph, outer, around)
                kept = dict.fromkeys([*outer.operator.variables, *(v.value for v in variables)])
                return Input(ProjectionOperator(below.operator, tuple(kept)), below.sure & kept.keys())
        raise NotForTheKernel(f"EXISTS that looks outside from within {type(plan).__name__}")

    def _beside(self, plan: Node, graph: NamedNode, outer: Input, around: Variables) -> Input:
        """A pattern to be joined with what has the values around already."""
        return (
            self._compiler.input(plan, graph) if is_closed(plan, around) else self._within(plan, graph, outer, around)
        )


def is_closed(plan: Node, around: Variables) -> bool:
    """Whether putting values for the variables `around` into a pattern only chooses among its own solutions."""
    return not around & _timed(plan) and _chooses(plan, around)


def _chooses(plan: Node, around: Variables) -> bool:
    shown = around & frozenset(visible_variables(plan))
    match plan:
        case Bgp() | Values() | Unit():
            return True
        case PathMatch(_, path, _):
            return not shown or not can_be_empty(path)
        case Join(left, right) | Union(left, right):
            return _chooses(left, around) and _chooses(right, around)
        case Graph(_, inner) | Window(_, _, inner) | Distinct(inner) | Reduced(inner) | OrderBy(inner, _):
            return _chooses(inner, around)
        case Filter(inner, condition):
            return around & expression_variables(condition) <= certain_variables(inner) and _chooses(inner, around)
        case Extend(inner, variable, expression):
            sees_itself = around & expression_variables(expression) <= certain_variables(inner)
            return variable not in around and sees_itself and _chooses(inner, around)
        case LeftJoin(left, right, condition):
            sure = certain_variables(left)
            seen = frozenset() if condition is None else around & expression_variables(condition)
            settled = around & frozenset(visible_variables(right)) <= sure and seen <= sure | certain_variables(right)
            return settled and _chooses(left, around) and _chooses(right, around)
        case Minus(left, right):
            return (
                not around & frozenset(visible_variables(right)) and _chooses(left, around) and _chooses(right, around)
            )
        case Project(inner, _):
            return _chooses(inner, shown)
        case Group(inner, keys, _):
            own = frozenset(variable for variable, expression in keys if expression is None)
            return shown <= own & certain_variables(inner) and _chooses(inner, shown)
        case Slice():
            return not shown
    return False


def _bare(plan: Node, around: Variables) -> Node:
    """The pattern without what makes no difference to whether it has a solution."""
    match plan:
        case Distinct(inner) | Reduced(inner) | OrderBy(inner, _) | LeftJoin(inner, _, _):
            return _bare(inner, around)
        case Slice(inner, 0, limit) if limit != 0:
            return _bare(inner, around)
        case Extend(inner, variable, _) if variable not in around:
            return _bare(inner, around)
        case Project(inner, variables) if around & all_variables(inner) <= frozenset(variables):
            return _bare(inner, around)
    return plan


def _timed(plan: Node) -> Variables:
    """The variables whose timestamp is asked for inside a pattern."""
    parts = (part for node in nodes_of(plan) for e in expressions_of(node) for part in sub_expressions(e))
    return frozenset(part.variable for part in parts if isinstance(part, Timestamp))


def _marking_gaps(column: int) -> ColumnFunction:
    def marked(rows: Ints) -> Ints:
        values = rows[:, column]
        return np.where(values == UNBOUND, NO_ID, values)

    return marked


def _projected(rows: Operator, variables: tuple[str, ...]) -> Operator:
    return rows if rows.variables == variables else ProjectionOperator(rows, variables)
