"""What is too large for a closure on its way to the workers: folders of data sets, and hundreds of queries.

Spark turns large closures into broadcast variables, and the driver's side of a stateful step cannot read those; so a
definition that is not small goes out as a file.

Workers of a local master, and those that share a file system with the driver, see the folder itself. For data that
`engine.dataset` was given in memory the driver makes the folder, and where the workers are elsewhere it goes to them as
an archive that Spark gives to every worker; they see it as it was when the run began.
"""

from __future__ import annotations

import hashlib
import pickle
import tarfile
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

from headwater.terms.scratch_folders import ScratchFolder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Content = TypeVar("Content")

_SMALL = 64 << 10


@cache
def _folder() -> Path:
    """Lives as long as the process: Spark serves the files from here, and archives are unpacked here."""
    return ScratchFolder("static").path


@dataclass(frozen=True, slots=True)
class DataFolder:
    """The folder of a data set. `is_temporary` where this run made it; `archive` where Spark gives it to workers."""

    path: str
    is_temporary: bool = False
    archive: str | None = None

    def local_path(self) -> str:
        """The folder on the machine of this process; unpacks the archive if it came with one."""
        return self.path if self.archive is None else _unpack_archive(self.archive)


@cache
def _unpack_archive(name: str) -> str:
    from pyspark import SparkFiles

    folder = _folder() / name.removesuffix(".tar")
    with tarfile.open(SparkFiles.get(name)) as archive:
        archive.extractall(folder, filter="data")
    return str(folder)


def share_folder(spark: SparkSession, folder: DataFolder) -> DataFolder:
    """The folder itself where workers see it, otherwise one that they can unpack."""
    context = spark.sparkContext
    if not folder.is_temporary or (context.master or "local").startswith("local"):
        return folder
    digest = hashlib.blake2b(digest_size=16)
    for path in sorted(path for path in Path(folder.path).rglob("*") if path.is_file()):
        digest.update(f"{path}:{path.stat().st_size}:{path.stat().st_mtime_ns}".encode())
    name = f"headwater-static-{digest.hexdigest()}.tar"
    if not any(known.rsplit("/", 1)[-1] == name for known in context.listFiles):
        archive = _folder() / name
        with tarfile.open(archive, "w") as packed:
            packed.add(folder.path, arcname=".")
        context.addFile(str(archive))
    return replace(folder, archive=name)


@dataclass(frozen=True, slots=True)
class Shipped(Generic[Content]):
    """An object on its way to the workers: in `data`, or in a file that Spark gives to every worker.

    Both are pickled, as Spark does with every closure: they come from the driver, through Spark. The name of a file is
    the digest of its content, and comes with the closure; a file with another content is not read.
    """

    data: bytes | None
    name: str | None = None

    def unpack(self) -> Content:
        """The object, in the process that needs it."""
        content: Content = pickle.loads(_receive(self.name) if self.name is not None else self.data or b"")
        return content


def _receive(name: str) -> bytes:
    from pyspark import SparkFiles

    data = Path(SparkFiles.get(name)).read_bytes()
    if _file_name(data) != name:
        raise RuntimeError(f"{name} is not what the driver sent: see who can write to the local folders of Spark")
    return data


def _file_name(data: bytes) -> str:
    return f"headwater-{hashlib.blake2b(data, digest_size=16).hexdigest()}.pickle"


def ship(spark: SparkSession, content: Content) -> Shipped[Content]:
    """An object as workers can take it, whatever its size."""
    data = pickle.dumps(content, protocol=pickle.HIGHEST_PROTOCOL)
    if len(data) <= _SMALL:
        return Shipped(data)
    name = _file_name(data)
    context = spark.sparkContext
    if not any(known.rsplit("/", 1)[-1] == name for known in context.listFiles):
        path = _folder() / name
        path.write_bytes(data)
        context.addFile(str(path))
    return Shipped(None, name)
