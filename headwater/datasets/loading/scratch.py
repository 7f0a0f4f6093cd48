"""Statements that are given in memory, or as files that are read once: a data set in a folder of the engine's own."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from pyoxigraph import RdfFormat, serialize

from headwater.datasets.folder import MANIFEST, lock_dataset, read_manifest
from headwater.datasets.loading.parts import Part, write_part
from headwater.datasets.loading.publish import publish
from headwater.terms.model import NamedNode, Quad
from headwater.terms.scanning.formats import LineFormat
from headwater.terms.scanning.scanner import scan


class Scratch:
    """A folder that lives as long as this."""

    def __init__(self) -> None:
        self._folder: Path | None = None

    @property
    def folder(self) -> Path:
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="headwater-data-"))
            weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        return self._folder / "data"


def put(folder: Path, quads: Sequence[Quad], graphs: Iterable[NamedNode] = ()) -> None:
    """Add statements in bulk, as one version; the data set is made where there is none.

    `graphs` are named although nothing may be in them.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with lock_dataset(folder):
        before = read_manifest(folder) if (folder / MANIFEST).exists() else None
        scanned = scan(serialize(quads, format=RdfFormat.N_QUADS) or b"", LineFormat.N_QUADS)
        part = folder / "adding"
        shutil.rmtree(part, ignore_errors=True)
        write_part(part, [np.column_stack([scanned.graphs, scanned.triples])], [scanned.texts()], scanned.bad)
        publish(folder, before, [Part.open(part)], graphs=graphs)
        shutil.rmtree(part)
