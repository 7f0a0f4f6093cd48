"""A new data set without statements, in a folder of its own."""

from __future__ import annotations

from pathlib import Path

from headwater.datasets.errors import DataSetError
from headwater.datasets.folder import MANIFEST, lock_dataset
from headwater.datasets.loading.load_parts import LoadPart
from headwater.datasets.loading.publish import publish_version
from headwater.datasets.stored_terms import StoredTerms


def create_dataset(folder: Path) -> None:
    """Make a folder an empty data set, durable; a `DataSetError` if there is one."""
    folder.mkdir(parents=True, exist_ok=True)
    with lock_dataset(folder):
        if (folder / MANIFEST).exists():
            raise DataSetError(f"{folder} is a data set already: open it, or name another folder")
        publish_version(folder, None, [LoadPart({}, StoredTerms.of([]))])
