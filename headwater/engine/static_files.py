"""Linked data that does not stream: what `engine.dataset` was given, as data sets."""

from __future__ import annotations

import glob
from collections.abc import Iterable, Sequence
from pathlib import Path

from pyoxigraph import DefaultGraph, Store

from headwater.datasets.loading.temporary_dataset import add_statements
from headwater.sources.files import natural_order
from headwater.sources.source import SourceError
from headwater.terms.arguments import check_statements
from headwater.terms.model import Quad, Triple
from headwater.terms.names import name_to_iri
from headwater.terms.rdf_documents import read_quads
from headwater.terms.stored_forms import restore_term

Given = str | Path | Store | Iterable[Quad | Triple]
"""RDF files by path or pattern, a store, or statements."""


def load_statements(folder: Path, quads: Sequence[Quad], graph: str | None = None) -> None:
    """Put statements into the data set of a folder."""
    # A graph that is known to be empty differs from an unknown one.
    add_statements(folder, put_in_graph(quads, graph), [] if graph is None else [name_to_iri(graph)])


def read_statements(data: Given) -> list[Quad]:
    """The statements of what was given, as they were written; `RdfSyntaxError` for a file that breaks off."""
    if isinstance(data, str | Path):
        try:
            return [quad for path in find_files(str(data)) for quad in read_quads(path)]
        except OSError as error:
            reason = f"{error.filename} cannot be read ({error.strerror})"
            raise SourceError(f"{reason}: ask for the right to read it") from None
    if isinstance(data, Store):
        return [Quad(q.subject, q.predicate, restore_term(q.object), q.graph_name) for q in data]
    statements = check_statements("linked data (a path, an address, a store or statements)", data)
    return [Quad(t.subject, t.predicate, t.object) if isinstance(t, Triple) else t for t in statements]


def put_in_graph(quads: Sequence[Quad], graph: str | None) -> Sequence[Quad]:
    """The statements, with those in no named graph in the one of this name."""
    if graph is None:
        return quads
    name, nowhere = name_to_iri(graph), DefaultGraph()
    return [Quad(q.subject, q.predicate, q.object, name) if q.graph_name == nowhere else q for q in quads]


def find_files(pattern: str) -> list[str]:
    """The files that a path or pattern names."""
    if glob.has_magic(pattern) and not Path(pattern).exists():
        names = sorted(filter(lambda name: Path(name).is_file(), glob.glob(pattern, recursive=True)), key=natural_order)
        if not names:
            raise SourceError(f"no file matches {pattern}: check the pattern of the static data")
        return names
    if not Path(pattern).is_file():
        raise SourceError(f"there is no file {pattern}: check the path of the static data")
    return [pattern]
