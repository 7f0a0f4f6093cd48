"""Expressions of SPARQL 1.1 (section 17), shared by the syntax tree and the algebra."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from headwater.terms.model import Literal, NamedNode, Variable

if TYPE_CHECKING:
    from headwater.language.patterns import GroupPattern


@dataclass(frozen=True, slots=True)
class Expression:
    """Anything that can be evaluated on one solution."""


@dataclass(frozen=True, slots=True)
class Constant(Expression):
    """An RDF term written in the query."""

    value: NamedNode | Literal


@dataclass(frozen=True, slots=True)
class VariableReference(Expression):
    """The value of a variable; an error where it is unbound."""

    variable: Variable


@dataclass(frozen=True, slots=True)
class Operation(Expression):
    """An operator applied to its operands.

    `operator` is one of `||`, `&&`, `=`, `!=`, `<`, `>`, `<=`, `>=`, `+`, `-`, `*`, `/` (two operands),
    `!`, `unary -`, `unary +` (one operand), `IN`, `NOT IN` (first operand, then the list).
    """

    operator: str
    operands: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class FunctionCall(Expression):
    """A built-in (`name` in upper case, e.g. `STRLEN`, `IF`, `BOUND`) or a call by IRI (`name` a NamedNode)."""

    name: str | NamedNode
    arguments: tuple[Expression, ...]
    distinct: bool = False
    at: int = field(default=0, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Exists(Expression):
    """`EXISTS {…}` or, negated, `NOT EXISTS {…}`."""

    pattern: GroupPattern
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Aggregate(Expression):
    """A SPARQL 1.1 aggregate: COUNT, SUM, AVG, MIN, MAX, SAMPLE or GROUP_CONCAT.

    `argument` is None for `COUNT(*)`; `separator` belongs to GROUP_CONCAT. Plans know PARTIAL_SUM, too.
    """

    function: str
    argument: Expression | None
    distinct: bool = False
    separator: str | None = None
    at: int = field(default=0, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Timestamp(Expression):
    """C-SPARQL's `timestamp(?v)` and `timestamp(?v, <stream>)` (CS6).

    The highest timestamp among the stream triples that bound the variable; an error where none did.
    """

    variable: Variable
    stream: NamedNode | Variable | None = None
    at: int = field(default=0, compare=False, repr=False)


LONG_CHAIN = 32
"""Chains with more links are balanced; shorter ones are grouped from the left, as they are written."""

_Part = TypeVar("_Part")


def combine_chain(combine: Callable[[_Part, _Part], _Part], parts: Sequence[_Part]) -> _Part:
    """All parts combined in their order by an associative operator, such as `&&`, UNION or `/`; there is one at least.

    Grouped from the left, a chain of ten thousand links is a tree of ten thousand levels, too deep to be walked by
    recursion. So a long one becomes a balanced tree, which means the same and has fourteen.

    >>> combine_chain(lambda left, right: f"({left} {right})", "abcd")
    '(((a b) c) d)'
    """
    if len(parts) > LONG_CHAIN:
        return _combine_balanced(combine, parts)
    combined = parts[0]
    for part in parts[1:]:
        combined = combine(combined, part)
    return combined


def _combine_balanced(combine: Callable[[_Part, _Part], _Part], parts: Sequence[_Part]) -> _Part:
    if len(parts) == 1:
        return parts[0]
    middle = len(parts) // 2
    return combine(_combine_balanced(combine, parts[:middle]), _combine_balanced(combine, parts[middle:]))
