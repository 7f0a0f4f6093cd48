"""A whole query: its form, dataset, pattern, modifiers and, where it is continuous, its registration."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from headwater.language.expressions import Expression
from headwater.language.patterns import GroupPattern, InlineData, TriplePattern
from headwater.language.stream_clauses import (
    AggregateClause,
    Dialect,
    FromGraph,
    FromStream,
    FromWindow,
    Registration,
    StreamOperator,
)
from headwater.terms.model import NamedNode, Variable


@dataclass(frozen=True, slots=True)
class Projection:
    """One item of SELECT: a variable, or `(expression AS ?variable)`."""

    variable: Variable
    expression: Expression | None = None
    at: int = field(default=0, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class GroupKey:
    """One item of GROUP BY: an expression, with the variable of `(expression AS ?v)` where given."""

    expression: Expression
    variable: Variable | None = None
    at: int = field(default=0, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class OrderKey:
    """One item of ORDER BY."""

    expression: Expression
    descending: bool = False


@dataclass(frozen=True, slots=True)
class Modifiers:
    """GROUP BY, HAVING, ORDER BY, LIMIT, OFFSET in the order in which they apply."""

    group_by: tuple[GroupKey, ...] = ()
    having: tuple[Expression, ...] = ()
    order_by: tuple[OrderKey, ...] = ()
    limit: int | None = None
    offset: int = 0


@dataclass(frozen=True, slots=True)
class SelectQuery:
    """The part that SELECT queries and sub-queries share; `projections` is None for `SELECT *`."""

    projections: tuple[Projection, ...] | None
    where: GroupPattern
    modifiers: Modifiers = Modifiers()
    distinct: bool = False
    reduced: bool = False
    values: InlineData | None = None
    at: int = field(default=0, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class ConstructQuery:
    """`CONSTRUCT {template} WHERE {…}`; blank nodes of the template are new in every solution."""

    template: tuple[TriplePattern, ...]
    where: GroupPattern
    modifiers: Modifiers = Modifiers()
    values: InlineData | None = None


@dataclass(frozen=True, slots=True)
class DescribeQuery:
    """`DESCRIBE term… [WHERE {…}]`; `terms` is None for `DESCRIBE *`, `where` is None where left out."""

    terms: tuple[NamedNode | Variable, ...] | None
    where: GroupPattern | None
    modifiers: Modifiers = Modifiers()
    values: InlineData | None = None


@dataclass(frozen=True, slots=True)
class AskQuery:
    """`ASK {…}`."""

    where: GroupPattern
    modifiers: Modifiers = Modifiers()
    values: InlineData | None = None


QueryForm: TypeAlias = SelectQuery | ConstructQuery | DescribeQuery | AskQuery
DatasetClause: TypeAlias = FromGraph | FromStream | FromWindow


@dataclass(frozen=True, slots=True)
class ParsedQuery:
    """A parsed query of any dialect.

    `stream_operator` is the one written in the text, None where the dialect's default applies.
    `prefixes` and `base` are kept for display. `text` is the source, for messages.
    """

    form: QueryForm
    dataset: tuple[DatasetClause, ...] = ()
    aggregates: tuple[AggregateClause, ...] = ()
    registration: Registration | None = None
    stream_operator: StreamOperator | None = None
    dialect: Dialect = Dialect.RSPQL
    base: str | None = None
    prefixes: tuple[tuple[str, str], ...] = ()
    text: str = field(default="", compare=False, repr=False)
