"""The forms of text that can be scanned."""

from __future__ import annotations

from enum import StrEnum

from pyoxigraph import RdfFormat


class LineFormat(StrEnum):
    """One statement per line: behind a timestamp (`headwater.terms.tnq`), with a graph name, or with neither."""

    TNQ = "tnq"
    N_QUADS = "nquads"
    N_TRIPLES = "ntriples"

    @property
    def rdf_format(self) -> RdfFormat:
        """What the parser calls the statements."""
        return RdfFormat.N_TRIPLES if self is LineFormat.N_TRIPLES else RdfFormat.N_QUADS
