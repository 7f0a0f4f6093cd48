"""Sizes and checksums of the files of a base, so that a file that was cut or changed is found and named.

Sizes are compared whenever a data set is opened, and the checksums of small files, too. All bytes are compared when a
load or a compaction reads them, and by `DataSet.verify`.
"""

from __future__ import annotations

import json
import zlib
from pathlib import Path

from headwater.datasets.errors import DataSetError

FILE = "checksums.json"
_SMALL = 4 << 20
_AT_A_TIME = 8 << 20


def write_checksums(folder: Path) -> None:
    """Write the sizes and checksums of all files in a folder."""
    found = {
        path.name: [path.stat().st_size, _checksum(path)] for path in sorted(folder.iterdir()) if path.name != FILE
    }
    (folder / FILE).write_text(json.dumps(found), "utf-8")


def check_files(folder: Path, *, every_byte: bool = False) -> None:
    """Raise a `DataSetError` that names the first file which is not as it was written."""
    if not (folder / FILE).exists():
        return
    try:
        expected = {str(name): (int(size), int(sum_)) for name, (size, sum_) in _read(folder / FILE).items()}
    except (ValueError, TypeError, AttributeError) as error:
        raise _damage(folder / FILE, f"it cannot be read ({error})") from None
    for name, (size, checksum) in expected.items():
        path = folder / name
        found = path.stat().st_size if path.exists() else None
        if found is None:
            raise _damage(path, "it is missing")
        if found != size:
            raise _damage(path, f"it has {found:,} bytes, and {size:,} were written")
        if (every_byte or size <= _SMALL) and _checksum(path) != checksum:
            raise _damage(path, "its checksum is not that of what was written")


def _read(path: Path) -> dict[str, tuple[int, int]]:
    content: dict[str, tuple[int, int]] = json.loads(path.read_text("utf-8"))
    return content


def _checksum(path: Path) -> int:
    checksum = 0
    with open(path, "rb") as stream:
        while block := stream.read(_AT_A_TIME):
            checksum = zlib.crc32(block, checksum)
    return checksum


def _damage(path: Path, reason: str) -> DataSetError:
    return DataSetError(
        f"{path} is damaged: {reason}. Put it back from a copy of the data set, or load the files again into a new "
        "folder with: headwater load FILE… --into NEW-FOLDER"
    )
