"""Joins without a common variable: each solution of one side is combined with each of the other.

    { ?gate :registers ?car . ?camera :monitors ?street }       5,000 gates and 5,000 cameras: 25,000,000 rows

A FILTER that compares both sides, or a BIND that uses both, connects them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from headwater.algebra.nodes import (
    Bgp,
    Distinct,
    Extend,
    Filter,
    Graph,
    Group,
    Join,
    LeftJoin,
    Node,
    OrderBy,
    PathMatch,
    Project,
    Service,
    Slice,
    Unit,
    Values,
    Window,
    WindowGraph,
)
from headwater.algebra.scope import expression_variables, visible_variables
from headwater.linting.lint_subject import LintSubject
from headwater.terms.model import Variable


@dataclass
class _Factors:
    """The parts of a join, each with its variables and a text, and the sets of variables that expressions connect."""

    parts: list[tuple[frozenset[Variable], str]] = field(default_factory=list)
    links: list[frozenset[Variable]] = field(default_factory=list)
    inside: list[Node] = field(default_factory=list)
    """Nodes with joins of their own: sub-queries, branches of UNION, the patterns of MINUS."""


def find_cartesian_products(subject: LintSubject) -> Iterator[str]:
    """Joins whose parts fall into groups that share no variable."""
    waiting = [subject.plan.root]
    while waiting:
        factors = _Factors()
        _collect(waiting.pop(), factors, subject)
        waiting.extend(factors.inside)
        groups = _connected_groups(factors)
        if len(groups) > 1:
            first, second, *_ = groups
            yield (
                f"{first} and {second} share no variable: each solution of the one is combined with each of the other "
                "(a product, which grows with both); connect them by a variable or a FILTER, or ask two queries"
            )


def _collect(node: Node, factors: _Factors, subject: LintSubject, names: frozenset[Variable] = frozenset()) -> None:
    """Take a node apart into the parts of one join; `names` are the variables of GRAPH and WINDOW around it."""
    notation = subject.notation
    match node:
        case Bgp(triples):
            for triple in triples:
                terms = (triple.subject, triple.predicate, triple.object)
                own = frozenset(term for term in terms if isinstance(term, Variable))
                factors.parts.append((own | names if own else own, notation.triple(triple)))
        case PathMatch(start, path, end):
            text = f"{notation.term(start)} {notation.predicate(path)} {notation.term(end)}"
            factors.parts.append((frozenset(visible_variables(node)) | names, text))
        case Join(left, right):
            _collect(left, factors, subject, names)
            _collect(right, factors, subject, names)
        case LeftJoin(left, right, condition):
            _collect(left, factors, subject, names)
            _collect(right, factors, subject, names)
            # What an OPTIONAL binds depends on what stands before it, by one variable at least.
            if condition is not None:
                factors.links.append(expression_variables(condition))
        case Filter(inner, condition):
            _collect(inner, factors, subject, names)
            factors.links.append(expression_variables(condition))
        case Extend(inner, variable, expression):
            _collect(inner, factors, subject, names)
            factors.links.append(expression_variables(expression) | {variable})
        case Graph(name, inner) | WindowGraph(name, inner) | Window(_, name, inner):
            own = frozenset({name}) if isinstance(name, Variable) else frozenset()
            _collect(inner, factors, subject, names | own)
        case Unit() | Values():
            # Few solutions, written in the query.
            factors.links.append(frozenset(visible_variables(node)))
        case Service():
            factors.parts.append((frozenset(visible_variables(node)) | names, "SERVICE"))
        case _ if _has_one_solution(node):
            factors.inside.extend(node.children)
        case _:
            if factors.parts or factors.links or len(node.children) != 1:
                factors.parts.append((frozenset(visible_variables(node)), "a group"))
                factors.inside.extend(node.children)
            else:
                _collect(node.children[0], factors, subject, names)


def _has_one_solution(node: Node) -> bool:
    """Whether a node has one solution at most: aggregates without GROUP BY, or LIMIT 1."""
    if isinstance(node, Group):
        return not node.keys
    if isinstance(node, Slice):
        return node.limit is not None and node.limit <= 1
    return isinstance(node, Project | Extend | Filter | OrderBy | Distinct) and _has_one_solution(node.children[0])


def _connected_groups(factors: _Factors) -> list[str]:
    """A text for each group of parts that is connected by variables."""
    groups: list[tuple[frozenset[Variable], str]] = []
    for variables, text in [*factors.parts, *((link, "") for link in factors.links)]:
        if not variables:
            continue
        touching = [group for group in groups if group[0] & variables]
        groups = [group for group in groups if not group[0] & variables]
        merged = variables.union(*(known for known, _ in touching))
        groups.append((merged, next((words for _, words in touching if words), text)))
    return [words for _, words in groups if words]
