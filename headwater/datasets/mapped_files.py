"""Columns of numbers in files, read through the page cache: nothing is loaded that nobody looks at."""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]


def mapped_ints(path: Path) -> Ints:
    """The numbers of a file."""
    if not path.stat().st_size:
        return np.empty(0, dtype=np.int64)
    # A plain array over the map: numpy's own class for maps makes every slice slow.
    return np.asarray(np.memmap(path, dtype=np.int64, mode="r"))


def mapped_bytes(path: Path) -> Bytes:
    """The bytes of a file."""
    return np.asarray(np.memmap(path, dtype=np.uint8, mode="r"))


def append(stream: BinaryIO, column: npt.NDArray[np.int64] | npt.NDArray[np.uint8]) -> None:
    """Write a column behind what the file has."""
    stream.write(np.ascontiguousarray(column).data)
