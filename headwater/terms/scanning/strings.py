"""Where quoted strings and language tags end, for compiled code.

A string may hold UTF-8 and those escapes that its canonical form has too; then its bytes are its canonical text, and
can be hashed as they stand. Everything else gives `UNSURE_END`.
"""

from __future__ import annotations

import numpy as np

from headwater.terms.compiled_code import compiled
from headwater.terms.scanning.ascii_bytes import (
    BACKSLASH,
    BEYOND_ASCII,
    DIGIT_0,
    DIGIT_9,
    DOT,
    LESS_THAN,
    MINUS,
    QUOTE,
    SMALL_A,
    SMALL_B,
    SMALL_F,
    SMALL_N,
    SMALL_R,
    SMALL_T,
    SMALL_Z,
    SPACE,
    TAB,
)
from headwater.terms.scanning.characters import character_length
from headwater.terms.scanning.iri_ends import LONGEST, UNSURE_END
from headwater.terms.scanning.memory import BLOCK, byte_at, lowest_bit, string_stops

_ZERO = np.uint64(0)


@compiled
def is_canonical_escape(letter):  # type: ignore[no-untyped-def]
    """Whether a backslash and this letter are how canonical text writes a character."""
    return letter in (QUOTE, BACKSLASH, SMALL_N, SMALL_R, SMALL_T, SMALL_B, SMALL_F)


@compiled
def string_end(start):  # type: ignore[no-untyped-def]
    """For the address behind an opening quote: the address of the closing one, and whether there are escapes."""
    at = start
    escapes = False
    while at - start <= LONGEST:
        stops = string_stops(at)
        if stops == _ZERO:
            at += BLOCK
            continue
        at += lowest_bit(stops)
        found = byte_at(at)
        if found == QUOTE:
            return at, escapes
        if found == BACKSLASH:
            if not is_canonical_escape(byte_at(at + 1)):
                break
            escapes = True
            at += 2
        elif found >= BEYOND_ASCII:
            while byte_at(at) >= BEYOND_ASCII:
                length = character_length(at)
                if length == 0:
                    return np.int64(UNSURE_END), False
                at += length
        else:
            break
    return np.int64(UNSURE_END), False


@compiled
def _subtag_end(at, letters):  # type: ignore[no-untyped-def]
    """The end of the small letters, or of the digits, that begin at an address."""
    first, last = (SMALL_A, SMALL_Z) if letters else (DIGIT_0, DIGIT_9)
    while first <= byte_at(at) <= last:
        at += 1
    return at


@compiled
def language_end(start):  # type: ignore[no-untyped-def]
    """The end of a language tag whose `@` is at the address: language, script and region, in small letters."""
    at = _subtag_end(start + 1, True)
    if at - start != 3 and at - start != 4:
        return np.int64(UNSURE_END)
    if byte_at(at) == MINUS and _subtag_end(at + 1, True) - at == 5:
        at += 5
    if byte_at(at) == MINUS:
        if _subtag_end(at + 1, True) - at == 3:
            at += 3
        elif _subtag_end(at + 1, False) - at == 4:
            at += 4
        else:
            return np.int64(UNSURE_END)
    found = byte_at(at)
    return at if found in (SPACE, TAB, DOT, LESS_THAN) else np.int64(UNSURE_END)
