"""Queries that differ only in constants: the form that they share, and the constants of each (CQ9).

    ?person foaf:name "Ann" . FILTER(?age > 30)     →     ?person foaf:name ⟨0⟩ . FILTER(?age > ⟨1⟩)     "Ann", 30
    ?person foaf:name "Bob" . FILTER(?age > 18)     →     the same form                                  "Bob", 18

A constant is a subject or object of a triple pattern, a term in an expression or a cell of VALUES. What decides which
triples are looked at, and when, belongs to the form: windows, streams, graphs, predicates, property paths with their
ends (an empty path leads from a term to itself even where the term stands nowhere), LIMIT and the names of variables.
What happens to the rows afterwards does not matter: templates of CONSTRUCT may differ.

Of the queries with one form, the constants in which they agree stay constants. Those in which they differ become
*parameters* of the `Family`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, TypeAlias

from headwater.algebra.nodes import Bgp, ExistsPlan, Node, PathMatch, Values
from headwater.algebra.plan import QueryKind, QueryPlan, WindowSource
from headwater.algebra.scope import map_expression
from headwater.language.expressions import Constant, Expression
from headwater.language.patterns import TriplePattern
from headwater.terms.model import Literal, NamedNode, Variable

ConstantTerm: TypeAlias = NamedNode | Literal

_HOLE = "urn:headwater:constant:"


def placeholder(position: int) -> NamedNode:
    """The IRI that stands for the constant with this index in a form."""
    return NamedNode(f"{_HOLE}{position}")


@dataclass(frozen=True, slots=True)
class Form:
    """A query with its constants taken out; equal forms have constants at the same places.

    `root` has a `placeholder` for each constant. `context` is what else queries must agree in, such as their settings.
    """

    root: Node
    kind: QueryKind
    variables: tuple[Variable, ...]
    windows: tuple[WindowSource, ...]
    default_graphs: tuple[NamedNode, ...] | None
    named_graphs: tuple[NamedNode, ...] | None
    base: str | None
    context: Hashable = None


def form_of(plan: QueryPlan, context: Hashable = None) -> tuple[Form, tuple[ConstantTerm, ...]]:
    """The form of a query, and its constants in the order of their placeholders."""
    constants: list[ConstantTerm] = []

    def take_out(term: ConstantTerm) -> NamedNode:
        constants.append(term)
        return placeholder(len(constants) - 1)

    root = replace_constants(plan.root, take_out)
    form = Form(
        root, plan.kind, plan.variables, plan.windows, plan.default_graphs, plan.named_graphs, plan.base, context
    )
    return form, tuple(constants)


def replace_constants(plan: Node, change: Callable[[ConstantTerm], ConstantTerm]) -> Node:
    """The plan with each constant replaced by `change`, which is called in a fixed order."""

    def in_term(term: Any) -> Any:
        return change(term) if isinstance(term, NamedNode | Literal) else term

    def in_expression(part: Expression) -> Expression | None:
        match part:
            case Constant(value):
                return Constant(change(value))
            case ExistsPlan(inner, _):
                return replace(part, plan=replace_constants(inner, change))
        return None

    def renew(value: Any) -> Any:
        if isinstance(value, Node):
            return replace_constants(value, change)
        if isinstance(value, Expression):
            return map_expression(value, in_expression)
        if isinstance(value, tuple):
            return tuple(renew(part) for part in value)
        return value

    match plan:
        case Bgp(triples):
            return Bgp(tuple(TriplePattern(in_term(t.subject), t.predicate, in_term(t.object)) for t in triples))
        case Values(variables, rows):
            return Values(variables, tuple(tuple(in_term(cell) for cell in row) for row in rows))
        case PathMatch():
            return plan
    return replace(plan, **{field.name: renew(getattr(plan, field.name)) for field in fields(plan)})


@dataclass(frozen=True)
class Family:
    """A form with the constants that all members share; `parameters` are the indexes of the others."""

    form: Form
    fixed: tuple[ConstantTerm | None, ...]

    @property
    def parameters(self) -> tuple[int, ...]:
        return tuple(number for number, term in enumerate(self.fixed) if term is None)

    @classmethod
    def of(cls, form: Form, members: Iterable[Sequence[ConstantTerm]]) -> Family:
        """The family of queries with this form, given the constants of each."""
        columns = zip(*members, strict=True)
        return cls(form, tuple(column[0] if len(set(column)) == 1 else None for column in columns))

    def values(self, form: Form, constants: Sequence[ConstantTerm]) -> tuple[ConstantTerm, ...] | None:
        """The parameter values of a query; None if it is not a member."""
        if form != self.form:
            return None
        pairs = list(zip(self.fixed, constants, strict=True))
        if any(fixed is not None and fixed != constant for fixed, constant in pairs):
            return None
        return tuple(constant for fixed, constant in pairs if fixed is None)
