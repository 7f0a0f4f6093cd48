"""GRAPH inside WINDOW or STREAM: it reads the named graphs of the static data, never those of the window."""

from __future__ import annotations

from collections.abc import Iterator

from headwater.algebra.nodes import Graph, Window
from headwater.algebra.scope import nodes_of
from headwater.linting.lint_subject import LintSubject


def find_graphs_in_windows(subject: LintSubject) -> Iterator[str]:
    """GRAPH clauses inside the clause of a window."""
    windows = [node for node in subject.nodes if isinstance(node, Window)]
    for graph in (node for window in windows for node in nodes_of(window.inner) if isinstance(node, Graph)):
        yield (
            f"GRAPH {subject.notation.term(graph.name)} stands inside the clause of a window and can match nothing of "
            "that window: a window is one graph, and GRAPH reads named graphs of the static data; leave GRAPH out, or "
            "put it outside"
        )
