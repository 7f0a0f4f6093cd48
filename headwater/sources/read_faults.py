"""Files that cannot be read now and may be readable later: a fault of the disk, too many open files, no memory.

What is in such a file is not lost, so it is neither a bad element nor another file: the run ends, and goes on from its
checkpoint when the fault is mended. A file that is missing, or that nobody may read, is what it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from headwater.errors import can_pass
from headwater.sources.source import SourceError


@contextmanager
def report_read_faults(path: str) -> Iterator[None]:
    """A context that turns a fault into a `SourceError`; what is wrong with the file itself is raised as it is."""
    try:
        yield
    except OSError as error:
        if not can_pass(error):
            raise
        raise SourceError(
            f"{path} cannot be read now ({error.strerror}): see to the disk and run again; "
            "from a checkpoint the run goes on with this batch"
        ) from error
