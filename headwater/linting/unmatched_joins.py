"""Variables that join two patterns which have no value in common, so that nothing is ever joined.

    ?o :by ?s . ?s :in ?room         :by has texts, or IRIs of another namespace, than the subjects of :in

Patterns are compared where the samples and the static data have all their values. Where a sample is only the beginning
of its stream, other values may follow: then it is told if they are of other kinds, or in other namespaces.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import product

from headwater.algebra.active_graphs import ActiveGraph, active_graph_inside, default_active_graph
from headwater.algebra.nodes import (
    Bgp,
    Distinct,
    Extend,
    Group,
    Minus,
    Node,
    PathMatch,
    Project,
    Service,
    Union,
    Values,
)
from headwater.algebra.scope import visible_variables
from headwater.linting.lint_subject import LintSubject
from headwater.linting.pattern_sources import PatternSources
from headwater.linting.value_kinds import IRI, NUMBER, TEXT, kind_of
from headwater.terms.model import NamedNode, Term, Variable


@dataclass(frozen=True)
class _Side:
    """All values that a variable has in a pattern, as far as data is there; `is_whole` if none will follow."""

    text: str
    values: frozenset[Term]
    is_whole: bool


_Sides = dict[Variable, list[_Side]]


def find_unmatched_joins(subject: LintSubject) -> Iterator[str]:
    """Joins over variables that have no value on both sides."""
    if subject.observed.samples:
        told: dict[str, None] = {}
        _find_sides(subject, subject.plan.root, default_active_graph(subject.plan), told)
        yield from told


def _find_sides(subject: LintSubject, node: Node, graph: ActiveGraph, told: dict[str, None]) -> _Sides:
    """The patterns in which each variable of a node's solutions is bound; joins without a common value are told."""
    match node:
        case Bgp():
            return _join(subject, _sides_of_patterns(subject, node, graph), told)
        case PathMatch() | Service() | Values():
            return {}
    within = active_graph_inside(subject.plan, node, graph)
    inside = [_find_sides(subject, child, within, told) for child in node.children]
    match node:
        case Union():
            # What one branch binds need not be what the other does.
            return {}
        case Minus():
            return inside[0]
        case Project() | Group() | Extend() | Distinct():
            shown = visible_variables(node)
            return {variable: sides for variable, sides in inside[0].items() if variable in shown}
    return _join(subject, inside, told)


def _sides_of_patterns(subject: LintSubject, node: Bgp, graph: ActiveGraph) -> list[_Sides]:
    sources = PatternSources(subject, graph)
    found: list[_Sides] = []
    for triple in node.triples:
        sides: _Sides = {}
        for term, are_objects in ((triple.subject, False), (triple.object, True)):
            if isinstance(term, Variable) and isinstance(triple.predicate, NamedNode):
                values = sources.terms_of(triple.predicate, are_objects=are_objects)
                if values:
                    text = ("" if are_objects else "the subjects of ") + subject.notation.predicate(triple.predicate)
                    sides[term] = [_Side(text, values, sources.are_whole)]
        found.append(sides)
    return found


def _join(subject: LintSubject, parts: Iterable[_Sides], told: dict[str, None]) -> _Sides:
    """The sides of all parts; those that have no value in common are told."""
    joined: _Sides = {}
    for part in parts:
        for variable, sides in part.items():
            for one, other in product(joined.get(variable, []), sides):
                if _never_meet(one, other):
                    told[_sentence(subject, variable, one, other)] = None
            joined[variable] = [*joined.get(variable, []), *sides]
    return joined


def _never_meet(one: _Side, other: _Side) -> bool:
    if not one.values.isdisjoint(other.values):
        return False
    return (one.is_whole and other.is_whole) or {*map(_origin, one.values)}.isdisjoint(map(_origin, other.values))


def _origin(term: Term) -> str:
    """The kind of a term, for an IRI with its namespace."""
    if isinstance(term, NamedNode):
        return term.value[: max(term.value.rfind("/"), term.value.rfind("#")) + 1]
    return kind_of(term)


def _sentence(subject: LintSubject, variable: Variable, one: _Side, other: _Side) -> str:
    examples = [min(side.values, key=str) for side in (one, other)]
    shown = [f"{subject.notation.term(term)}, {kind_of(term)}" for term in examples]
    kinds = {kind_of(term) for term in examples}
    remedy = "check how they are written"
    if kinds == {IRI}:
        remedy = "check their namespaces, as in the prefixes of the template"
    elif kinds == {IRI, TEXT}:
        remedy = "write the same IRIs on both sides, in a template as in :{column}, without quotes"
    elif kinds == {NUMBER, TEXT} or IRI not in kinds:
        remedy = "joins compare terms, so both sides need one type and one way to write it"
    return (
        f"?{variable.value} joins nothing: no value of it by {one.text}, such as {shown[0]}, is one by {other.text}, "
        f"such as {shown[1]}; {remedy}"
    )
