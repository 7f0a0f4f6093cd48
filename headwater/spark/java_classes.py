"""The classes that Java loads for a pipeline, in an archive from which it has them at once.

Java reads, checks and links some fifteen thousand classes before a pipeline on Spark gives its first answer. It can
write down what it loaded when it ends (`-XX:ArchiveClassesAtExit`) and map that file the next time, which takes some
seconds less; if anything about Java or Spark is another, it does without.
`python -m headwater.engine.spark_warm_up` makes the archive, beside the packages of this Python; sessions that are
started here use it if it is there.
"""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path


def archive(java: str) -> Path:
    """Where the archive is for a Java that says so of its version, and the Spark that is installed."""
    from pyspark.version import __version__ as spark

    both = hashlib.sha256(f"{spark} {java}".encode()).hexdigest()
    return Path(sys.prefix, "share", "headwater", f"classes-{both[:16]}.jsa")


def using(path: Path) -> str:
    """The option with which Java uses an archive; nothing if there is none."""
    return f'"-XX:SharedArchiveFile={path}"' if path.is_file() else ""


def writing(path: Path) -> str:
    """The option with which Java writes one when it ends."""
    return f'"-XX:ArchiveClassesAtExit={path}"'
