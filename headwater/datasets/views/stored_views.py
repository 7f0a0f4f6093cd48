"""Views in files: the rows of a relation and its indexes, which later starts and other processes map into memory.

    views/PART-VERSION/view.json      what the rows are, and of which version of the data
                       rows           one after the other
                       index-0.table  the ring index on the first column …
                       index-0.links

Files are mapped copy-on-write: only pages that are read are loaded, processes share them through the page cache, and a
change is made to the process's own copy of a page.
"""

from __future__ import annotations

import json
import shutil
import uuid
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from headwater.datasets.mapped_files import Ints
from headwater.kernel.columns.relation import Key, Relation
from headwater.kernel.columns.ring_index import RingIndex
from headwater.kernel.compiling.static_views import View
from headwater.terms.durable_files import place_folder, replacing_file, sync_tree


class ViewRelation(Relation):
    """The rows of a view. Its indexes are kept in a folder as long as the rows are those of the folder."""

    def __init__(self, rows: Ints, folder: Path | None = None) -> None:
        super().__init__(rows.shape[1])
        # Compiled code reads rows by their address, one row after the other.
        self.rows = np.ascontiguousarray(rows)
        self._row_ids.allocate(rows.shape[0])
        self.folder = folder

    @property
    def is_on_disk(self) -> bool:
        """Whether the rows are mapped from files."""
        return self.folder is not None

    def describe(self) -> str:
        if not self.is_on_disk:
            return super().describe()
        return (
            f"{self.size:,} rows on disk ({self.rows.nbytes / 1e6:,.1f} MB), read through an index and the page cache"
        )

    def index(self, key: Key) -> RingIndex:
        if key not in self._indexes and self.folder is not None:
            self._indexes[key] = self._load_index(self.folder, key)
            self._all_indexes.append(self._indexes[key])
        return super().index(key)

    def _load_index(self, folder: Path, key: Key) -> RingIndex:
        name = folder / ("index-" + "-".join(map(str, key)))
        index = RingIndex(key)
        table, links = name.with_suffix(".table"), name.with_suffix(".links")
        # The folder is removed with its version, maybe while a reader still uses that.
        with suppress(OSError):
            index.adopt(_map_file(table, np.int64), _map_file(links, np.int32).reshape(-1, 2))
            return index
        index.rebuild(self.rows, self.live())
        with suppress(OSError):
            for path, array in ((links, index.links), (table, index.table)):
                with replacing_file(path, is_shared=True) as stream:
                    array.tofile(stream)
        return index

    def change(self, added: Ints, removed: Ints) -> None:
        """Add and remove rows, which are then no longer those of the folder."""
        self.folder = None
        _, left = self.cancel_and_take(added, removed)
        self.add(left)


def _map_file(path: Path, kind: type[np.int32] | type[np.int64]) -> npt.NDArray[Any]:
    if not path.stat().st_size:
        return np.empty(0, dtype=kind)
    return np.asarray(np.memmap(path, dtype=kind, mode="c"))


@dataclass(frozen=True)
class StoredView:
    """A view from a folder, with the texts of terms that the data does not have."""

    view: View
    texts: Mapping[int, bytes]


def save_view(folder: Path, key: str, version: object, view: View, texts: Mapping[int, bytes]) -> None:
    """Write a view to a folder that is named after the part and the version; remove those of other versions."""
    unfinished = folder.with_name(f"{folder.name}.{uuid.uuid4().hex}")
    unfinished.mkdir(parents=True)
    view.relation.rows.tofile(unfinished / "rows")
    fields = {
        "key": key,
        "version": version,
        "width": view.relation.width,
        "size": view.relation.size,
        "sure": sorted(view.always_bound),
        "texts": {str(term_id): text.decode() for term_id, text in texts.items()},
    }
    (unfinished / "view.json").write_text(json.dumps(fields), "utf-8")
    # Half a view would be wrong answers.
    sync_tree(unfinished)
    for other in folder.parent.glob(f"{folder.name.partition('-')[0]}-*"):
        if other not in (folder, unfinished):
            shutil.rmtree(other, ignore_errors=True)
    try:
        place_folder(unfinished, folder)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def load_view(folder: Path, key: str, version: object) -> StoredView | None:
    """Read the view in a folder; None if it is another view or of another version."""
    try:
        fields = json.loads((folder / "view.json").read_text("utf-8"))
        if fields["key"] != key or fields["version"] != version:
            return None
        rows = _map_file(folder / "rows", np.int64).reshape(fields["size"], fields["width"])
    except (OSError, ValueError, KeyError):
        return None
    view = View(ViewRelation(rows, folder), frozenset(fields["sure"]))
    return StoredView(view, {int(term_id): text.encode() for term_id, text in fields["texts"].items()})
