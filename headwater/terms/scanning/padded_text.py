"""Text in memory with room behind it, as compiled code wants it."""

from __future__ import annotations

from dataclasses import dataclass
from io import FileIO
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from headwater.terms.scanning.memory import PADDING

Bytes: TypeAlias = npt.NDArray[np.uint8]
LARGEST = (1 << 31) - 1
"""Spans have 32 bits."""


@dataclass(frozen=True, slots=True)
class PaddedText:
    """Some bytes, with a line feed and `PADDING` bytes behind them that may be read."""

    array: Bytes
    length: int

    @classmethod
    def empty(cls, length: int) -> PaddedText:
        """Room for a text, whose bytes are still to be written."""
        if length > LARGEST:
            raise ValueError(f"a text of {length} bytes is too large to be scanned at once: scan it in ranges")
        array = np.empty(length + PADDING, dtype=np.uint8)
        array[length:] = 0
        array[length] = ord("\n")
        return cls(array, length)

    @classmethod
    def of(cls, data: bytes | bytearray | memoryview | Bytes) -> PaddedText:
        """A copy of some bytes."""
        given = data if isinstance(data, np.ndarray) else np.frombuffer(data, dtype=np.uint8)
        text = cls.empty(given.size)
        text.array[: text.length] = given.reshape(-1).view(np.uint8)
        return text

    @classmethod
    def read(cls, stream: FileIO, length: int) -> PaddedText:
        """Up to so many bytes of a file, which is read straight into its place."""
        text = cls.empty(length)
        found = 0
        while found < length:
            more = stream.readinto(memoryview(text.array.data)[found:length])
            if not more:
                text.array[found] = ord("\n")
                return cls(text.array, found)
            found += more
        return text

    @property
    def address(self) -> int:
        return int(self.array.ctypes.data)

    @property
    def content(self) -> Bytes:
        """The text without the padding."""
        return self.array[: self.length]
