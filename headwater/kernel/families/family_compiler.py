"""Compiles the plan of a family: like any plan, with the table of the members as one more input.

- The table is shared by all places that read it, each of which sees some of its columns.
- A static part with parameters is a `FamilyViewOperator`: its rows are those for the members' values.
- A pattern with parameters over a window reads only triples with values of members (`MemberFilterOperator`).
- A filter that compares rows with parameters to which no join leads is a `ThresholdJoinOperator`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import reduce

from headwater.algebra.nodes import Filter, Join, Node
from headwater.algebra.plan import QueryPlan
from headwater.algebra.scope import certain_variables, conjuncts_of, expression_variables, visible_variables
from headwater.algebra.translate import conjunction_of
from headwater.execution.static_data import StaticData
from headwater.kernel.columns.vocabulary import Vocabulary
from headwater.kernel.compiling.compiler import Compiler
from headwater.kernel.compiling.join_inputs import JoinInput, join_all
from headwater.kernel.compiling.row_expressions import RowExpressions
from headwater.kernel.expressions.compiled_expressions import can_evaluate
from headwater.kernel.families.family_plan import FamilyPlan, MemberTable
from headwater.kernel.families.family_screening import FamilyPatternCompiler, WindowContents
from headwater.kernel.families.family_static_parts import FamilyStaticParts
from headwater.kernel.families.member_tables import MemberFollower, TableOperator
from headwater.kernel.families.threshold_join import ThresholdJoinOperator
from headwater.kernel.operators.operator import Operator
from headwater.kernel.operators.projection import ProjectionOperator
from headwater.kernel.operators.triple_patterns import RenameOperator, SharedOperator
from headwater.language.expressions import Expression
from headwater.terms.model import NamedNode, Variable
from headwater.windows.settings import QuerySettings


class FamilyCompiler(Compiler):
    """Compiles the plan of a family. Members are added to and removed from `table` and each of the `followers`.

    `contents` gives the triples that each window shows.
    """

    def __init__(
        self,
        plan: QueryPlan,
        settings: QuerySettings,
        static: StaticData,
        vocabulary: Vocabulary,
        family: FamilyPlan,
        contents: WindowContents,
    ) -> None:
        super().__init__(plan, settings, static, vocabulary)
        self.followers: list[MemberFollower] = []
        self.static_parts = FamilyStaticParts(plan, settings, static, vocabulary, family.parameters, self.followers)
        self._pattern_compiler = FamilyPatternCompiler(
            *(plan, settings, self.static_parts, vocabulary, self.clock, self._prefix),
            *(family.parameters, contents, self.followers),
        )
        self._expressions = RowExpressions(self, plan, vocabulary, self._pattern_compiler.times)
        self.table = TableOperator(tuple(variable.value for variable in (family.member, *family.parameters)))
        self._table = SharedOperator(self.table, self.clock)

    def _compile_node(self, node: Node, graph: NamedNode) -> Operator:
        match node:
            case MemberTable():
                return self._member_columns(node, graph)
            case Filter(inner, condition):
                join = self._threshold(inner, list(conjuncts_of(condition)), graph)
                if join is not None:
                    return join
        return super()._compile_node(node, graph)

    def _member_columns(self, node: MemberTable, graph: NamedNode) -> Operator:
        """The columns of the table that a node reads, and of its rows those that satisfy its conditions."""
        columns = node.inner
        conditions: list[Expression] = []
        while isinstance(columns, Filter):
            conditions.append(columns.condition)
            columns = columns.inner
        chosen = [0, *(place + 1 for place in node.parameters)]
        rows: Operator = ProjectionOperator(self._table, tuple(self._table.variables[column] for column in chosen))
        rows = RenameOperator(rows, tuple(variable.value for variable in visible_variables(columns)))
        everything = frozenset(rows.variables)
        return self.filter_rows(JoinInput(rows, everything), conjunction_of(conditions), graph) if conditions else rows

    def _threshold(self, inner: Node, conditions: list[Expression], graph: NamedNode) -> Operator | None:
        """A filter over a join in which nothing but the filter leads from the rows to the table."""
        parts = list(_parts(inner))
        tables = [part for part in parts if isinstance(part, MemberTable)]
        inputs = [part for part in parts if not isinstance(part, MemberTable)]
        if not tables or not inputs:
            return None
        rows = reduce(Join, inputs)
        parameters = {variable for table in tables for variable in visible_variables(table)}
        if parameters & set(visible_variables(rows)):
            return None
        plain = [condition for condition in conditions if can_evaluate(condition)]
        tests = [condition for condition in plain if expression_variables(condition) & parameters]
        if not tests:
            return None
        others = [condition for condition in plain if condition not in tests]
        left = self._compile_node(Filter(rows, conjunction_of(others)) if others else rows, graph)
        right = join_all([self.input(table, graph) for table in tables]).operator
        test = self._expressions.compile_expression(conjunction_of(tests), (*left.variables, *right.variables))
        join = ThresholdJoinOperator(left, right, test.test_rows)
        rest = [condition for condition in conditions if condition not in plain]
        return (
            self.filter_rows(JoinInput(join, names(certain_variables(inner))), conjunction_of(rest), graph)
            if rest
            else join
        )


def names(variables: Iterable[Variable]) -> frozenset[str]:
    return frozenset(variable.value for variable in variables)


def _parts(node: Node) -> Iterator[Node]:
    """The inputs of nested joins."""
    if isinstance(node, Join):
        yield from _parts(node.left)
        yield from _parts(node.right)
    else:
        yield node
