"""The RDF terms of the whole project, and the timed element that a stream is made of.

Terms are pyoxigraph's own classes: they are compact, hashable and immutable, and every other part of the
project (readers, writers, the reference evaluator) speaks them without conversion.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from pyoxigraph import BlankNode, Literal, NamedNode, Quad, Triple, Variable

Term: TypeAlias = NamedNode | BlankNode | Literal | Triple
"""What a variable can be bound to (`Triple` is an RDF 1.2 triple term)."""

Row: TypeAlias = tuple[Term | None, ...]
"""One solution, in the order of the answer's variables; `None` is an unbound variable."""

XSD = "http://www.w3.org/2001/XMLSchema#"
RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"

MILLISECOND = 1_000
SECOND = 1_000_000


@dataclass(frozen=True, slots=True)
class Element:
    """One element of an RDF stream: a graph with a timestamp (CS1; RSP-QL's timestamped graph).

    `time` counts microseconds since 1970 and may be negative. `graph` is the name the source gave the
    graph, if any. `position` says where in its source the element stood (for instance file number and byte
    offset): it defines the arrival order of a stream independently of who read which part.
    """

    time: int
    triples: tuple[Triple, ...]
    graph: str | None = None
    position: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class BadElement:
    """Input that could not become an element: kept, counted and explained, never dropped in silence."""

    reason: str
    text: str
    source: str
    position: tuple[int, ...] = ()
    line: int | None = None


__all__ = [
    "MILLISECOND",
    "RDF",
    "SECOND",
    "XSD",
    "BadElement",
    "BlankNode",
    "Element",
    "Literal",
    "NamedNode",
    "Quad",
    "Row",
    "Term",
    "Triple",
    "Variable",
]
