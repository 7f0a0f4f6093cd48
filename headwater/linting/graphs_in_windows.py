"""GRAPH in the clause of a window that can match nothing: the stream has no such graph.

WINDOW :w { GRAPH ?g {…} }       and the elements of the stream have no graph names
WINDOW :w { GRAPH :map {…} }     and :map is a loaded graph: in a window GRAPH names graphs of the window
"""

from __future__ import annotations

from collections.abc import Iterator

from headwater.algebra.active_graphs import ActiveGraph, active_graph_inside, default_active_graph
from headwater.algebra.nodes import ExistsPlan, Node, WindowGraph
from headwater.algebra.scope import expressions_of, sub_expressions
from headwater.linting.lint_subject import LintSubject
from headwater.terms.model import NamedNode


def find_graphs_in_windows(subject: LintSubject) -> Iterator[str]:
    """GRAPH clauses in windows, of which the samples of the streams show no graph."""
    plan, notation, loaded = subject.plan, subject.notation, subject.observed.loaded
    found: dict[str, None] = {}
    for graph, around in _window_graphs(subject, plan.root, default_active_graph(plan)):
        shown = (
            f"GRAPH {notation.term(graph.name)} stands in the clause of a window, where it reads graphs of the window"
        )
        is_constant = isinstance(graph.name, NamedNode)
        if is_constant and loaded is not None and graph.name in loaded.named:
            found[f"{shown}, and not the loaded graph of that name; put it outside the clause"] = None
            continue
        streams = [plan.windows[number].stream for number in around.windows]
        samples = [(stream, subject.observed.samples.get(stream)) for stream in dict.fromkeys(streams)]
        for stream, sample in samples:
            if sample is None or not sample.elements:
                continue
            where = f"of the first {sample.elements:,} elements of the stream {notation.iri(stream)}"
            if not sample.graphs:
                found[f"{shown}, but none {where} has a graph name; leave GRAPH out"] = None
            elif is_constant and graph.name not in sample.graphs:
                found[f"{shown}, but none {where} has that name"] = None
    yield from found


def _window_graphs(subject: LintSubject, node: Node, graph: ActiveGraph) -> Iterator[tuple[WindowGraph, ActiveGraph]]:
    """The GRAPH clauses in windows, each with the active graph around it."""
    if isinstance(node, WindowGraph):
        yield node, graph
    for expression in expressions_of(node):
        for part in sub_expressions(expression):
            if isinstance(part, ExistsPlan):
                yield from _window_graphs(subject, part.plan, graph)
    within = active_graph_inside(subject.plan, node, graph)
    for child in node.children:
        yield from _window_graphs(subject, child, within)
