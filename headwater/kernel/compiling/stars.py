"""Finds stars among the inputs of a join: triple patterns of one window with one subject variable.

    { ?o a :Rainfall ; :value ?v FILTER(?v > 3) . ?o :procedure ?s . ?s :in ?town }
      └───────────────────── star of ?o ─────────────────────┘

`operators.star` says when a star has the same solutions as the join of its patterns, and `columns.subject_runs` when
it pays: where the triples of a subject come together and the window advances in steps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from headwater.algebra.nodes import Bgp, Filter, Node
from headwater.kernel.compiling.static_parts import PlacedPart
from headwater.language.expressions import Expression
from headwater.language.patterns import TriplePattern
from headwater.terms.model import Literal, NamedNode, Variable


@dataclass(frozen=True)
class Star:
    """Triple patterns with one subject variable and different object variables, and conditions on their solutions."""

    subject: Variable
    graph: NamedNode
    triples: list[TriplePattern] = field(default_factory=list)
    conditions: list[Expression] = field(default_factory=list)

    def can_take(self, triple: TriplePattern) -> bool:
        """Whether a pattern with this subject binds no variable that another one binds as its object."""
        taken = {self.subject, *(one.object for one in self.triples if isinstance(one.object, Variable))}
        return triple.object not in taken


def find_stars(
    parts: Sequence[PlacedPart], is_possible: Callable[[NamedNode], bool]
) -> tuple[list[Star], list[PlacedPart]]:
    """The stars of at least two patterns among some parts, and the other parts.

    `is_possible` says whether a graph can be matched by stars.
    """
    stars: dict[tuple[NamedNode, Variable], Star] = {}
    members: dict[tuple[NamedNode, Variable], list[int]] = {}
    for place, (node, graph) in enumerate(parts):
        triple, conditions = _pattern_of(node)
        if triple is None or not isinstance(triple.subject, Variable) or not is_possible(graph):
            continue
        star = stars.setdefault((graph, triple.subject), Star(triple.subject, graph))
        if star.can_take(triple):
            star.triples.append(triple)
            star.conditions.extend(conditions)
            members.setdefault((graph, triple.subject), []).append(place)
    found = [star for star in stars.values() if len(star.triples) > 1]
    taken = {place for star in found for place in members[star.graph, star.subject]}
    return found, [part for place, part in enumerate(parts) if place not in taken]


def _pattern_of(node: Node) -> tuple[TriplePattern | None, Iterable[Expression]]:
    """The pattern that a part consists of, if a star can have it, and the conditions on it."""
    conditions: list[Expression] = []
    while isinstance(node, Filter):
        conditions.append(node.condition)
        node = node.inner
    match node:
        case Bgp((TriplePattern(Variable(), NamedNode(), NamedNode() | Literal() | Variable()) as triple,)):
            return triple, conditions
    return None, ()
