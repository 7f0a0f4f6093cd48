"""Variables that a plan node can bind or always binds, and traversals of plans and expressions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

from headwater.algebra.nodes import (
    Aggregation,
    Bgp,
    ExistsPlan,
    Extend,
    Graph,
    Group,
    LeftJoin,
    Minus,
    Node,
    PathMatch,
    Project,
    QuadPattern,
    Service,
    Union,
    Unit,
    Values,
    Window,
    WindowGraph,
    field_names,
)
from headwater.language.expressions import (
    Expression,
    Operation,
    Timestamp,
    VariableReference,
)
from headwater.terms.model import Variable


def _unique(variables: Iterable[Variable]) -> tuple[Variable, ...]:
    return tuple(dict.fromkeys(variables))


def _of_terms(*terms: object) -> Iterator[Variable]:
    return (term for term in terms if isinstance(term, Variable))


def visible_variables(node: Node) -> tuple[Variable, ...]:
    """The variables in scope after the node, in the order of their first appearance (SPARQL 18.2.1)."""
    match node:
        case Bgp(triples):
            return _unique(v for t in triples for v in _of_terms(t.subject, t.predicate, t.object))
        case QuadPattern(name, triples):
            return _unique([*_of_terms(name), *visible_variables(Bgp(triples))])
        case PathMatch(subject, _, object_):
            return _unique(_of_terms(subject, object_))
        case Values(variables, _):
            return variables
        case Project(_, variables):
            return variables
        case Group(_, keys, aggregates):
            return _unique([*(v for v, _ in keys), *(v for v, _ in aggregates)])
        case Extend(inner, variable, _):
            return _unique([*visible_variables(inner), variable])
        case Aggregation(inner, clauses, _):
            return _unique([*visible_variables(inner), *(v for v, _, _ in clauses)])
        case Minus(left, _):
            return visible_variables(left)
        case Graph(name, inner) | WindowGraph(name, inner):
            return _unique([*_of_terms(name), *visible_variables(inner)])
        case Window(_, name, inner):
            return _unique([*_of_terms(name), *visible_variables(inner)])
        case Service(endpoint, inner, _):
            return _unique([*_of_terms(endpoint), *visible_variables(inner)])
        case Unit():
            return ()
    return _unique(v for child in node.children for v in visible_variables(child))


def certain_variables(node: Node) -> frozenset[Variable]:
    """The variables bound in every solution of the node."""
    match node:
        case Bgp() | PathMatch() | QuadPattern():
            return frozenset(visible_variables(node))
        case Values(variables, rows):
            bound = (i for i in range(len(variables)) if all(row[i] is not None for row in rows))
            return frozenset(variables[i] for i in bound)
        case Project(inner, variables):
            return certain_variables(inner) & frozenset(variables)
        case Group(inner, keys, _):
            return frozenset(v for v, e in keys if e is None) & certain_variables(inner)
        case Union(left, right):
            return certain_variables(left) & certain_variables(right)
        case LeftJoin(left, _, _) | Minus(left, _):
            return certain_variables(left)
        case Graph(name, inner) | WindowGraph(name, inner) | Window(_, name, inner):
            return certain_variables(inner) | frozenset(_of_terms(name))
        case Service(_, inner, silent):
            return frozenset() if silent else certain_variables(inner)
        case Unit():
            return frozenset()
    return frozenset(v for child in node.children for v in certain_variables(child))


def map_expression(expression: Expression, change: Callable[[Expression], Expression | None]) -> Expression:
    """The expression with every part for which `change` gives an expression replaced by it, from the top down."""
    changed = change(expression)
    if changed is not None:
        return changed
    changes: dict[str, Any] = {}
    for name in field_names(type(expression)):
        value = getattr(expression, name)
        if isinstance(value, Expression):
            changes[name] = map_expression(value, change)
        elif isinstance(value, tuple) and any(isinstance(part, Expression) for part in value):
            changes[name] = tuple(
                map_expression(part, change) if isinstance(part, Expression) else part for part in value
            )
    return replace(expression, **changes) if changes else expression


def sub_expressions(expression: Expression) -> Iterator[Expression]:
    """The expression and all its parts, parents first; the patterns of EXISTS are not entered."""
    waiting = [expression]
    while waiting:
        part = waiting.pop()
        yield part
        inner: list[Expression] = []
        for name in field_names(type(part)):
            value = getattr(part, name)
            inner.extend(
                one for one in (value if isinstance(value, tuple) else (value,)) if isinstance(one, Expression)
            )
        waiting.extend(reversed(inner))


def expression_variables(expression: Expression) -> frozenset[Variable]:
    """The variables an expression refers to, those inside EXISTS included."""
    variables: set[Variable] = set()
    for part in sub_expressions(expression):
        variables.update(_own_variables(part))
        if isinstance(part, ExistsPlan):
            variables.update(all_variables(part.plan))
    return frozenset(variables)


def _own_variables(part: Expression) -> Iterator[Variable]:
    """The variables in the fields of an expression, without those of its parts."""
    if isinstance(part, VariableReference | Timestamp):
        yield part.variable
    if isinstance(part, Timestamp) and isinstance(part.stream, Variable):
        yield part.stream


def expressions_of(node: Node) -> Iterator[Expression]:
    """The expressions that stand directly in a node."""
    for name in field_names(type(node)):
        yield from _expressions_in(getattr(node, name))


def _expressions_in(value: object) -> Iterator[Expression]:
    if isinstance(value, Expression):
        yield value
    elif isinstance(value, tuple):
        for part in value:
            yield from _expressions_in(part)


def nodes_of(plan: Node) -> Iterator[Node]:
    """All nodes of a plan, those inside EXISTS included, parents first."""
    waiting = [plan]
    while waiting:
        node = waiting.pop()
        yield node
        inner = [
            part.plan
            for expression in expressions_of(node)
            for part in sub_expressions(expression)
            if isinstance(part, ExistsPlan)
        ]
        inner.extend(node.children)
        waiting.extend(reversed(inner))


def all_variables(plan: Node) -> frozenset[Variable]:
    """Every variable that stands anywhere in the plan."""
    variables: set[Variable] = set()
    for node in nodes_of(plan):
        variables.update(visible_variables(node))
        for expression in expressions_of(node):
            for part in sub_expressions(expression):
                variables.update(_own_variables(part))
    return frozenset(variables)


def map_expressions(node: Node, change: Callable[[Expression], Expression]) -> Node:
    """The node with `change` applied to each expression that stands directly in it."""

    def renew(value: object) -> object:
        if isinstance(value, Expression):
            return change(value)
        if isinstance(value, tuple):
            return tuple(renew(part) for part in value)
        return value

    changes: dict[str, Any] = {}
    for name in field_names(type(node)):
        value = getattr(node, name)
        if any(True for _ in _expressions_in(value)):
            changes[name] = renew(value)
    return replace(node, **changes) if changes else node


def map_plan(plan: Node, change: Callable[[Node], Node]) -> Node:
    """The plan rebuilt from the leaves up, `change` applied to each node, those inside EXISTS included."""

    def inside(expression: Expression) -> Expression | None:
        if isinstance(expression, ExistsPlan):
            return replace(expression, plan=map_plan(expression.plan, change))
        return None

    renewed = plan.with_children(*(map_plan(child, change) for child in plan.children))
    return change(map_expressions(renewed, lambda e: map_expression(e, inside)))


def rename_variables(part: Any, names: Mapping[Variable, Variable]) -> Any:
    """A plan, or any part of one, with some variables renamed."""
    if isinstance(part, Variable):
        return names.get(part, part)
    if isinstance(part, tuple):
        return tuple(rename_variables(one, names) for one in part)
    if is_dataclass(part) and not isinstance(part, type):
        return replace(
            part, **{field.name: rename_variables(getattr(part, field.name), names) for field in fields(part)}
        )
    return part


def conjuncts_of(condition: Expression) -> list[Expression]:
    """The operands of nested conjunctions; the condition itself if it is none."""
    if isinstance(condition, Operation) and condition.operator == "&&":
        return [part for operand in condition.operands for part in conjuncts_of(operand)]
    return [condition]
