"""Which graphs a query reads, and a query that does not see some of them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from headwater.algebra.nodes import Graph
from headwater.algebra.plan import QueryPlan
from headwater.algebra.scope import nodes_of
from headwater.terms.model import NamedNode


def graphs_read_by(plan: QueryPlan) -> frozenset[NamedNode] | None:
    """The named graphs that a plan may read; None: any."""
    named = [node.name for node in nodes_of(plan.root) if isinstance(node, Graph)]
    chosen = {*(plan.default_graphs or ()), *(plan.named_graphs or ())}
    constants = {name for name in named if isinstance(name, NamedNode)}
    if len(constants) < len({*named}) and plan.named_graphs is None:
        return None
    return frozenset(chosen | constants)


def hide_graphs(plan: QueryPlan, named_graphs: Sequence[NamedNode], hidden: Collection[NamedNode]) -> QueryPlan:
    """The plan over the graphs of a store without the hidden ones, as if these were not there."""
    default = plan.default_graphs
    named = named_graphs if plan.named_graphs is None else plan.named_graphs
    return replace(
        plan,
        default_graphs=None if default is None else tuple(one for one in default if one not in hidden),
        named_graphs=tuple(one for one in named if one not in hidden),
    )
