"""Named graphs of streams: which plans read them, and the statement that gives the time of one.

A window over a stream of named graphs is an RDF dataset. A pattern without GRAPH sees all of its triples merged,
whatever graph they are in. A pattern in GRAPH sees one graph. A query that names `prov:generatedAtTime` sees in the
merge, for each element with a graph name, the statement `<graph> prov:generatedAtTime "…"`, unless the element says it
itself.
"""

from __future__ import annotations

from headwater.algebra.nodes import (
    Aggregation,
    Bgp,
    Distinct,
    Extend,
    Filter,
    Group,
    Join,
    LeftJoin,
    Minus,
    Node,
    OrderBy,
    PathMatch,
    Project,
    Reduced,
    Slice,
    Union,
    WindowGraph,
)
from headwater.algebra.scope import nodes_of
from headwater.algebra.unrolled_paths import can_be_empty
from headwater.language.patterns import Link, NegatedSet, Path
from headwater.terms.model import NamedNode
from headwater.terms.timed_graphs import GENERATED_AT_TIME


def reads_window_graphs(root: Node) -> bool:
    """Whether GRAPH stands in the clause of a window."""
    return any(isinstance(node, WindowGraph) for node in nodes_of(root))


def reads_graph_times(root: Node) -> bool:
    """Whether some pattern has the property that gives the time of a graph."""
    for node in nodes_of(root):
        match node:
            case Bgp(triples):
                if any(triple.predicate == GENERATED_AT_TIME for triple in triples):
                    return True
            case PathMatch(_, path, _):
                if _has_link(path, GENERATED_AT_TIME):
                    return True
    return False


def _has_link(path: Path, predicate: NamedNode) -> bool:
    match path:
        case Link(iri):
            return iri == predicate
        case NegatedSet():
            return False
    parts = (getattr(path, name) for name in ("path", "left", "right") if hasattr(path, name))
    return any(_has_link(part, predicate) for part in parts)


def needs_triple(node: Node) -> bool:
    """Whether every solution of a node matches some triple of the graph that is active around the node."""
    match node:
        case Bgp(triples):
            return bool(triples)
        case PathMatch(_, path, _):
            return not can_be_empty(path)
        case Join(left, right):
            return needs_triple(left) or needs_triple(right)
        case Union(left, right):
            return needs_triple(left) and needs_triple(right)
        case LeftJoin(inner, _, _) | Minus(inner, _) | Aggregation(inner, _, _) | OrderBy(inner, _) | Slice(inner):
            return needs_triple(inner)
        case Filter(inner, _) | Extend(inner, _, _) | Project(inner, _) | Distinct(inner) | Reduced(inner):
            return needs_triple(inner)
        case Group(inner, keys, _):
            return bool(keys) and needs_triple(inner)
    return False


def reads_empty_matches(root: Node) -> bool:
    """Whether some GRAPH in a window has solutions for a graph of which it matches no triple."""
    return any(isinstance(node, WindowGraph) and not needs_triple(node.inner) for node in nodes_of(root))
