"""The types of a query's columns, as far as its algebra knows them before any data is seen.

A count is an integer whatever is counted, a comparison is a boolean, a cast has its type. A variable that only patterns
bind may be anything: its type is None. A type is given only if every value that the query can bind has it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum

from headwater.algebra.nodes import (
    Aggregation,
    Bgp,
    ExistsPlan,
    Extend,
    Graph,
    Group,
    Join,
    LeftJoin,
    Minus,
    Node,
    PathMatch,
    Project,
    Service,
    Union,
    Values,
    Window,
)
from headwater.algebra.plan import QueryKind, QueryPlan
from headwater.algebra.scope import certain_variables
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
from headwater.terms.model import XSD, Literal, NamedNode, Variable


class ColumnType(StrEnum):
    """What a column of answers holds; `string` are IRIs, blank nodes and the texts of literals."""

    INTEGER = "integer"
    DOUBLE = "double"
    BOOLEAN = "boolean"
    TIMESTAMP = "timestamp"
    STRING = "string"


Types = Mapping[Variable, ColumnType | None]

_INTEGERS = ("integer", "int", "long", "short", "byte", "nonNegativeInteger", "positiveInteger", "nonPositiveInteger")
_MORE_INTEGERS = ("negativeInteger", "unsignedLong", "unsignedInt", "unsignedShort", "unsignedByte")
_BY_DATATYPE: dict[str, ColumnType] = {
    **{XSD + name: ColumnType.INTEGER for name in (*_INTEGERS, *_MORE_INTEGERS)},
    **{XSD + name: ColumnType.DOUBLE for name in ("decimal", "double", "float")},
    XSD + "boolean": ColumnType.BOOLEAN,
    XSD + "dateTime": ColumnType.TIMESTAMP,
    XSD + "string": ColumnType.STRING,
}
_BOOLEAN_OPERATORS = {"||", "&&", "=", "!=", "<", ">", "<=", ">=", "!", "IN", "NOT IN"}
_BOOLEAN_FUNCTIONS = (
    *("BOUND", "SAMETERM", "ISIRI", "ISURI", "ISBLANK", "ISLITERAL", "ISNUMERIC"),
    *("REGEX", "CONTAINS", "STRSTARTS", "STRENDS", "LANGMATCHES"),
)
_STRING_FUNCTIONS = (
    *("STR", "LANG", "DATATYPE", "IRI", "URI", "BNODE", "UUID", "STRUUID", "CONCAT", "SUBSTR", "UCASE", "LCASE"),
    *("ENCODE_FOR_URI", "REPLACE", "STRBEFORE", "STRAFTER", "STRLANG", "TZ", "TIMEZONE"),
    *("MD5", "SHA1", "SHA256", "SHA384", "SHA512"),
)
_BY_FUNCTION: dict[str, ColumnType] = {
    **dict.fromkeys(("STRLEN", "YEAR", "MONTH", "DAY", "HOURS", "MINUTES"), ColumnType.INTEGER),
    **dict.fromkeys(("SECONDS", "RAND"), ColumnType.DOUBLE),
    **dict.fromkeys(_BOOLEAN_FUNCTIONS, ColumnType.BOOLEAN),
    **dict.fromkeys(_STRING_FUNCTIONS, ColumnType.STRING),
    "NOW": ColumnType.TIMESTAMP,
}
_ROUNDING = {"ABS", "CEIL", "FLOOR", "ROUND"}
_NUMBERS = (ColumnType.INTEGER, ColumnType.DOUBLE)


def column_types(plan: QueryPlan) -> tuple[ColumnType | None, ...]:
    """The type of each column of the answers of a query; None where any term may stand in it."""
    if plan.kind is QueryKind.ASK:
        return (ColumnType.BOOLEAN,)
    if plan.kind is not QueryKind.SELECT:
        return (ColumnType.STRING,) * 3
    found = types_of(plan.root)
    return tuple(found.get(variable) for variable in plan.variables)


def types_of(node: Node) -> Types:
    """The types of the variables that a node can bind."""
    match node:
        case Bgp(triples):
            found: dict[Variable, ColumnType | None] = {}
            for triple in triples:
                if isinstance(triple.object, Variable):
                    found.setdefault(triple.object, None)
                for term in (triple.subject, triple.predicate):
                    if isinstance(term, Variable):
                        found[term] = ColumnType.STRING
            return found
        case PathMatch(subject, _, object_):
            # A path of length zero leads from a literal to itself.
            return {term: None for term in (subject, object_) if isinstance(term, Variable)}
        case Values(variables, rows):
            return {
                variable: _unite_all(_type_of_term(row[place]) for row in rows if row[place] is not None)
                for place, variable in enumerate(variables)
            }
        case Extend(inner, variable, expression):
            known = types_of(inner)
            return {**known, variable: type_of_expression(expression, known)}
        case Group(inner, keys, aggregates):
            known = types_of(inner)
            by_key = {
                variable: known.get(variable) if expression is None else type_of_expression(expression, known)
                for variable, expression in keys
            }
            return {**by_key, **{variable: _type_of_aggregate(one, known) for variable, one in aggregates}}
        case Aggregation(inner, clauses, _):
            known = types_of(inner)
            return {**known, **{variable: _type_of_aggregate(one, known) for variable, one, _ in clauses}}
        case Project(inner, variables):
            known = types_of(inner)
            return {variable: known[variable] for variable in variables if variable in known}
        case Join(left, right):
            return _join_types(left, right, is_required=True)
        case LeftJoin(left, right):
            return _join_types(left, right, is_required=False)
        case Union(left, right):
            one, other = types_of(left), types_of(right)
            return {**one, **other, **{v: _unite(one[v], other[v]) for v in one.keys() & other.keys()}}
        case Minus(left, _):
            return types_of(left)
        case Graph(name, inner) | Window(_, name, inner):
            named = {name: ColumnType.STRING} if isinstance(name, Variable) else {}
            return {**types_of(inner), **named}
        case Service(endpoint, inner):
            # What an endpoint answers is not known.
            named = {endpoint: ColumnType.STRING} if isinstance(endpoint, Variable) else {}
            return {**dict.fromkeys(types_of(inner)), **named}
    found = {}
    for child in node.children:
        found.update(types_of(child))
    return found


def _join_types(left: Node, right: Node, *, is_required: bool) -> Types:
    """The types behind a join. Solutions agree on what both bind, so what a side knows holds if it binds always."""
    one, other = types_of(left), types_of(right)
    by_left = certain_variables(left)
    by_right = certain_variables(right) if is_required else frozenset()
    found = {**one, **other}
    for variable in one.keys() & other.keys():
        known = (one[variable] if variable in by_left else None) or (other[variable] if variable in by_right else None)
        found[variable] = known or _unite(one[variable], other[variable])
    return found


def type_of_expression(expression: Expression, known: Types) -> ColumnType | None:
    """The type of an expression over variables of known types, wherever it is no error."""
    match expression:
        case Constant(value):
            return _type_of_term(value)
        case VariableReference(variable):
            return known.get(variable)
        case Exists() | ExistsPlan():
            return ColumnType.BOOLEAN
        case Timestamp():
            return ColumnType.TIMESTAMP
        case Aggregate():
            return _type_of_aggregate(expression, known)
        case Operation(operator, operands):
            if operator in _BOOLEAN_OPERATORS:
                return ColumnType.BOOLEAN
            return _type_of_arithmetic(operator, [type_of_expression(one, known) for one in operands])
        case FunctionCall(name, arguments):
            return _type_of_call(name, [type_of_expression(one, known) for one in arguments])
    return None


def _type_of_arithmetic(operator: str, operands: list[ColumnType | None]) -> ColumnType | None:
    """The type of a computed number; sums and differences of what is not known may be times."""
    if operator == "/":
        return ColumnType.DOUBLE
    if all(one is ColumnType.INTEGER for one in operands):
        return ColumnType.INTEGER
    return ColumnType.DOUBLE if operator == "*" or any(one in _NUMBERS for one in operands) else None


def _type_of_call(name: str | NamedNode, arguments: list[ColumnType | None]) -> ColumnType | None:
    if isinstance(name, NamedNode):
        return _BY_DATATYPE.get(name.value)
    if name in ("IF", "COALESCE"):
        return _unite_all(arguments[1:] if name == "IF" else arguments)
    if name in _ROUNDING:
        return ColumnType.INTEGER if arguments == [ColumnType.INTEGER] else ColumnType.DOUBLE
    return _BY_FUNCTION.get(name)


def _type_of_aggregate(aggregate: Aggregate, known: Types) -> ColumnType | None:
    argument = None if aggregate.argument is None else type_of_expression(aggregate.argument, known)
    match aggregate.function:
        case "COUNT":
            return ColumnType.INTEGER
        case "SUM":
            return ColumnType.INTEGER if argument is ColumnType.INTEGER else ColumnType.DOUBLE
        case "AVG":
            return ColumnType.DOUBLE
        case "GROUP_CONCAT":
            return ColumnType.STRING
        case "MIN" | "MAX" | "SAMPLE":
            return argument
    return None


def _type_of_term(term: object) -> ColumnType | None:
    if isinstance(term, Literal):
        return ColumnType.STRING if term.language else _BY_DATATYPE.get(term.datatype.value)
    return ColumnType.STRING


def _unite(one: ColumnType | None, other: ColumnType | None) -> ColumnType | None:
    """The type of a column that holds both; None where there is no such type but text."""
    if one == other:
        return one
    return ColumnType.DOUBLE if one in _NUMBERS and other in _NUMBERS else None


def _unite_all(types: Iterable[ColumnType | None]) -> ColumnType | None:
    listed = list(types)
    found = listed[0] if listed else None
    for one in listed[1:]:
        found = _unite(found, one)
    return found
