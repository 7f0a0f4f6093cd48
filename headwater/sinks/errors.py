"""What goes wrong where answers and dead letters are written."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path

from headwater.errors import HeadwaterError, report_file_errors


class SinkError(HeadwaterError, RuntimeError):
    """Answers or dead letters that cannot be written; the message says what to do."""


def report_write_errors(folder: Path) -> AbstractContextManager[None]:
    """A context that turns what the file system raises into a `SinkError`."""
    remedy = (
        "make room, or ask for the right to write, and run again: from a checkpoint the run goes on with this batch"
    )
    return report_file_errors(SinkError, str(folder), remedy)
