"""Linked data that does not stream: loaded once, asked at every tick."""

from __future__ import annotations

import glob
from collections.abc import Iterable, Mapping
from pathlib import Path

from pyoxigraph import DefaultGraph, RdfFormat, Store

from headwater.pipeline.evaluation import Definition, EvaluatorName
from headwater.pipeline.sources import natural_order
from headwater.pipeline.spans import SourceError
from headwater.reference import Registered
from headwater.terms.exact import stored_quad
from headwater.terms.model import NamedNode, Quad, Triple
from headwater.terms.names import name_to_iri
from headwater.terms.reading import read_quads


def load(store: Store, data: str | Path | Store | Iterable[Quad | Triple], graph: str | None = None) -> int:
    """Put data into a store: RDF files by path or pattern, another store, or quads; gives how many statements.

    With `graph`, what stands in no named graph goes into the one of that name. A file with a syntax error raises
    `RdfSyntaxError`, and then nothing is loaded.
    """
    if isinstance(data, str | Path):
        quads = [quad for path in _paths(str(data)) for quad in read_quads(path)]
    else:
        quads = [Quad(t.subject, t.predicate, t.object) if isinstance(t, Triple) else t for t in data]
    if graph is not None:
        name = name_to_iri(graph)
        quads = [
            Quad(q.subject, q.predicate, q.object, name) if isinstance(q.graph_name, DefaultGraph) else q for q in quads
        ]
        # A graph that is known to be empty differs from one that nobody knows.
        store.add_graph(name)
    store.bulk_extend(map(stored_quad, quads))
    return len(quads)


def _paths(pattern: str) -> list[str]:
    if glob.has_magic(pattern) and not Path(pattern).exists():
        names = sorted(filter(lambda name: Path(name).is_file(), glob.glob(pattern, recursive=True)), key=natural_order)
        if not names:
            raise SourceError(f"no file matches {pattern}: check the pattern of the static data")
        return names
    if not Path(pattern).is_file():
        raise SourceError(f"there is no file {pattern}: check the path of the static data")
    return [pattern]


def definition(
    queries: tuple[Registered, ...],
    store: Store,
    delay: int,
    evaluator: EvaluatorName = "auto",
    idle: Mapping[str, int] | None = None,
) -> Definition:
    """Queries over the statements of a store, ready to be sent to workers."""
    graphs = tuple(graph.value for graph in store.named_graphs() if isinstance(graph, NamedNode))
    silent = tuple(sorted((idle or {}).items()))
    return Definition(queries, store.dump(format=RdfFormat.N_QUADS) or b"", graphs, delay, evaluator, idle=silent)
