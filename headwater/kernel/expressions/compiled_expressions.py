"""Expressions over rows of ids, with the meaning that `headwater.reference` gives them.

An expression is compiled into small closures. Logic (`&&`, `||`, `!`, IN), comparison, arithmetic, BOUND, sameTerm,
isIRI and its like, IF and COALESCE work on whole columns of ids; the rows that ids alone do not decide, and every other
function, go the general way (`expression_asking`), each part by itself, so that it is asked once per combination of the
values it reads:

    ?v > 80 && REGEX(?name, "^A")     the first by a table of intervals, the second once per name

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
from headwater.algebra.scope import mentioned, sub_expressions
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
from headwater.kernel.expressions.comparison_tables import ComparisonTables, comparison_tables, value_id
from headwater.kernel.expressions.pyoxigraph_evaluation import PyoxigraphExpression, boolean_value_of
from headwater.kernel.expressions.resource_ids import ResourceIds
from headwater.kernel.expressions.term_kinds import KIND_TESTS, test_kind
from headwater.language.expressions import (
    Aggregate,
    Constant,
    Exists,
    Expression,
    FunctionCall,
    Operation,
    Timestamp,
    VariableReference,
)
from headwater.terms.ids.inline_layout import NO_ID
from headwater.terms.ids.term_texts import Kind
from headwater.terms.model import XSD, Literal, NamedNode, Variable

Test: TypeAlias = Callable[[Ints], Truths]
Column: TypeAlias = tuple[Ints, int, int]
"""A table, the column in it, and the step from row to row: 0 where one value stands for all rows."""
Source: TypeAlias = Callable[[Ints], Column]

_UNSTEADY = frozenset({"NOW", "RAND", "UUID", "STRUUID", "BNODE"})
_CASTS = frozenset(
    XSD + name
    for name in (
        *("boolean", "double", "float", "decimal", "integer", "string", "date", "time", "dateTime"),
        *("duration", "yearMonthDuration", "dayTimeDuration", "gYear", "gYearMonth", "gMonth", "gMonthDay", "gDay"),
    )
)
"""The functions by IRI that the general way knows; it refuses others."""
_MIRRORED = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "=": "=", "!=": "!="}
_LEFT, _RIGHT = Variable("left"), Variable("right")
_NAMES = VariableReference(_LEFT), VariableReference(_RIGHT)


def can_evaluate(expression: Expression) -> bool:
    """Whether the value of an expression depends on nothing but the row, and every function in it is known."""
    return all(is_deterministic(part) for part in sub_expressions(expression))


def is_deterministic(part: Expression) -> bool:
    match part:
        case ExistsPlan() | Exists() | Aggregate() | Timestamp():
            return False
        case FunctionCall(NamedNode() as name, _):
            return name.value in _CASTS
        case FunctionCall(name, _):
            return name not in _UNSTEADY
    return True


class CompiledExpression:
    """An expression over rows with these columns. `can_evaluate` must hold for it; `base` resolves IRI().

    `resources` names columns that hold no literals: equality is identity there (`headwater.algebra.non_literals`).
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
        # Machine code is made, or loaded, now and not while a stream flows.
        self.test_rows(no_rows(len(variables)))
        self.compute_values(no_rows(len(variables)))

    def compute_values(self, rows: Ints) -> Ints:
        """The value of each row, `UNBOUND` where the expression has an error."""
        table, column, step = self._source(_in_order(rows))
        return np.repeat(table[:1, column], rows.shape[0]) if step == 0 else table[:, column].copy()

    def test_rows(self, rows: Ints) -> npt.NDArray[np.bool_]:
        """The effective boolean value of each row; an error counts as false."""
        held: npt.NDArray[np.bool_] = self._test(_in_order(rows)) == TRUE
        return held


def _in_order(rows: Ints) -> Ints:
    return rows if rows.flags.c_contiguous else np.ascontiguousarray(rows)


class _Compiler:
    """Makes closures: a test gives the truth of each row, a source the column of an expression's values."""

    def __init__(
        self, variables: tuple[str, ...], vocabulary: Vocabulary, base: str | None, never_literals: frozenset[str]
    ) -> None:
        self._columns = {variable: i for i, variable in enumerate(variables)}
        self._vocabulary = vocabulary
        self._base = base
        self._resources = ResourceIds(vocabulary)
        self._never_literals = never_literals

    def test(self, expression: Expression) -> Test:
        """The effective boolean value of an expression."""
        match expression:
            case Operation("&&" | "||" as operator, (left, right)):
                return _combined(operator, self.test(left), self.test(right), _may_ask(right))
            case Operation("!", (operand,)):
                return _not(self.test(operand))
            case Operation("IN" | "NOT IN" as operator, (first, *listed)) if listed:
                tests = [self._comparison("=", first, other) for other in listed]
                found = reduce(lambda left, right: _combined("||", left, right, True), tests)
                return _not(found) if operator == "NOT IN" else found
            case Operation(operator, (left, right)) if operator in OUTCOMES:
                return self._comparison(operator, left, right)
            case FunctionCall("BOUND", (VariableReference(variable),)):
                return self._bound(variable)
            case FunctionCall(str() as name, (VariableReference(variable),)) if name in KIND_TESTS:
                return self._kind(KIND_TESTS[name], self.source(VariableReference(variable)))
            case FunctionCall("SAMETERM", (left, right)) if _is_term(left) and _is_term(right):
                return _sameness(self.source(left), self.source(right), TRUE, FALSE)
            case Operation("+" | "-" | "*" | "/" | "unary -", _) | FunctionCall("IF" | "COALESCE", _):
                return self._truth_of(self.source(expression))
            case FunctionCall(str() as name, (_,)) if name in ROUNDING:
                return self._truth_of(self.source(expression))
        return self._asked_test(expression)

    def source(self, expression: Expression) -> Source:
        """The values of an expression."""
        match expression:
            case VariableReference(variable):
                column = self._columns.get(variable.value)
                return _unbound if column is None else lambda rows: (rows, column, 1)
            case Constant(value):
                vocabulary = self._vocabulary
                # Asked for at each batch: the vocabulary may have been swept.
                return lambda _: (np.array([[vocabulary.id_of(value)]], dtype=np.int64), 0, 0)
            case Operation(operator, operands) if operator in ARITHMETIC:
                meant = Operation(operator, _NAMES[: len(operands)])
                return self._arithmetic(ARITHMETIC[operator], meant, operands)
            case FunctionCall(str() as name, (operand,)) if name in ROUNDING:
                return self._arithmetic(ROUNDING[name], FunctionCall(name, _NAMES[:1]), (operand,))
            case FunctionCall("IF", (condition, then, otherwise)):
                return _choice(self.test(condition), self.source(then), self.source(otherwise))
            case FunctionCall("COALESCE", arguments):
                nothing: Source = _unbound
                return reduce(_first_bound, map(self.source, arguments), nothing)
            case Operation("unary +" | "IN" | "NOT IN", (_,)):
                return self._asked_source(expression)
            case Operation() | FunctionCall("BOUND" | "SAMETERM", _):
                test = self.test(expression)
                return lambda rows: (truths_as_ids(test(rows)).reshape(-1, 1), 0, 1)
        return self._asked_source(expression)

    def _bound(self, variable: Variable) -> Test:
        column = self._columns.get(variable.value)
        if column is None:
            return lambda rows: np.full(rows.shape[0], FALSE, dtype=np.uint8)
        return lambda rows: (rows[:, column] != UNBOUND).view(np.uint8) * np.uint8(TRUE)

    def _kind(self, kind: Kind, source: Source) -> Test:
        return lambda rows: test_kind(_spread(source(rows), rows.shape[0]), kind, self._vocabulary)

    def _asked(self, expression: Expression) -> tuple[PyoxigraphExpression, list[int]]:
        names = sorted(v.value for v in mentioned(expression) if v.value in self._columns)
        asked = PyoxigraphExpression(expression, [Variable(name) for name in names], self._vocabulary, self._base)
        return asked, [self._columns[name] for name in names]

    def _asked_test(self, expression: Expression) -> Test:
        asked, columns = self._asked(boolean_value_of(expression))
        return lambda rows: asked.compute_truths([rows[:, c] for c in columns], rows.shape[0])

    def _asked_source(self, expression: Expression) -> Source:
        asked, columns = self._asked(expression)
        return lambda rows: (asked.compute_ids([rows[:, c] for c in columns], rows.shape[0]).reshape(-1, 1), 0, 1)

    def _truth_of(self, source: Source) -> Test:
        """The effective boolean value of values that are computed here."""
        asked = PyoxigraphExpression(boolean_value_of(VariableReference(_LEFT)), [_LEFT], self._vocabulary, None)

        def test(rows: Ints) -> Truths:
            size = rows.shape[0]
            return asked.compute_truths([_spread(source(rows), size)], size)

        return test

    def _operand(self, expression: Expression) -> Source:
        """The values of an operand of which the value counts: a constant is read in its inline form."""
        if isinstance(expression, Constant) and isinstance(expression.value, Literal):
            number = value_id(expression.value)
            if number < 0:
                table = np.array([[number]], dtype=np.int64)
                return lambda _: (table, 0, 0)
        return self.source(expression)

    def _comparison(self, operator: str, left: Expression, right: Expression) -> Test:
        if isinstance(left, Constant) and not isinstance(right, Constant):
            left, right, operator = right, left, _MIRRORED[operator]
        if operator in ("=", "!=") and (self._is_resource(left) or self._is_resource(right)):
            # An IRI or a blank node equals nothing but itself, whatever it is compared with.
            outcome = (TRUE, FALSE) if operator == "=" else (FALSE, TRUE)
            return _sameness(self.source(left), self.source(right), *outcome)
        if isinstance(right, Constant) and isinstance(right.value, Literal):
            tables = comparison_tables(operator, right.value)
            if tables is not None:
                return self._with_constant(operator, self.source(left), right.value, tables)
        return self._of_two(operator, self._operand(left), self._operand(right))

    def _is_resource(self, expression: Expression) -> bool:
        """Whether an expression has no literals among its values."""
        match expression:
            case VariableReference(variable):
                return variable.value in self._never_literals
            case Constant(value):
                return isinstance(value, NamedNode)
        return False

    def _with_constant(self, operator: str, source: Source, constant: Literal, tables: ComparisonTables) -> Test:
        operation = Operation(operator, (VariableReference(_LEFT), Constant(constant)))
        asked = PyoxigraphExpression(boolean_value_of(operation), [_LEFT], self._vocabulary, None)
        number = np.array([[value_id(constant)]], dtype=np.int64)
        outcomes, resources = OUTCOMES[operator], self._resources
        # To have its machine code.
        compare(number, 0, 1, number, 0, 0, outcomes, resources.members, empty_truths(1))

        def test(rows: Ints) -> Truths:
            table, column, step = source(rows)
            truths = empty_truths(rows.shape[0])
            if step == 0:
                table, column = _spread((table, column, step), rows.shape[0]).reshape(-1, 1), 0
            if compare_with_table(table, column, *tables, truths):
                open_rows = np.flatnonzero(truths == UNDECIDED)
                values = table[open_rows, column]
                # Quotients have no place in the tables.
                again = empty_truths(open_rows.shape[0])
                if compare(values.reshape(-1, 1), 0, 1, number, 0, 0, outcomes, resources.members, again):
                    left_over = again == UNDECIDED
                    again[left_over] = asked.compute_truths([values[left_over]], int(np.count_nonzero(left_over)))
                truths[open_rows] = again
            return truths

        return test

    def _of_two(self, operator: str, left: Source, right: Source) -> Test:
        operation = Operation(operator, (VariableReference(_LEFT), VariableReference(_RIGHT)))
        asked = PyoxigraphExpression(boolean_value_of(operation), [_LEFT, _RIGHT], self._vocabulary, None)
        outcomes, resources = OUTCOMES[operator], self._resources
        is_equality = operator in ("=", "!=")

        def test(rows: Ints) -> Truths:
            truths = empty_truths(rows.shape[0])
            first, second = left(rows), right(rows)
            if not compare(*first, *second, outcomes, resources.members, truths):
                return truths
            open_rows = np.flatnonzero(truths == UNDECIDED)
            a, b = _taken(first, open_rows), _taken(second, open_rows)
            if is_equality and resources.learn(a, b):
                again = empty_truths(open_rows.shape[0])
                compare(a.reshape(-1, 1), 0, 1, b.reshape(-1, 1), 0, 1, outcomes, resources.members, again)
                truths[open_rows] = again
                left_over = again == UNDECIDED
                open_rows, a, b = open_rows[left_over], a[left_over], b[left_over]
            truths[open_rows] = asked.compute_truths([a, b], open_rows.shape[0])
            return truths

        return test

    def _arithmetic(self, code: int, meant: Expression, operands: Sequence[Expression]) -> Source:
        """What is computed from one or two operands; `meant` says it for the rows that must be asked for."""
        sources = [self._operand(operand) for operand in operands]
        asked = PyoxigraphExpression(meant, [_LEFT, _RIGHT][: len(sources)], self._vocabulary, None)

        def source(rows: Ints) -> Column:
            ids = np.empty((rows.shape[0], 1), dtype=np.int64)
            columns = [of_operand(rows) for of_operand in sources]
            flat = ids[:, 0]
            if calculate(code, *columns[0], *columns[-1], flat):
                open_rows = np.flatnonzero(flat == NO_ID)
                flat[open_rows] = asked.compute_ids(
                    [_taken(column, open_rows) for column in columns], open_rows.shape[0]
                )
            return ids, 0, 1

        return source


def _is_term(expression: Expression) -> bool:
    return isinstance(expression, VariableReference | Constant)


_NOTHING: Ints = np.full((1, 1), UNBOUND, dtype=np.int64)


def _unbound(_: Ints) -> Column:
    return _NOTHING, 0, 0


def _spread(column: Column, size: int) -> Ints:
    """The values of a column, one per row."""
    table, place, step = column
    return table[:, place] if step else np.full(size, table[0, place], dtype=np.int64)


def _taken(column: Column, chosen: Ints) -> Ints:
    table, place, step = column
    return table[chosen, place] if step else np.full(chosen.shape[0], table[0, place], dtype=np.int64)


def _sameness(left: Source, right: Source, if_same: int, otherwise: int) -> Test:
    def test(rows: Ints) -> Truths:
        truths = empty_truths(rows.shape[0])
        compare_terms(*left(rows), *right(rows), if_same, otherwise, truths)
        return truths

    return test


def _not(inner: Test) -> Test:
    return lambda rows: np.uint8(TRUE) - inner(rows)


def _combined(operator: str, left: Test, right: Test, careful: bool) -> Test:
    """`&&` or `||`. Where the left side settles it, the right one is not asked, if that is worth a copy of the rows."""
    settled, combine = (FALSE, np.minimum) if operator == "&&" else (TRUE, np.maximum)

    def test(rows: Ints) -> Truths:
        truths = left(rows)
        size = rows.shape[0]
        if size == 1:
            return truths if truths[0] == settled else combine(truths, right(rows))
        is_open = truths != settled
        count = np.count_nonzero(is_open)
        if count == size or (4 * count > size and not careful):
            combine(truths, right(rows), out=truths)
        elif count:
            truths[is_open] = combine(truths[is_open], right(rows[is_open]))
        return truths

    return test


def _may_ask(expression: Expression) -> bool:
    """Whether an expression calls a function that ids alone cannot evaluate."""
    calls = (part.name for part in sub_expressions(expression) if isinstance(part, FunctionCall))
    return any(name not in ROUNDING and name not in ("BOUND", "SAMETERM", "IF", "COALESCE") for name in calls)


def _choice(condition: Test, then: Source, otherwise: Source) -> Source:
    """IF: an error in the condition is an error."""

    def source(rows: Ints) -> Column:
        truths = condition(rows)
        values = np.full((rows.shape[0], 1), UNBOUND, dtype=np.int64)
        for truth, branch in ((TRUE, then), (FALSE, otherwise)):
            chosen = truths == truth
            part = rows[chosen]
            if part.shape[0]:
                values[chosen, 0] = _spread(branch(part), part.shape[0])
        return values, 0, 1

    return source


def _first_bound(left: Source, right: Source) -> Source:
    """COALESCE: the right values where the left ones are errors."""

    def source(rows: Ints) -> Column:
        values = _spread(left(rows), rows.shape[0]).copy()
        missing = values == UNBOUND
        part = rows[missing]
        if part.shape[0]:
            values[missing] = _spread(right(part), part.shape[0])
        return values.reshape(-1, 1), 0, 1

    return source
