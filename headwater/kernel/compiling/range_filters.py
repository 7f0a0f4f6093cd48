"""Finds, in the conditions of a filter over a join, comparisons of one input with another.

Each is solved for an expression of either input. A constant that is added there goes to the other side:

    ?t2 <= ?t1 + 5       ?t2 is bounded by ?t1 + 5       ?t1 is bounded by ?t2 - 5
    ?t2 - ?t1 < 5        ?t2 is bounded by ?t1 + 5       ?t1 is bounded by ?t2 - 5
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from headwater.algebra.scope import expression_variables
from headwater.explain.notation import Notation
from headwater.kernel.expressions.compiled_expressions import CompiledExpression
from headwater.kernel.joins.range_conditions import EXCHANGED, RangeCondition, RangeSide
from headwater.kernel.operators.operator import Operator
from headwater.language.expressions import Constant, Expression, Operation
from headwater.terms.model import XSD, Literal

_MOVABLE = frozenset(XSD + name for name in ("integer", "decimal", "dayTimeDuration"))
"""What can be added and taken away again: a month, say, cannot."""
_INVERSE = {"+": "-", "-": "+"}

ExpressionCompiler = Callable[[Expression, tuple[str, ...]], CompiledExpression]


@dataclass
class RangeFinder:
    """Finds comparisons between inputs of a join. `resources` names variables that are never literals."""

    inputs: Sequence[Operator]
    resources: frozenset[str]
    notation: Notation
    compile_expression: ExpressionCompiler

    def find(self, conditions: Sequence[Expression]) -> list[RangeCondition]:
        """The comparisons among some conditions of which each side reads one input, and the other another."""
        return [found for one in conditions for found in self._solve(one)]

    def _solve(self, condition: Expression) -> Iterator[RangeCondition]:
        match condition:
            case Operation(operator, (Operation("-", (left, right)), Constant() as limit)) if _is_movable(limit):
                yield from self._solve_for(left, operator, Operation("+", (right, limit)), is_moved=True)
                yield from self._solve_for(
                    right, EXCHANGED.get(operator, ""), Operation("-", (left, limit)), is_moved=True
                )
            case Operation(operator, (left, right)):
                yield from self._solve_for(left, operator, right)
                yield from self._solve_for(right, EXCHANGED.get(operator, ""), left)

    def _solve_for(
        self, order: Expression, operator: str, bound: Expression, *, is_moved: bool = False
    ) -> Iterator[RangeCondition]:
        match order:
            case Operation("+" | "-" as sign, (inner, Constant() as moved)) if _is_movable(moved):
                order, bound, is_moved = inner, Operation(_INVERSE[sign], (bound, moved)), True
        one, other = self._inputs_with(order), self._inputs_with(bound)
        if operator in EXCHANGED and one and other and not set(one) & set(other):
            yield RangeCondition(self._side(order, one[0], False), operator, self._side(bound, other[0], is_moved))

    def _inputs_with(self, expression: Expression) -> list[int]:
        """The inputs that have all variables of an expression; none if it has no variables, or no order."""
        variables = {variable.value for variable in expression_variables(expression)}
        if not variables or variables & self.resources:
            return []
        return [i for i, one in enumerate(self.inputs) if variables <= set(one.variables)]

    def _side(self, expression: Expression, i: int, is_moved: bool) -> RangeSide:
        compiled = self.compile_expression(expression, self.inputs[i].variables)
        return RangeSide(i, self.notation.expression(expression), compiled.compute_values, is_moved)


def _is_movable(constant: Constant) -> bool:
    return isinstance(constant.value, Literal) and constant.value.datatype.value in _MOVABLE
