"""Solutions become graphs: CONSTRUCT templates and DESCRIBE."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from pyoxigraph import DefaultGraph

from headwater.algebra.plan import QueryPlan
from headwater.language.patterns import Path
from headwater.reference.graphs import Dataset, window_graph
from headwater.terms.exact import original_triple
from headwater.terms.model import BlankNode, NamedNode, Row, Term, Triple, Variable

_RESOURCES = (NamedNode, BlankNode)


class Template:
    """The template of a CONSTRUCT query, with its variables found once."""

    def __init__(self, plan: QueryPlan) -> None:
        columns: dict[object, int] = {variable: i for i, variable in enumerate(plan.variables)}
        self._triples = [
            tuple(_Part(columns.get(part, -1), None if isinstance(part, Variable | Path) else part) for part in parts)
            for parts in ((one.subject, one.predicate, one.object) for one in plan.template)
        ]

    def instantiate(self, rows: Iterable[Row], tick: int) -> tuple[Triple, ...]:
        """The template filled in for each solution; triples with a gap or an illegal term are left out.

        Blank nodes of the template are new in each solution, with labels that depend on the tick and the row alone.
        """
        made: dict[Triple, None] = {}
        when = f"{tick}" if tick >= 0 else f"m{-tick}"
        for number, row in enumerate(rows):
            for subject_part, predicate_part, object_part in self._triples:
                subject = _filled(subject_part, row, when, number)
                predicate = _filled(predicate_part, row, when, number)
                object_ = _filled(object_part, row, when, number)
                if isinstance(subject, _RESOURCES) and isinstance(predicate, NamedNode) and object_ is not None:
                    made[Triple(subject, predicate, object_)] = None
        return tuple(made)


class _Part(NamedTuple):
    """A place in a template: the column of its variable, or -1 and what stands there, if anything ever does."""

    column: int
    written: Term | None


def _filled(part: _Part, row: Row, when: str, number: int) -> Term | None:
    column, written = part
    if column >= 0:
        return row[column]
    if isinstance(written, BlankNode):
        return BlankNode(f"c{when}r{number}x{written.value}")
    return written


def describe(plan: QueryPlan, rows: Iterable[Row], dataset: Dataset) -> tuple[Triple, ...]:
    """All triples whose subject is a described resource, in the default graph and the windows, blank nodes followed."""
    positions = {variable: i for i, variable in enumerate(plan.variables)}
    waiting: list[Term | None] = [term for term in plan.described if isinstance(term, NamedNode)]
    for row in rows:
        waiting.extend(row[positions[term]] for term in plan.described if isinstance(term, Variable))
    graphs: list[NamedNode | DefaultGraph] = [
        DefaultGraph(),
        *(window_graph(n, source) for n, source in enumerate(plan.windows)),
    ]
    seen: set[Term] = set()
    found: dict[Triple, None] = {}
    while waiting:
        resource = waiting.pop(0)
        if not isinstance(resource, NamedNode | BlankNode) or resource in seen:
            continue
        seen.add(resource)
        for graph in graphs:
            for quad in dataset.store.quads_for_pattern(resource, None, None, graph):
                found[original_triple(quad.triple)] = None
                if isinstance(quad.object, BlankNode):
                    waiting.append(quad.object)
    return tuple(sorted(found, key=str))
