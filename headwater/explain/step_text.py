"""The steps of a plan as lines of text, leaves first: what each does, without what is below it."""

from __future__ import annotations

from headwater.algebra.nodes import Bgp, Node
from headwater.explain.notation import Notation
from headwater.explain.operator_text import operator_lines


def step_text(node: Node, notation: Notation) -> str:
    """One step in a line."""
    title, *details = operator_lines(node, notation)
    separator = " . " if isinstance(node, Bgp) else "; "
    return f"{title}: {separator.join(details).replace('&&; ', '&& ')}" if details else title
