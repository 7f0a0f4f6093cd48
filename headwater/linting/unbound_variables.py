"""Variables that are never bound: misspelt, or bound in another group than the one that uses them.

SELECT ?speeed WHERE { ?car :speed ?speed }              no pattern has ?speeed: it is empty in each answer
{ ?car :speed ?speed } { FILTER (?speed > 50) }          the FILTER sees its own group alone, and is never true
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from difflib import get_close_matches

from headwater.algebra.nodes import (
    Aggregation,
    ExistsPlan,
    Extend,
    Filter,
    Group,
    LeftJoin,
    Node,
    OrderBy,
    Project,
    Service,
)
from headwater.algebra.plan import QueryKind
from headwater.algebra.scope import all_variables, sub_expressions, visible_variables
from headwater.language.expressions import Expression, Timestamp, VariableReference
from headwater.linting.lint_subject import LintSubject
from headwater.terms.model import Variable

_Use = tuple[str, Variable]
"""The clause that uses a variable which is never bound, and the variable."""


def find_unbound_variables(subject: LintSubject) -> Iterator[str]:
    """Variables that answers, groups, orders and expressions use and nothing binds."""
    plan = subject.plan
    uses = dict.fromkeys(_unbound_uses(plan.root, frozenset()))
    if plan.kind is QueryKind.CONSTRUCT:
        bound = frozenset(visible_variables(plan.root))
        for triple in plan.template:
            for term in (triple.subject, triple.predicate, triple.object):
                if isinstance(term, Variable) and term not in bound:
                    uses["CONSTRUCT", term] = None
    by_variable: dict[Variable, list[str]] = {}
    for clause, variable in uses:
        if not subject.notation.is_invented(variable):
            by_variable.setdefault(variable, []).append(clause)
    for variable, clauses in by_variable.items():
        yield (
            f"?{variable.value} is never bound where {' and '.join(dict.fromkeys(clauses))} uses it"
            f"{_suggestion(variable, plan.root)}: check how it is written, and in which group of braces it is bound"
        )


def _unbound_uses(node: Node, outer: frozenset[Variable]) -> Iterator[_Use]:
    """The uses below a node; `outer` are the variables that an EXISTS around it brings in."""
    if isinstance(node, Service):
        return
    for clause, expressions, inputs in _uses_of(node):
        bound = outer.union(*map(visible_variables, inputs))
        for expression in expressions:
            for part in sub_expressions(expression):
                if isinstance(part, VariableReference | Timestamp) and part.variable not in bound:
                    yield clause, part.variable
                if isinstance(part, ExistsPlan):
                    yield from _unbound_uses(part.plan, bound)
    for clause, variables in _names_of(node):
        bound = outer.union(visible_variables(node.children[0]))
        yield from ((clause, variable) for variable in variables if variable not in bound)
    for child in node.children:
        yield from _unbound_uses(child, outer)


def _uses_of(node: Node) -> Iterator[tuple[str, Iterable[Expression], tuple[Node, ...]]]:
    """The expressions of a node by clause, with the nodes whose variables they see."""
    match node:
        case Filter(inner, condition):
            yield "HAVING" if isinstance(inner, Group) else "FILTER", [condition], (inner,)
        case LeftJoin(left, right, condition):
            if condition is not None:
                yield "FILTER", [condition], (left, right)
        case Extend(inner, _, expression):
            yield "an expression", [expression], (inner,)
        case OrderBy(inner, keys):
            yield "ORDER BY", [expression for expression, _ in keys], (inner,)
        case Group(inner, keys, aggregates):
            yield "GROUP BY", [expression for _, expression in keys if expression is not None], (inner,)
            yield "an aggregate", [aggregate for _, aggregate in aggregates], (inner,)
        case Aggregation(inner, clauses, conditions):
            yield "AGGREGATE", [aggregate for _, aggregate, _ in clauses], (inner,)
            yield "the FILTER of AGGREGATE", conditions, (node,)


def _names_of(node: Node) -> Iterator[tuple[str, Iterable[Variable]]]:
    """The variables of its input that a node names, by clause."""
    match node:
        case Project(_, variables):
            yield "SELECT", variables
        case Group(_, keys, _):
            yield "GROUP BY", [variable for variable, expression in keys if expression is None]
        case Aggregation(_, clauses, _):
            named = {variable for variable, _, _ in clauses}
            yield "AGGREGATE", [variable for _, _, keys in clauses for variable in keys if variable not in named]


def _suggestion(variable: Variable, root: Node) -> str:
    """The variable of the query that is most like one, in words; empty where none is."""
    others = {one.value.casefold(): one.value for one in all_variables(root) if one != variable}
    found = get_close_matches(variable.value.casefold(), others, 1, 0.75)
    return f" (?{others[found[0]]} is)" if found else ""
