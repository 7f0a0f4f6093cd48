"""The newest version of a data set, found without reading its statements."""

from __future__ import annotations

import os
import re
from pathlib import Path

from headwater.datasets.errors import report_dataset_damage
from headwater.datasets.folder import MANIFEST, read_manifest

_VERSION = re.compile(rb'\{"version": (\d+)')


class VersionWatch:
    """Finds the newest version of a data set."""

    def __init__(self, folder: str | Path) -> None:
        self._folder = Path(folder)
        self._stamp: tuple[int, int] | None = None
        self._log = self._folder
        self._bytes_read = 0
        self._version = 0

    def newest_version(self) -> int:
        """Read the newest version; a `DataSetError` where the files of the data set cannot be read."""
        with report_dataset_damage(self._folder):
            return self._read_newest_version()

    def _read_newest_version(self) -> int:
        """Read the manifest if it was replaced, and the lines of the change log that are new."""
        status = os.stat(self._folder / MANIFEST)
        if (status.st_ino, status.st_mtime_ns) != self._stamp:
            manifest = read_manifest(self._folder)
            self._stamp = (status.st_ino, status.st_mtime_ns)
            self._log, self._bytes_read, self._version = self._folder / manifest.log, 0, manifest.version
        if self._log.exists() and self._log.stat().st_size > self._bytes_read:
            with open(self._log, "rb") as stream:
                stream.seek(self._bytes_read)
                new_bytes = stream.read()
            # A line counts when it has its line feed, and no hole that a power failure left.
            hole = new_bytes.find(b"\0")
            whole = new_bytes[: new_bytes.rfind(b"\n", 0, None if hole < 0 else hole) + 1]
            self._bytes_read += len(whole)
            for line in whole.splitlines()[-1:]:
                match = _VERSION.match(line)
                if match is None:
                    raise ValueError(f"the last line of {self._log.name} does not begin with its version")
                self._version = int(match[1])
        return self._version
