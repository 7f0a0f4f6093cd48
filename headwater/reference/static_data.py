"""What a query may ask of linked data that does not stream.

A pyoxigraph `Store` answers it, and so do the data sets on disk (`headwater.datasets`). Literals are in the form in
which a store keeps them (`headwater.terms.exact`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

from headwater.terms.model import Quad


class StaticData(Protocol):
    """Statements in graphs."""

    def quads_for_pattern(self, subject: Any, predicate: Any, object: Any, graph_name: Any = None, /) -> Iterator[Quad]:
        """The statements that match; None stands for anything."""

    def named_graphs(self) -> Iterator[Any]:
        """The names of the graphs, the empty ones too."""
