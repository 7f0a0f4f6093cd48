"""CONSTRUCT: a template turns solutions into triples."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain

from headwater.algebra.plan import QueryPlan
from headwater.language.patterns import Path
from headwater.terms.model import BlankNode, NamedNode, Row, Term, Triple, Variable

_RESOURCES = (NamedNode, BlankNode)


class ConstructTemplate:
    """The template of a CONSTRUCT query.

    A solution followed by the terms that the template itself has makes a longer row, and each triple of the template is
    three places in it.
    """

    def __init__(self, plan: QueryPlan) -> None:
        parts = [(one.subject, one.predicate, one.object) for one in plan.template]
        columns: dict[object, int] = {variable: i for i, variable in enumerate(plan.variables)}
        own = [part for part in dict.fromkeys(chain.from_iterable(parts)) if part not in columns]
        columns |= {part: len(columns) + i for i, part in enumerate(own)}
        # A variable that no solution has is a gap.
        self._own: Row = tuple(None if isinstance(part, Variable | Path) else part for part in own)
        self._has_blank_nodes = any(isinstance(part, BlankNode) for part in own)
        self._triples = [(columns[first], columns[second], columns[third]) for first, second, third in parts]

    def instantiate(self, rows: Iterable[Row], tick: int) -> tuple[Triple, ...]:
        """The template filled in for each solution; triples with a gap or an illegal term are left out.

        Blank nodes of the template are new in each solution, with labels that depend on the tick and the row alone.
        """
        made: dict[Triple, None] = {}
        own = self._own
        for number, row in enumerate(rows):
            if self._has_blank_nodes:
                own = tuple(_relabel(term, tick, number) for term in self._own)
            terms = row + own
            for first, second, third in self._triples:
                subject, predicate, object_ = terms[first], terms[second], terms[third]
                if isinstance(subject, _RESOURCES) and isinstance(predicate, NamedNode) and object_ is not None:
                    made[Triple(subject, predicate, object_)] = None
        return tuple(made)


def _relabel(term: Term | None, tick: int, number: int) -> Term | None:
    if not isinstance(term, BlankNode):
        return term
    when = f"{tick}" if tick >= 0 else f"m{-tick}"
    return BlankNode(f"c{when}r{number}x{term.value}")
