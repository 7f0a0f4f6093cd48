"""Expressions over rows of ids, with the meaning that `headwater.reference` gives them.

An expression is compiled into closures. Logic (`&&`, `||`, `!`, IN), comparison, arithmetic, BOUND, sameTerm, isIRI and
the like, IF and COALESCE work on whole columns of ids. Rows that ids alone do not decide, and every other function, are
evaluated by pyoxigraph (`pyoxigraph_evaluation`), each sub-expression by itself, once for each combination of the
values that it reads:

    ?v > 80 && REGEX(?name, "^A")     the first by a table of intervals, the second once for each name

>>> from headwater.language.expressions import Constant, Operation, VariableReference
>>> from headwater.terms.model import XSD, Literal, NamedNode, Variable
>>> number = lambda text: Literal(text, datatype=NamedNode(XSD + "integer"))
>>> above = Operation(">", (VariableReference(Variable("v")), Constant(number("80"))))
>>> vocabulary = Vocabulary()
>>> rows = vocabulary.ids_of_rows([(number("81"),), (None,)], 1)
>>> CompiledExpression(above, ("v",), vocabulary).test_rows(rows).tolist()
[True, False]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from headwater.algebra.nodes import ExistsPlan
from headwater.algebra.scope import expression_variables, sub_expressions
from headwater.kernel.columns.delta import UNBOUND, no_rows
from headwater.kernel.columns.ring_index import Ints
from headwater.kernel.columns.vocabulary import Vocabulary
from headwater.kernel.expressions.arithmetic import ARITHMETIC, ROUNDING, calculate
from headwater.kernel.expressions.comparison import (
    FALSE,
    OUTCOMES,
    TRUE,
    UNDECIDED,
    Truths,
    compare,
    compare_terms,
    compare_with_table,
    empty_truths,
    truths_as_ids,
)
from headwater.kernel.expressions.comparison_tables import ComparisonTables, comparison_tables, id_of_value
from headwater.kernel.expressions.pyoxigraph_evaluation import PyoxigraphExpression, boolean_value_of
from headwater.kernel.expressions.resource_ids import ResourceIds
from headwater.kernel.expressions.term_kinds import KIND_TESTS, test_kind
from headwater.language.builtins import is_volatile
from headwater.language.expressions import (
    Aggregate,
    Constant,
    Exists,
    Expression,
    FunctionCall,
    Operation,
    Timestamp,
    VariableReference,
    combine_chain,
)
from headwater.terms.ids.inline_layout import NO_ID
from headwater.terms.ids.term_texts import TermKind
from headwater.terms.model import Literal, NamedNode, Variable

Test: TypeAlias = Callable[[Ints], Truths]
Column: TypeAlias = tuple[Ints, int, int]
"""A table, the column in it, and the step from row to row: 0 if one value stands for all rows."""
Source: TypeAlias = Callable[[Ints], Column]

_EXCHANGED_OPERATORS = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "=": "=", "!=": "!="}
_LEFT, _RIGHT = Variable("left"), Variable("right")
_OPERANDS = VariableReference(_LEFT), VariableReference(_RIGHT)


def can_evaluate(expression: Expression) -> bool:
    """Whether the value of an expression depends on the row alone, and pyoxigraph knows its functions."""
    return all(can_evaluate_node(part) for part in sub_expressions(expression))


def can_evaluate_node(part: Expression) -> bool:
    """The same of one node of an expression, without its operands."""
    match part:
        case ExistsPlan() | Exists() | Aggregate() | Timestamp():
            return False
        case FunctionCall(name, _):
            return not is_volatile(name)
    return True


class CompiledExpression:
    """An expression over rows with these columns, for which `can_evaluate` holds. `base` resolves IRI().

    `resources` names columns without literals: there, equal terms are the same term (`headwater.algebra.non_literals`).
    """

    def __init__(
        self,
        expression: Expression,
        variables: tuple[str, ...],
        vocabulary: Vocabulary,
        *,
        base: str | None = None,
        resources: frozenset[str] = frozenset(),
    ) -> None:
        compiler = _Compiler(variables, vocabulary, base, resources)
        self._test = compiler.test(expression)
        self._source = compiler.source(expression)
        # Compile, or load, the machine code now and not during the first tick.
        self.test_rows(no_rows(len(variables)))
        self.compute_values(no_rows(len(variables)))

    def compute_values(self, rows: Ints) -> Ints:
        """The value of the expression for each row, `UNBOUND` for an error."""
        table, column, step = self._source(_contiguous(rows))
        return np.repeat(table[:1, column], rows.shape[0]) if step == 0 else table[:, column].copy()

    def test_rows(self, rows: Ints) -> npt.NDArray[np.bool_]:
        """The effective boolean value of the expression for each row; an error counts as false."""
        is_true: npt.NDArray[np.bool_] = self._test(_contiguous(rows)) == TRUE
        return is_true


def _contiguous(rows: Ints) -> Ints:
    return rows if rows.flags.c_contiguous else np.ascontiguousarray(rows)


class _Compiler:
    """Makes closures over rows: a test gives the truth of each row, a source the column of values."""

    def __init__(
        self, variables: tuple[str, ...], vocabulary: Vocabulary, base: str | None, resource_columns: frozenset[str]
    ) -> None:
        self._columns = {variable: i for i, variable in enumerate(variables)}
        self._vocabulary = vocabulary
        self._base = base
        self._resources = ResourceIds(vocabulary)
        self._resource_columns = resource_columns

    def test(self, expression: Expression) -> Test:
        """A test for the effective boolean value of an expression."""
        match expression:
            case Operation("&&" | "||" as operator, (left, right)):
                return _logical_test(operator, self.test(left), self.test(right), _needs_pyoxigraph(right))
            case Operation("!", (operand,)):
                return _not_test(self.test(operand))
            case Operation("IN" | "NOT IN" as operator, (first, *listed)) if listed:
                tests = [self._comparison_test("=", first, other) for other in listed]
                is_in = combine_chain(lambda left, right: _logical_test("||", left, right, True), tests)
                return _not_test(is_in) if operator == "NOT IN" else is_in
            case Operation(operator, (left, right)) if operator in OUTCOMES:
                return self._comparison_test(operator, left, right)
            case FunctionCall("BOUND", (VariableReference(variable),)):
                return self._bound_test(variable)
            case FunctionCall(str() as name, (VariableReference(variable),)) if name in KIND_TESTS:
                return self._kind_test(KIND_TESTS[name], self.source(VariableReference(variable)))
            case FunctionCall("SAMETERM", (left, right)) if _is_term(left) and _is_term(right):
                return _same_term_test(self.source(left), self.source(right), TRUE, FALSE)
            case Operation("+" | "-" | "*" | "/" | "unary -", _) | FunctionCall("IF" | "COALESCE", _):
                return self._boolean_value_test(self.source(expression))
            case FunctionCall(str() as name, (_,)) if name in ROUNDING:
                return self._boolean_value_test(self.source(expression))
        return self._pyoxigraph_test(expression)

    def source(self, expression: Expression) -> Source:
        """A source of the values of an expression."""
        match expression:
            case VariableReference(variable):
                column = self._columns.get(variable.value)
                return _unbound_source if column is None else lambda rows: (rows, column, 1)
            case Constant(value):
                vocabulary = self._vocabulary
                # Encoded for each batch: a sweep of the vocabulary may have removed the term.
                return lambda _: (np.array([[vocabulary.id_of(value)]], dtype=np.int64), 0, 0)
            case Operation(operator, operands) if operator in ARITHMETIC:
                over_operands = Operation(operator, _OPERANDS[: len(operands)])
                return self._arithmetic_source(ARITHMETIC[operator], over_operands, operands)
            case FunctionCall(str() as name, (operand,)) if name in ROUNDING:
                return self._arithmetic_source(ROUNDING[name], FunctionCall(name, _OPERANDS[:1]), (operand,))
            case FunctionCall("IF", (condition, then, otherwise)):
                return _if_source(self.test(condition), self.source(then), self.source(otherwise))
            case FunctionCall("COALESCE", arguments):
                nothing: Source = _unbound_source
                return reduce(_coalesce_source, map(self.source, arguments), nothing)
            case Operation("unary +" | "IN" | "NOT IN", (_,)):
                return self._pyoxigraph_source(expression)
            case Operation() | FunctionCall("BOUND" | "SAMETERM", _):
                test = self.test(expression)
                return lambda rows: (truths_as_ids(test(rows)).reshape(-1, 1), 0, 1)
        return self._pyoxigraph_source(expression)

    def _bound_test(self, variable: Variable) -> Test:
        column = self._columns.get(variable.value)
        if column is None:
            return lambda rows: np.full(rows.shape[0], FALSE, dtype=np.uint8)
        return lambda rows: (rows[:, column] != UNBOUND).view(np.uint8) * np.uint8(TRUE)

    def _kind_test(self, kind: TermKind, source: Source) -> Test:
        return lambda rows: test_kind(_column_values(source(rows), rows.shape[0]), kind, self._vocabulary)

    def _pyoxigraph_expression(self, expression: Expression) -> tuple[PyoxigraphExpression, list[int]]:
        names = sorted(v.value for v in expression_variables(expression) if v.value in self._columns)
        fallback = PyoxigraphExpression(expression, [Variable(name) for name in names], self._vocabulary, self._base)
        return fallback, [self._columns[name] for name in names]

    def _pyoxigraph_test(self, expression: Expression) -> Test:
        fallback, columns = self._pyoxigraph_expression(boolean_value_of(expression))
        return lambda rows: fallback.compute_truths([rows[:, c] for c in columns], rows.shape[0])

    def _pyoxigraph_source(self, expression: Expression) -> Source:
        fallback, columns = self._pyoxigraph_expression(expression)
        return lambda rows: (fallback.compute_ids([rows[:, c] for c in columns], rows.shape[0]).reshape(-1, 1), 0, 1)

    def _boolean_value_test(self, source: Source) -> Test:
        """The effective boolean value of values that are computed here."""
        fallback = PyoxigraphExpression(boolean_value_of(VariableReference(_LEFT)), [_LEFT], self._vocabulary, None)

        def test(rows: Ints) -> Truths:
            size = rows.shape[0]
            return fallback.compute_truths([_column_values(source(rows), size)], size)

        return test

    def _operand(self, expression: Expression) -> Source:
        """The values of an operand of which the value counts: a constant is replaced by its inline form."""
        if isinstance(expression, Constant) and isinstance(expression.value, Literal):
            term_id = id_of_value(expression.value)
            if term_id < 0:
                table = np.array([[term_id]], dtype=np.int64)
                return lambda _: (table, 0, 0)
        return self.source(expression)

    def _comparison_test(self, operator: str, left: Expression, right: Expression) -> Test:
        if isinstance(left, Constant) and not isinstance(right, Constant):
            left, right, operator = right, left, _EXCHANGED_OPERATORS[operator]
        if operator in ("=", "!=") and (self._is_resource(left) or self._is_resource(right)):
            # An IRI or a blank node equals only itself, whatever it is compared with.
            outcome = (TRUE, FALSE) if operator == "=" else (FALSE, TRUE)
            return _same_term_test(self.source(left), self.source(right), *outcome)
        if isinstance(right, Constant) and isinstance(right.value, Literal):
            tables = comparison_tables(operator, right.value)
            if tables is not None:
                return self._constant_comparison(operator, self.source(left), right.value, tables)
        return self._binary_comparison(operator, self._operand(left), self._operand(right))

    def _is_resource(self, expression: Expression) -> bool:
        """Whether no value of an expression is a literal."""
        match expression:
            case VariableReference(variable):
                return variable.value in self._resource_columns
            case Constant(value):
                return isinstance(value, NamedNode)
        return False

    def _constant_comparison(self, operator: str, source: Source, constant: Literal, tables: ComparisonTables) -> Test:
        """Compare with a constant by its intervals; rows that these leave open go to pyoxigraph."""
        operation = Operation(operator, (VariableReference(_LEFT), Constant(constant)))
        fallback = PyoxigraphExpression(boolean_value_of(operation), [_LEFT], self._vocabulary, None)
        constant_column = np.array([[id_of_value(constant)]], dtype=np.int64)
        outcomes, resources = OUTCOMES[operator], self._resources
        # Compiles `compare` now and not during the first tick.
        compare(constant_column, 0, 1, constant_column, 0, 0, outcomes, resources.members, empty_truths(1))

        def test(rows: Ints) -> Truths:
            table, column, step = source(rows)
            truths = empty_truths(rows.shape[0])
            if step == 0:
                table, column = _column_values((table, column, step), rows.shape[0]).reshape(-1, 1), 0
            if compare_with_table(table, column, *tables, truths):
                open_rows = np.flatnonzero(truths == UNDECIDED)
                values = table[open_rows, column]
                # The tables have no intervals for quotients.
                truths_now = empty_truths(open_rows.shape[0])
                if compare(values.reshape(-1, 1), 0, 1, constant_column, 0, 0, outcomes, resources.members, truths_now):
                    still_open = truths_now == UNDECIDED
                    truths_now[still_open] = fallback.compute_truths(
                        [values[still_open]], int(np.count_nonzero(still_open))
                    )
                truths[open_rows] = truths_now
            return truths

        return test

    def _binary_comparison(self, operator: str, left: Source, right: Source) -> Test:
        """Compare two operands by their ids; rows that these leave open go to pyoxigraph."""
        operation = Operation(operator, (VariableReference(_LEFT), VariableReference(_RIGHT)))
        fallback = PyoxigraphExpression(boolean_value_of(operation), [_LEFT, _RIGHT], self._vocabulary, None)
        outcomes, resources = OUTCOMES[operator], self._resources
        is_equality = operator in ("=", "!=")

        def test(rows: Ints) -> Truths:
            truths = empty_truths(rows.shape[0])
            first, second = left(rows), right(rows)
            if not compare(*first, *second, outcomes, resources.members, truths):
                return truths
            open_rows = np.flatnonzero(truths == UNDECIDED)
            a, b = _take_rows(first, open_rows), _take_rows(second, open_rows)
            if is_equality and resources.find_resources(a, b):
                truths_now = empty_truths(open_rows.shape[0])
                compare(a.reshape(-1, 1), 0, 1, b.reshape(-1, 1), 0, 1, outcomes, resources.members, truths_now)
                truths[open_rows] = truths_now
                still_open = truths_now == UNDECIDED
                open_rows, a, b = open_rows[still_open], a[still_open], b[still_open]
            truths[open_rows] = fallback.compute_truths([a, b], open_rows.shape[0])
            return truths

        return test

    def _arithmetic_source(self, code: int, expression: Expression, operands: Sequence[Expression]) -> Source:
        """Arithmetic on one or two operands; pyoxigraph evaluates `expression`, over `_OPERANDS`, for open rows."""
        sources = [self._operand(operand) for operand in operands]
        fallback = PyoxigraphExpression(expression, [_LEFT, _RIGHT][: len(sources)], self._vocabulary, None)

        def source(rows: Ints) -> Column:
            ids = np.empty((rows.shape[0], 1), dtype=np.int64)
            columns = [of_operand(rows) for of_operand in sources]
            flat = ids[:, 0]
            if calculate(code, *columns[0], *columns[-1], flat):
                open_rows = np.flatnonzero(flat == NO_ID)
                flat[open_rows] = fallback.compute_ids(
                    [_take_rows(column, open_rows) for column in columns], open_rows.shape[0]
                )
            return ids, 0, 1

        return source


def _is_term(expression: Expression) -> bool:
    return isinstance(expression, VariableReference | Constant)


_UNBOUND_COLUMN: Ints = np.full((1, 1), UNBOUND, dtype=np.int64)


def _unbound_source(_: Ints) -> Column:
    return _UNBOUND_COLUMN, 0, 0


def _column_values(column: Column, size: int) -> Ints:
    """The values of a column, one per row."""
    table, place, step = column
    return table[:, place] if step else np.full(size, table[0, place], dtype=np.int64)


def _take_rows(column: Column, chosen: Ints) -> Ints:
    table, place, step = column
    return table[chosen, place] if step else np.full(chosen.shape[0], table[0, place], dtype=np.int64)


def _same_term_test(left: Source, right: Source, if_same: int, otherwise: int) -> Test:
    def test(rows: Ints) -> Truths:
        truths = empty_truths(rows.shape[0])
        compare_terms(*left(rows), *right(rows), if_same, otherwise, truths)
        return truths

    return test


def _not_test(inner: Test) -> Test:
    return lambda rows: np.uint8(TRUE) - inner(rows)


def _logical_test(operator: str, left: Test, right: Test, is_right_slow: bool) -> Test:
    """`&&` or `||`. The right side is not tested on rows that the left side decides, if that is worth a copy."""
    deciding, combine = (FALSE, np.minimum) if operator == "&&" else (TRUE, np.maximum)

    def test(rows: Ints) -> Truths:
        truths = left(rows)
        size = rows.shape[0]
        if size == 1:
            return truths if truths[0] == deciding else combine(truths, right(rows))
        is_open = truths != deciding
        count = np.count_nonzero(is_open)
        if count == size or (4 * count > size and not is_right_slow):
            combine(truths, right(rows), out=truths)
        elif count:
            truths[is_open] = combine(truths[is_open], right(rows[is_open]))
        return truths

    return test


def _needs_pyoxigraph(expression: Expression) -> bool:
    """Whether an expression calls a function that needs pyoxigraph."""
    calls = (part.name for part in sub_expressions(expression) if isinstance(part, FunctionCall))
    return any(name not in ROUNDING and name not in ("BOUND", "SAMETERM", "IF", "COALESCE") for name in calls)


def _if_source(condition: Test, then: Source, otherwise: Source) -> Source:
    """IF: an error in the condition is an error."""

    def source(rows: Ints) -> Column:
        truths = condition(rows)
        values = np.full((rows.shape[0], 1), UNBOUND, dtype=np.int64)
        for truth, branch in ((TRUE, then), (FALSE, otherwise)):
            chosen = truths == truth
            part = rows[chosen]
            if part.shape[0]:
                values[chosen, 0] = _column_values(branch(part), part.shape[0])
        return values, 0, 1

    return source


def _coalesce_source(left: Source, right: Source) -> Source:
    """COALESCE: the right values where the left ones are errors."""

    def source(rows: Ints) -> Column:
        values = _column_values(left(rows), rows.shape[0]).copy()
        missing = values == UNBOUND
        part = rows[missing]
        if part.shape[0]:
            values[missing] = _column_values(right(part), part.shape[0])
        return values.reshape(-1, 1), 0, 1

    return source
