"""Temporary folders that leave nothing behind, whatever ends their process.

A folder is removed when its owner is done with it, or at the end of the process. A process that is killed removes
nothing; so each folder holds a file that its process has locked for as long as it lives. Whoever makes the first folder
of a process removes those of others whose lock nobody has any more. Folders of other users, of other programs, and
those without such a file are left alone.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from functools import cache
from pathlib import Path
from types import TracebackType

from headwater.terms.durable_files import lock_file

_PREFIX = "headwater-"
_OWNER = ".owner"


class ScratchFolder:
    """A temporary folder of this process; `purpose` is a part of its name."""

    def __init__(self, purpose: str) -> None:
        sweep_once()
        while True:
            self.path = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{purpose}-"))
            try:
                self._lock = lock_file(self.path / _OWNER)
                break
            except (BlockingIOError, FileNotFoundError):
                # Somebody swept the folder between the two lines.
                continue
        self._process = os.getpid()
        self._is_removed = False
        atexit.register(self.remove)

    def remove(self) -> None:
        """Remove the folder with all that is in it; what forks of this process call does nothing."""
        if self._is_removed or os.getpid() != self._process:
            return
        self._is_removed = True
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._lock)
        atexit.unregister(self.remove)

    def __enter__(self) -> Path:
        return self.path

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.remove()


@cache
def sweep_once() -> None:
    """Sweep, the first time that it is called in a process."""
    sweep_scratch_folders()


def sweep_scratch_folders() -> int:
    """Remove the folders of processes that are gone; gives how many there were."""
    removed = 0
    try:
        entries = [one for one in os.scandir(tempfile.gettempdir()) if one.name.startswith(_PREFIX)]
    except OSError:
        return 0
    for entry in entries:
        try:
            is_ours = entry.is_dir(follow_symlinks=False) and entry.stat(follow_symlinks=False).st_uid == os.getuid()
            owner = Path(entry.path, _OWNER)
            if not is_ours or owner.is_symlink() or not owner.is_file():
                continue
            lock = lock_file(owner)
        except OSError:
            # Its process is at work, or somebody else sweeps it.
            continue
        shutil.rmtree(entry.path, ignore_errors=True)
        os.close(lock)
        removed += 1
    return removed
