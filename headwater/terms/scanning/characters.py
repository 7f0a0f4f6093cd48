"""Characters of UTF-8, for compiled code."""

from __future__ import annotations

import numpy as np

from headwater.terms.compiled_code import compiled
from headwater.terms.scanning.memory import byte_at


@compiled
def _is_continued(at):  # type: ignore[no-untyped-def]
    return byte_at(at) & 0xC0 == 0x80


@compiled
def character_length(at):  # type: ignore[no-untyped-def]
    """How many bytes the character at an address has, which is not ASCII; 0 if it is no UTF-8, or not a character."""
    first = byte_at(at)
    second = byte_at(at + 1)
    if first < 0xC2 or not _is_continued(at + 1):
        return np.int64(0)
    if first < 0xE0:
        return np.int64(2)
    if not _is_continued(at + 2):
        return np.int64(0)
    if first < 0xF0:
        if (first == 0xE0 and second < 0xA0) or (first == 0xED and second > 0x9F):
            return np.int64(0)
        not_a_character = first == 0xEF and second == 0xBF and byte_at(at + 2) >= 0xBE
        return np.int64(0) if not_a_character else np.int64(3)
    if first > 0xF4 or not _is_continued(at + 3):
        return np.int64(0)
    if (first == 0xF0 and second < 0x90) or (first == 0xF4 and second > 0x8F):
        return np.int64(0)
    return np.int64(4)
