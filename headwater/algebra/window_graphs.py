"""Names of the graphs that hold the content of windows, and of the default graph where it needs a name."""

from __future__ import annotations

from urllib.parse import quote

from headwater.algebra.plan import QueryPlan, WindowSource
from headwater.terms.model import BlankNode, NamedNode

INTERNAL = "urn:headwater:"


DEFAULT = NamedNode(INTERNAL + "default")
"""Stands for the default graph where occurrences are described."""


def window_graph(window_index: int, source: WindowSource) -> NamedNode:
    """The named graph that holds a window's content."""
    return source.graph or NamedNode(f"{INTERNAL}window:{window_index}")


def graphs_with_static_data(plan: QueryPlan) -> frozenset[NamedNode]:
    """The graphs of windows in which the static default graph is seen, too: the default graph, if windows are in it.

    After a plain FROM STREAM <s> of C-SPARQL, GRAPH <s> is the default graph with <s> as its only stream (section 2.6).
    """
    plain = [source for source in plan.windows if source.in_default_graph]
    return frozenset(graph for source in plain for graph in (DEFAULT, source.graph) if graph is not None)


def graph_in_window(window: NamedNode, name: NamedNode | BlankNode) -> NamedNode:
    """The named graph that holds one graph of a window, given the graph of the window and the name in the stream."""
    return NamedNode(f"{_prefix_in(window)}{quote(str(name), safe='')}")


def is_in_window(window: NamedNode, graph: NamedNode) -> bool:
    """Whether `graph_in_window` gave a graph for a window."""
    return graph.value.startswith(_prefix_in(window))


def _prefix_in(window: NamedNode) -> str:
    return f"{INTERNAL}graph:{quote(window.value, safe='')}:"


def windows_of(plan: QueryPlan, graph: NamedNode) -> list[int]:
    """The windows that feed a graph; `DEFAULT` is the default graph."""
    if graph == DEFAULT:
        return [number for number, source in enumerate(plan.windows) if source.in_default_graph]
    return [number for number, source in enumerate(plan.windows) if window_graph(number, source) == graph]
