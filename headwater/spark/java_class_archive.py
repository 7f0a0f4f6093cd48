"""An archive of the classes that Java loads for a pipeline, so that it starts sooner.

Java reads, checks and links some fifteen thousand classes before a pipeline on Spark gives its first answer. It can
write the classes that it loaded to an archive when it ends (`-XX:ArchiveClassesAtExit`) and map that file the next
time, which saves some seconds. Another version of Java or Spark has another archive.
`python -m headwater.engine.spark_warm_up` makes the archive, beside the packages of this Python; sessions that are
started here use it if it is there.
"""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path


def archive_path(java: str) -> Path:
    """The archive for a Java with this output of `java -version` and the Spark that is installed."""
    from pyspark.version import __version__ as spark

    digest = hashlib.sha256(f"{spark} {java}".encode()).hexdigest()
    return Path(sys.prefix, "share", "headwater", f"classes-{digest[:16]}.jsa")


def option_to_use(path: Path) -> str:
    """The option with which Java uses an archive; nothing if there is none."""
    return f'"-XX:SharedArchiveFile={path}"' if path.is_file() else ""


def option_to_write(path: Path) -> str:
    """The option with which Java writes one when it ends."""
    return f'"-XX:ArchiveClassesAtExit={path}"'
