"""Active graphs as text: `stream :taxis [RANGE 2h]`, `FROM NAMED :g`."""

from __future__ import annotations

from headwater.algebra.active_graphs import ActiveGraph, StaticGraph
from headwater.algebra.plan import QueryPlan
from headwater.explain.notation import Notation
from headwater.terms.model import NamedNode


def active_graph_text(
    active_graph: ActiveGraph, plan: QueryPlan, notation: Notation, *, by_number: bool = False
) -> str:
    """An active graph in one line, its windows written out or by number."""
    windows = active_graph.windows
    parts = [f"W{window + 1}" if by_number else window_text(plan, window, notation) for window in windows]
    statics = [static_graph_text(graph, notation) for graph in active_graph.static_graphs]
    if active_graph.is_merged and active_graph.windows:
        streams = ("streams " if len(parts) > 1 else "stream ") + ", ".join(parts)
        return f"default graph ({streams} and {', '.join(statics)})"
    several = f"each of {notation.variable(active_graph.name)}: " if active_graph.name is not None else ""
    shown = [f"window {part}" for part in parts] + statics
    return several + (", ".join(shown) or "no graph")


def static_graph_text(graph: StaticGraph, notation: Notation) -> str:
    """A static graph by the clause that names it: `FROM NAMED :g`."""
    if graph.name is None:
        return f"static data: {graph.clause}"
    return f"{graph.clause} {notation.term(graph.name)}"


def window_text(plan: QueryPlan, window_index: int, notation: Notation) -> str:
    """A window's name and definition: `:W1 on :taxis [RANGE 2h]`."""
    window = plan.windows[window_index]
    stream = notation.iri(window.stream)
    name = stream if window.label == window.stream.value else f"{label_text(window.label, notation)} on {stream}"
    return f"{name} [{notation.window(window.spec)}]"


def label_text(label: str, notation: Notation) -> str:
    """A window's label, which is an IRI in most dialects."""
    try:
        return notation.iri(NamedNode(label))
    except ValueError:
        return label
