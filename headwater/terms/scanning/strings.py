"""Where quoted strings and language tags end, for compiled code.

A string may hold UTF-8 and those escapes that its canonical form has too; then its bytes are its canonical text, and
can be hashed as they stand. Everything else gives `UNSURE_END`.
"""

from __future__ import annotations

import numba as nb
import numpy as np

from headwater.terms.scanning.memory import BLOCK, byte_at, lowest, string_stops
from headwater.terms.scanning.names import LONGEST, UNSURE_END

_ZERO = np.uint64(0)


@nb.njit(cache=True)
def _is_continued(at):  # type: ignore[no-untyped-def]
    return byte_at(at) & 0xC0 == 0x80


@nb.njit(cache=True)
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


@nb.njit(cache=True)
def _is_canonical_escape(letter):  # type: ignore[no-untyped-def]
    """Whether a backslash and this letter are how canonical text writes a character."""
    is_white = letter == 110 or letter == 114 or letter == 116 or letter == 98 or letter == 102
    return letter == 34 or letter == 92 or is_white


@nb.njit(cache=True)
def string_end(start):  # type: ignore[no-untyped-def]
    """For the address behind an opening quote: the address of the closing one, and whether there are escapes."""
    at = start
    escapes = False
    while at - start <= LONGEST:
        stops = string_stops(at)
        if stops == _ZERO:
            at += BLOCK
            continue
        at += lowest(stops)
        found = byte_at(at)
        if found == 34:
            return at, escapes
        if found == 92:
            if not _is_canonical_escape(byte_at(at + 1)):
                break
            escapes = True
            at += 2
        elif found >= 128:
            while byte_at(at) >= 128:
                length = character_length(at)
                if length == 0:
                    return np.int64(UNSURE_END), False
                at += length
        else:
            break
    return np.int64(UNSURE_END), False


@nb.njit(cache=True)
def _lower_letters(at):  # type: ignore[no-untyped-def]
    end = at
    while 97 <= byte_at(end) <= 122:
        end += 1
    return end


@nb.njit(cache=True)
def language_end(start):  # type: ignore[no-untyped-def]
    """The end of a language tag of a usual form in small letters, `en` or `de-ch`, whose `@` is at the address."""
    at = _lower_letters(start + 1)
    if at - start != 3 and at - start != 4:
        return np.int64(UNSURE_END)
    if byte_at(at) == 45:
        region = at + 1
        at = _lower_letters(region)
        if at - region != 2:
            return np.int64(UNSURE_END)
    found = byte_at(at)
    return at if found == 32 or found == 9 or found == 46 or found == 60 else np.int64(UNSURE_END)
