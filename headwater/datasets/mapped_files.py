"""Columns of integers or bytes in files. They are mapped into memory: only pages that are read are loaded."""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]


def map_ints(path: Path) -> Ints:
    """Map a file of 64-bit integers."""
    if not path.stat().st_size:
        return np.empty(0, dtype=np.int64)
    # A plain array over the map, because slices of `np.memmap` are slow.
    return np.asarray(np.memmap(path, dtype=np.int64, mode="r"))


def map_bytes(path: Path) -> Bytes:
    """Map a file of bytes."""
    return np.asarray(np.memmap(path, dtype=np.uint8, mode="r"))


def write_column(stream: BinaryIO, column: npt.NDArray[np.int64] | npt.NDArray[np.uint8]) -> None:
    """Write a column at the end of a file."""
    stream.write(np.ascontiguousarray(column).data)
