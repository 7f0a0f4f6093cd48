"""Static data on its way to the workers.

Spark turns large closures into broadcast variables, and the driver's side of a stateful step cannot read those. So
linked data of any size goes out as a file that Spark gives to every worker, named after its content: equal data goes
out once.
"""

from __future__ import annotations

import gzip
import hashlib
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SMALL = 64 << 10
_FOLDER = tempfile.TemporaryDirectory(prefix="headwater-static-", ignore_cleanup_errors=True)
"""Lives as long as the process: Spark serves the files from here."""


@dataclass(frozen=True, slots=True)
class SharedFile:
    """Bytes that Spark has given to every worker under this name."""

    name: str

    def read(self) -> bytes:
        from pyspark import SparkFiles

        return gzip.decompress(Path(SparkFiles.get(self.name)).read_bytes())


def shared(spark: SparkSession, data: bytes | SharedFile) -> bytes | SharedFile:
    """The data itself where it is small, otherwise a file that workers can read."""
    if isinstance(data, SharedFile) or len(data) <= _SMALL:
        return data
    name = f"headwater-static-{hashlib.blake2b(data, digest_size=16).hexdigest()}.nq.gz"
    context = spark.sparkContext
    if not any(path.rsplit("/", 1)[-1] == name for path in context.listFiles):
        path = Path(_FOLDER.name) / name
        path.write_bytes(gzip.compress(data, compresslevel=1, mtime=0))
        context.addFile(str(path))
    return SharedFile(name)
