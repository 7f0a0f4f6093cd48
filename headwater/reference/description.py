"""DESCRIBE by definition: the triples of the described resources."""

from __future__ import annotations

from collections.abc import Iterable

from pyoxigraph import DefaultGraph

from headwater.algebra.plan import QueryPlan
from headwater.algebra.window_graphs import window_graph
from headwater.reference.tick_dataset import TickDataset
from headwater.terms.model import BlankNode, NamedNode, Row, Term, Triple, Variable
from headwater.terms.stored_forms import restore_triple


def describe(plan: QueryPlan, rows: Iterable[Row], dataset: TickDataset) -> tuple[Triple, ...]:
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
    triples: dict[Triple, None] = {}
    while waiting:
        resource = waiting.pop(0)
        if not isinstance(resource, NamedNode | BlankNode) or resource in seen:
            continue
        seen.add(resource)
        for graph in graphs:
            for quad in dataset.store.quads_for_pattern(resource, None, None, graph):
                triples[restore_triple(quad.triple)] = None
                if isinstance(quad.object, BlankNode):
                    waiting.append(quad.object)
    return tuple(sorted(triples, key=str))
