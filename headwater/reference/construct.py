"""Solutions become graphs: CONSTRUCT templates and DESCRIBE."""

from __future__ import annotations

from collections.abc import Iterable

from pyoxigraph import DefaultGraph

from headwater.algebra.plan import QueryPlan
from headwater.language.patterns import Path
from headwater.reference.graphs import Dataset, window_graph
from headwater.terms.exact import original_triple
from headwater.terms.model import BlankNode, Literal, NamedNode, Row, Term, Triple, Variable


def instantiate(plan: QueryPlan, rows: Iterable[Row], tick: int) -> tuple[Triple, ...]:
    """The template filled in for each solution; triples with a gap or an illegal term are left out.

    Blank nodes of the template are new in each solution, with labels that depend on the tick and the row alone.
    """
    positions = {variable: i for i, variable in enumerate(plan.variables)}
    made: dict[Triple, None] = {}
    for number, row in enumerate(rows):

        def term(written: object, row: Row = row, number: int = number) -> Term | None:
            if isinstance(written, Variable):
                return row[positions[written]] if written in positions else None
            if isinstance(written, BlankNode):
                when = f"{tick}" if tick >= 0 else f"m{-tick}"
                return BlankNode(f"c{when}r{number}x{written.value}")
            return written if isinstance(written, NamedNode | Literal) else None

        for pattern in plan.template:
            subject, object_ = term(pattern.subject), term(pattern.object)
            predicate = None if isinstance(pattern.predicate, Path) else term(pattern.predicate)
            if isinstance(subject, NamedNode | BlankNode) and isinstance(predicate, NamedNode) and object_ is not None:
                made[Triple(subject, predicate, object_)] = None
    return tuple(made)


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
