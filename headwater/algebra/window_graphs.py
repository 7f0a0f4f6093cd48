"""Names of the graphs that hold the content of windows, and of the default graph where it needs a name."""

from __future__ import annotations

from headwater.algebra.plan import WindowSource
from headwater.terms.model import NamedNode

INTERNAL = "urn:headwater:"


DEFAULT = NamedNode(INTERNAL + "default")
"""Stands for the default graph where occurrences are described."""


def window_graph(window_index: int, source: WindowSource) -> NamedNode:
    """The named graph that holds a window's content."""
    return source.graph or NamedNode(f"{INTERNAL}window:{window_index}")
