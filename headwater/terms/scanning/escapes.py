"""Literals whose text is not canonical, for compiled code: they are written out canonically, and read from there.

`\\u00e9` becomes é, `\\'` a quote mark, `@EN` becomes `@en`. What is written is never longer than what was read. Raw
control characters are left to the parser.
"""

from __future__ import annotations

import numpy as np

from headwater.terms.compiled_code import compiled
from headwater.terms.scanning.ascii_bytes import (
    APOSTROPHE,
    AT_SIGN,
    BACKSLASH,
    BACKSPACE,
    BEYOND_ASCII,
    CAPITAL_A,
    CAPITAL_F,
    CAPITAL_U,
    CAPITAL_Z,
    CARRIAGE_RETURN,
    DELETE,
    DIGIT_0,
    DIGIT_9,
    FORM_FEED,
    LINE_FEED,
    QUOTE,
    SMALL_A,
    SMALL_B,
    SMALL_F,
    SMALL_N,
    SMALL_R,
    SMALL_T,
    SMALL_U,
    SPACE,
    TAB,
)
from headwater.terms.scanning.characters import character_length
from headwater.terms.scanning.iri_ends import LONGEST, UNSURE_END
from headwater.terms.scanning.literals import scan_literal
from headwater.terms.scanning.memory import byte_at, store_byte
from headwater.terms.scanning.strings import is_canonical_escape

ROOM = LONGEST + 1024
"""How many bytes may be written at the place of a literal, beside what it keeps."""

_LONGEST_SUFFIX = 512


@compiled
def _scan_hexadecimal(at, digits):  # type: ignore[no-untyped-def]
    """The number of some hexadecimal digits, or -1."""
    number = np.int64(0)
    for place in range(digits):
        found = byte_at(at + place)
        if DIGIT_0 <= found <= DIGIT_9:
            digit = found - DIGIT_0
        elif CAPITAL_A <= (found & 0xDF) <= CAPITAL_F:
            digit = (found & 0xDF) - CAPITAL_A + 10
        else:
            return np.int64(-1)
        number = number * 16 + digit
    return number


@compiled
def _escape_letter(code):  # type: ignore[no-untyped-def]
    """The letter behind the backslash that canonical text has for a character; 0 where it has the character itself."""
    if code in (QUOTE, BACKSLASH):
        return code
    if code == BACKSPACE:
        return np.int64(SMALL_B)
    if code == TAB:
        return np.int64(SMALL_T)
    if code == LINE_FEED:
        return np.int64(SMALL_N)
    if code == FORM_FEED:
        return np.int64(SMALL_F)
    return np.int64(SMALL_R) if code == CARRIAGE_RETURN else np.int64(0)


@compiled
def _write_character(code, to):  # type: ignore[no-untyped-def]
    """Write a character as canonical text has it; the address behind it, or `UNSURE_END`."""
    letter = _escape_letter(code)
    if letter:
        store_byte(to, BACKSLASH)
        store_byte(to + 1, letter)
        return to + 2
    if code < SPACE or code == DELETE or 0xD800 <= code < 0xE000 or code == 0xFFFE or code == 0xFFFF or code > 0x10FFFF:
        return np.int64(UNSURE_END)
    if code < 0x80:
        store_byte(to, code)
        return to + 1
    more = 1 if code < 0x800 else 2 if code < 0x10000 else 3
    lead = 0xC0 if more == 1 else 0xE0 if more == 2 else 0xF0
    store_byte(to, lead | (code >> (6 * more)))
    for place in range(1, more + 1):
        store_byte(to + place, 0x80 | ((code >> (6 * (more - place))) & 0x3F))
    return to + more + 1


@compiled
def _write_string(start, target):  # type: ignore[no-untyped-def]
    """Write a quoted string canonically; the addresses of the closing quote there and here."""
    unsure = (np.int64(UNSURE_END), np.int64(UNSURE_END))
    store_byte(target, QUOTE)
    at = start + 1
    to = target + 1
    while at - start <= LONGEST:
        found = byte_at(at)
        if found == QUOTE:
            store_byte(to, QUOTE)
            return at, to
        if found < SPACE or found == DELETE:
            return unsure
        if found == BACKSLASH:
            letter = byte_at(at + 1)
            if letter in (SMALL_U, CAPITAL_U):
                digits = 4 if letter == SMALL_U else 8
                to = _write_character(_scan_hexadecimal(at + 2, digits), to)
                if to == UNSURE_END:
                    return unsure
                at += 2 + digits
            elif letter == APOSTROPHE:
                store_byte(to, APOSTROPHE)
                at += 2
                to += 1
            elif is_canonical_escape(letter):
                store_byte(to, BACKSLASH)
                store_byte(to + 1, letter)
                at += 2
                to += 2
            else:
                return unsure
        else:
            length = np.int64(1) if found < BEYOND_ASCII else character_length(at)
            if length == 0:
                return unsure
            for place in range(length):
                store_byte(to + place, byte_at(at + place))
            at += length
            to += length
    return unsure


@compiled
def scan_rewritten_literal(start, target, wanted):  # type: ignore[no-untyped-def]
    """A literal by way of its canonical text, which is written to `target`: the same as `scan_literal` gives."""
    nothing = (np.int64(UNSURE_END), np.int64(0), np.int64(0), np.uint32(0))
    closing, written = _write_string(start, target)
    if closing == UNSURE_END:
        return nothing
    is_language = byte_at(closing + 1) == AT_SIGN
    place = 1
    while place < _LONGEST_SUFFIX:
        found = byte_at(closing + place)
        if is_language and CAPITAL_A <= found <= CAPITAL_Z:
            found += SMALL_A - CAPITAL_A
        store_byte(written + place, found)
        if found <= SPACE:
            break
        place += 1
    else:
        return nothing
    end, found_id, length, check = scan_literal(target, wanted)
    if end == UNSURE_END:
        return nothing
    return closing + (end - written), found_id, length, check
