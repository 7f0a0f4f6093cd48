"""Expressions of a plan over the rows of an operator.

What an expression reads beside its row is given to it as columns:

    timestamp(?v)      the times of the patterns that bind ?v (`pattern_inputs`)
    NOW()              the tick, joined to the rows (`operators.now`)
    EXISTS {…}         whether it holds (`existence`), where it is not simply a filter
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from headwater.algebra.nodes import ExistsPlan
from headwater.algebra.non_literals import non_literals_of_join
from headwater.algebra.plan import QueryPlan
from headwater.algebra.scope import conjuncts_of, expression_variables, map_expression, sub_expressions
from headwater.algebra.translate import conjunction_of
from headwater.algebra.triple_timestamps import PatternTime, timestamp_expression
from headwater.explain.notation import Notation
from headwater.kernel.columns.vocabulary import Vocabulary
from headwater.kernel.compiling.existence import ExistsCompiler, PlanCompiler
from headwater.kernel.compiling.join_inputs import JoinInput, join_all
from headwater.kernel.compiling.range_filters import RangeFinder
from headwater.kernel.compiling.unsupported import UnsupportedByKernel
from headwater.kernel.expressions.compiled_expressions import CompiledExpression, can_evaluate, can_evaluate_node
from headwater.kernel.operators.extend import ExtendOperator
from headwater.kernel.operators.filter import FilterOperator, apply_filter
from headwater.kernel.operators.left_join import LeftJoinOperator
from headwater.kernel.operators.multiway_join import MultiwayJoinOperator
from headwater.kernel.operators.now import NetChangeOperator, NowOperator
from headwater.kernel.operators.operator import Operator
from headwater.kernel.operators.projection import ProjectionOperator
from headwater.language.expressions import Expression, FunctionCall, Timestamp, VariableReference
from headwater.terms.model import NamedNode, Variable


@dataclass
class RowExpressions:
    """Compiles the expressions of one plan. `times` lists the columns of times that patterns have so far."""

    compiler: PlanCompiler
    plan: QueryPlan
    vocabulary: Vocabulary
    times: list[PatternTime]
    _exists_compiler: ExistsCompiler = field(init=False)

    def __post_init__(self) -> None:
        self._exists_compiler = ExistsCompiler(self.compiler)

    def compile_expression(
        self, expression: Expression, variables: tuple[str, ...], resources: frozenset[str] = frozenset()
    ) -> CompiledExpression:
        """An expression over rows with these columns, of which some are known to be never a literal."""
        written = self._write_timestamps(expression, variables)
        if not can_evaluate(written):
            raise UnsupportedByKernel(_reason(written))
        return CompiledExpression(written, variables, self.vocabulary, base=self.plan.base, resources=resources)

    def _write_timestamps(self, expression: Expression, variables: tuple[str, ...]) -> Expression:
        """An expression that reads the columns of times in place of `timestamp()`."""
        here = [time for time in self.times if time[2].value in variables]
        streams = [source.stream for source in self.plan.windows]

        def change(part: Expression) -> Expression | None:
            return timestamp_expression(part, here, streams) if isinstance(part, Timestamp) else None

        return map_expression(expression, change)

    def filter_rows(self, given: JoinInput, condition: Expression, graph: NamedNode) -> Operator:
        """FILTER: what the row alone decides first, then patterns, then what may change from tick to tick."""
        conditions = list(conjuncts_of(condition))
        exists = [c for c in conditions if isinstance(c, ExistsPlan)]
        plain = [c for c in conditions if not _helper_parts(c)]
        others = [c for c in conditions if _helper_parts(c) and c not in exists]
        rows = given.operator
        if plain:
            test = self.compile_expression(conjunction_of(plain), rows.variables, given.resources).test_rows
            written = [self._write_timestamps(one, rows.variables) for one in plain]
            finder = RangeFinder(rows.inputs, given.resources, Notation.of(self.plan), self.compile_expression)
            rows = apply_filter(rows, test, finder.find(written) if isinstance(rows, MultiwayJoinOperator) else ())
        for one in exists:
            rows = self._exists_compiler.keep_rows(replace(given, operator=rows), one, graph)
        if others:
            shown = rows.variables
            rows, (other,) = self.with_helper_columns(replace(given, operator=rows), [conjunction_of(others)], graph)
            holds = self.compile_expression(other, rows.variables, given.resources).test_rows
            rows = self._drop_helper_columns(FilterOperator(rows, holds), shown, others)
        return rows

    def extend_rows(self, given: JoinInput, variable: str, expression: Expression, graph: NamedNode) -> Operator:
        """BIND: the rows with one more column."""
        shown = (*given.operator.variables, variable)
        rows, (value,) = self.with_helper_columns(given, [expression], graph)
        compiled = self.compile_expression(value, rows.variables, given.resources)
        return self._drop_helper_columns(ExtendOperator(rows, variable, compiled.compute_values), shown, [expression])

    def left_join(self, left: JoinInput, right: JoinInput, condition: Expression | None, graph: NamedNode) -> Operator:
        """OPTIONAL with its condition, which sees both sides."""
        if condition is None:
            return LeftJoinOperator(left.operator, right.operator)
        if _helper_parts(condition):
            return self._exists_compiler.left_join(left, right, condition, graph)
        both = dict.fromkeys((*left.operator.variables, *right.operator.variables))
        resources = non_literals_of_join([left.known, right.known])
        return LeftJoinOperator(
            left.operator, right.operator, self.compile_expression(condition, tuple(both), resources).test_rows
        )

    def with_helper_columns(
        self, given: JoinInput, expressions: Sequence[Expression], graph: NamedNode
    ) -> tuple[Operator, list[Expression]]:
        """The rows with the columns that expressions need beside theirs, and the expressions reading them."""
        rows = given.operator
        known: dict[Expression, Expression] = {}
        for part in dict.fromkeys(part for expression in expressions for part in _helper_parts(expression)):
            name = self.compiler.new_name("x")
            if isinstance(part, ExistsPlan):
                rows = self._exists_compiler.mark_rows(replace(given, operator=rows), part, graph, name)
            else:
                now = NowOperator(name, self.compiler.clock, self.vocabulary)
                everything = frozenset(rows.variables)
                rows = join_all([JoinInput(rows, everything), JoinInput(now, frozenset({name}))]).operator
            known[part] = VariableReference(Variable(name))
        return rows, [map_expression(expression, known.get) for expression in expressions]

    def drop_unneeded_columns(
        self, rows: Operator, expressions: Sequence[Expression], shown: tuple[str, ...]
    ) -> Operator:
        """Project rows to the columns `shown` and those that some expressions read."""
        read = {v.value for expression in expressions for v in expression_variables(expression)}
        asked = {part.variable for e in expressions for part in sub_expressions(e) if isinstance(part, Timestamp)}
        read |= {column.value for bound, _, column in self.times if bound & asked}
        kept = dict.fromkeys([*shown, *(v for v in rows.variables if v in read)])
        return rows if tuple(kept) == rows.variables else ProjectionOperator(rows, tuple(kept))

    def _drop_helper_columns(
        self, rows: Operator, shown: tuple[str, ...], expressions: Sequence[Expression]
    ) -> Operator:
        """The rows without the columns that only expressions needed."""
        if rows.variables == shown:
            return rows
        cut = ProjectionOperator(rows, shown)
        changes = any(not isinstance(part, ExistsPlan) for e in expressions for part in _helper_parts(e))
        return NetChangeOperator(cut) if changes else cut


def _helper_parts(expression: Expression) -> list[Expression]:
    """The parts of an expression that the row does not decide: NOW() and EXISTS."""
    return [part for part in sub_expressions(expression) if isinstance(part, ExistsPlan) or _is_now(part)]


def _is_now(part: Expression) -> bool:
    return isinstance(part, FunctionCall) and part.name == "NOW"


def _reason(expression: Expression) -> str:
    part = next(part for part in sub_expressions(expression) if not can_evaluate_node(part))
    if isinstance(part, FunctionCall):
        if isinstance(part.name, NamedNode):
            return f"<{part.name.value}>, a function that is not known"
        return f"{part.name}(), which is no function of its row"
    return f"{type(part).__name__} inside an expression"
