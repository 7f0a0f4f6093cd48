"""Linked data that does not stream: what `engine.dataset` was given, as data sets."""

from __future__ import annotations

import glob
from collections.abc import Iterable
from pathlib import Path

from pyoxigraph import DefaultGraph, Store

from headwater.datasets.scratch import put
from headwater.pipeline.sources import natural_order
from headwater.pipeline.spans import SourceError
from headwater.terms.exact import original
from headwater.terms.model import Quad, Triple
from headwater.terms.names import name_to_iri
from headwater.terms.reading import read_quads

Given = str | Path | Store | Iterable[Quad | Triple]
"""RDF files by path or pattern, a store, or statements."""


def load(folder: Path, data: Given, graph: str | None = None) -> None:
    """Put data into the data set of a folder.

    With `graph`, what stands in no named graph goes into the one of that name. A file with a syntax error raises
    `RdfSyntaxError`, and then nothing is loaded.
    """
    quads = statements(data, graph)
    # A graph that is known to be empty differs from one that nobody knows.
    named = [] if graph is None else [name_to_iri(graph)]
    put(folder, quads, named)


def statements(data: Given, graph: str | None = None) -> list[Quad]:
    """The statements of what was given, as they were written."""
    if isinstance(data, str | Path):
        quads = [quad for path in _paths(str(data)) for quad in read_quads(path)]
    elif isinstance(data, Store):
        quads = [Quad(q.subject, q.predicate, original(q.object), q.graph_name) for q in data]
    else:
        quads = [Quad(t.subject, t.predicate, t.object) if isinstance(t, Triple) else t for t in data]
    if graph is None:
        return quads
    name = name_to_iri(graph)
    return [
        Quad(q.subject, q.predicate, q.object, name) if isinstance(q.graph_name, DefaultGraph) else q for q in quads
    ]


def _paths(pattern: str) -> list[str]:
    if glob.has_magic(pattern) and not Path(pattern).exists():
        names = sorted(filter(lambda name: Path(name).is_file(), glob.glob(pattern, recursive=True)), key=natural_order)
        if not names:
            raise SourceError(f"no file matches {pattern}: check the pattern of the static data")
        return names
    if not Path(pattern).is_file():
        raise SourceError(f"there is no file {pattern}: check the path of the static data")
    return [pattern]
