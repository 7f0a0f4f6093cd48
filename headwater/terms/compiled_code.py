"""Compiled code that a change of the sources has made stale is forgotten.

numba keeps what it compiled beside the sources, and compiles a function again when its own file has changed. It does
not see that a function which this one calls, from another file, has become another one: then the old code goes on to be
used. So all of it is forgotten when any file has changed that it may be made of, as after an update of a checkout.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from functools import cache
from pathlib import Path

FOLDERS = (
    "kernel/columns",
    "kernel/expressions",
    "kernel/operators",
    "kernel/aggregation",
    "kernel/compiling",
    "kernel/families",
    "kernel",
    "terms",
    "terms/ids",
    "terms/scanning",
    "datasets",
    "datasets/loading",
    "datasets/views",
)
"""Where functions are compiled, and where the numbers come from that are compiled into them."""
_NOTE = "compiled-from"


def forget_stale_code(package: Path) -> None:
    """Remove the compiled code of a package if it was compiled from other files than there are now."""
    folders = [package / folder for folder in FOLDERS]
    digest = _digest(folders)
    note = folders[0] / "__pycache__" / _NOTE
    # Where nothing can be written nothing was compiled, or numba keeps it elsewhere.
    with contextlib.suppress(OSError):
        if note.exists() and note.read_text() == digest:
            return
        for folder in folders:
            for compiled in (folder / "__pycache__").glob("*.nb[ic]"):
                compiled.unlink(missing_ok=True)
        note.parent.mkdir(exist_ok=True)
        unfinished = note.with_name(f"{_NOTE}-{os.getpid()}")
        unfinished.write_text(digest)
        unfinished.replace(note)


@cache
def forget_own_stale_code() -> None:
    """What whoever compiles does first, once in a process."""
    forget_stale_code(Path(__file__).resolve().parents[1])


def _digest(folders: list[Path]) -> str:
    found = hashlib.blake2b(digest_size=16)
    for folder in folders:
        with os.scandir(folder) as entries:
            for entry in sorted((one for one in entries if one.name.endswith(".py")), key=lambda one: one.name):
                facts = entry.stat()
                found.update(f"{folder.name}/{entry.name} {facts.st_mtime_ns} {facts.st_size}\n".encode())
    return found.hexdigest()
