"""Data sets in temporary folders, for statements that are given in memory or in files that are read once."""

from __future__ import annotations

import shutil
import weakref
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from pyoxigraph import RdfFormat, serialize

from headwater.datasets.errors import DataSetError
from headwater.datasets.folder import MANIFEST, TEMPORARY, lock_dataset, read_manifest
from headwater.datasets.loading.load_parts import LoadPart, write_part
from headwater.datasets.loading.publish import publish_version
from headwater.terms.model import NamedNode, Quad
from headwater.terms.scanning.formats import LineFormat
from headwater.terms.scanning.scanner import scan
from headwater.terms.scratch_folders import ScratchFolder
from headwater.terms.text_lines import shorten_text


class TemporaryFolder:
    """A temporary folder for a data set, removed with this object."""

    def __init__(self) -> None:
        self._folder: Path | None = None

    @property
    def folder(self) -> Path:
        if self._folder is None:
            scratch = ScratchFolder("data")
            self._folder = scratch.path
            weakref.finalize(self, scratch.remove)
        return self._folder / "data"


def add_statements(folder: Path, quads: Sequence[Quad], graphs: Iterable[NamedNode] = ()) -> None:
    """Add statements in bulk, as one version, to the data set in a folder, which is made if there is none.

    `graphs` are the names of graphs that exist even if they are empty.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / TEMPORARY).touch()
    with lock_dataset(folder):
        before = read_manifest(folder) if (folder / MANIFEST).exists() else None
        scanned = scan(serialize(quads, format=RdfFormat.N_QUADS) or b"", LineFormat.N_QUADS, has_checks=False)
        if scanned.bad:
            first = scanned.bad[0]
            raise DataSetError(f"nothing is added: {first.reason} ({shorten_text(first.text, 100)})")
        part = folder / "adding"
        shutil.rmtree(part, ignore_errors=True)
        write_part(part, [np.column_stack([scanned.graphs, scanned.triples])], [scanned.texts()], scanned.bad)
        publish_version(folder, before, [LoadPart.open(part)], graphs=graphs)
        shutil.rmtree(part)
