"""Folders of data sets on their way to the workers.

Workers of a local master, and those that share a file system with the driver, see the folder itself. For data that
`engine.dataset` was given in memory the driver makes the folder, and where the workers are elsewhere it goes to them as
an archive that Spark gives to every worker; they see it as it was when the run began.
"""

from __future__ import annotations

import hashlib
import tarfile
import tempfile
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_FOLDER = tempfile.TemporaryDirectory(prefix="headwater-static-", ignore_cleanup_errors=True)
"""Lives as long as the process: Spark serves the files from here, and archives are unpacked here."""


@dataclass(frozen=True, slots=True)
class DataFolder:
    """The folder of a data set. `is_temporary` where this run made it; `archive` where Spark gives it to workers."""

    path: str
    is_temporary: bool = False
    archive: str | None = None

    def here(self) -> str:
        """The folder in this process."""
        return self.path if self.archive is None else _unpacked(self.archive)


@cache
def _unpacked(name: str) -> str:
    from pyspark import SparkFiles

    folder = Path(_FOLDER.name) / name.removesuffix(".tar")
    with tarfile.open(SparkFiles.get(name)) as archive:
        archive.extractall(folder, filter="data")
    return str(folder)


def shared(spark: SparkSession, folder: DataFolder) -> DataFolder:
    """The folder itself where workers see it, otherwise one that they can unpack."""
    context = spark.sparkContext
    if not folder.is_temporary or (context.master or "local").startswith("local"):
        return folder
    digest = hashlib.blake2b(digest_size=16)
    for path in sorted(path for path in Path(folder.path).rglob("*") if path.is_file()):
        digest.update(f"{path}:{path.stat().st_size}:{path.stat().st_mtime_ns}".encode())
    name = f"headwater-static-{digest.hexdigest()}.tar"
    if not any(known.rsplit("/", 1)[-1] == name for known in context.listFiles):
        archive = Path(_FOLDER.name) / name
        with tarfile.open(archive, "w") as packed:
            packed.add(folder.path, arcname=".")
        context.addFile(str(archive))
    return replace(folder, archive=name)
