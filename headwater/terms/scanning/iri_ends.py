"""Where IRIs and blank node labels end, for compiled code.

Each function takes the address of the first byte and gives the one behind the last, or `UNSURE_END` where the text is
wrong or so unusual that the parser shall decide: escapes, user names and IP addresses in the authority, characters
beyond U+D7FF. What is accepted here is an absolute IRI by RFC 3987, and stands in the text as its canonical form has
it.
"""

from __future__ import annotations

import numpy as np

from headwater.terms.compiled_code import compiled
from headwater.terms.scanning.ascii_bytes import (
    BEYOND_ASCII,
    COLON,
    DOT,
    GREATER_THAN,
    MINUS,
    NUMBER_SIGN,
    PERCENT,
    QUESTION_MARK,
    SLASH,
)
from headwater.terms.scanning.byte_hashes import low_bytes
from headwater.terms.scanning.characters import character_length
from headwater.terms.scanning.memory import (
    BLOCK,
    byte_at,
    colons,
    count_bits,
    iri_stops,
    lowest_bit,
    number_signs,
    word_at,
)

UNSURE_END = -1
LONGEST = 1 << 16
"""Longer names and strings are left to the parser, which has limits of its own."""

_HTTP = np.uint64(int.from_bytes(b"http://", "little"))
_HTTPS = np.uint64(int.from_bytes(b"https://", "little"))
_ONE = np.uint64(1)
_ZERO = np.uint64(0)

_LETTER = 1
_DIGIT = 2
_MORE_OF_A_SCHEME = 4
_MORE_OF_A_NAME = 8
_MORE_OF_A_PATH = 16
_HEX = 32
_LABEL = 64


def _character_classes() -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    classes = np.zeros(256, dtype=np.uint8)
    for characters, bits in (
        ("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz", _LETTER | _MORE_OF_A_NAME | _MORE_OF_A_PATH | _LABEL),
        ("0123456789", _DIGIT | _HEX | _MORE_OF_A_NAME | _MORE_OF_A_PATH | _LABEL),
        ("ABCDEFabcdef", _HEX),
        ("+-.", _MORE_OF_A_SCHEME),
        ("-._~!$&'()*+,;=", _MORE_OF_A_NAME | _MORE_OF_A_PATH),
        (":@/?", _MORE_OF_A_PATH),
        ("_-", _LABEL),
    ):
        for character in characters:
            classes[ord(character)] |= bits
    return classes


_CLASSES = _character_classes()


@compiled
def _is_in_class(at, bits):  # type: ignore[no-untyped-def]
    return (_CLASSES[byte_at(at)] & bits) != 0


@compiled
def iri_end(start):  # type: ignore[no-untyped-def]
    """The address behind the `<…>` at `start`, or `UNSURE_END`; quick for http IRIs without a further `:` or `@`."""
    first = word_at(start + 1)
    if first == _HTTPS:
        at = start + 9
    elif low_bytes(first, 7) == _HTTP:
        at = start + 8
    else:
        return _unusual_iri_end(start)
    fragments = np.int64(0)
    odd = _ZERO
    stops = iri_stops(at)
    while stops == _ZERO:
        fragments += count_bits(number_signs(at))
        odd |= colons(at)
        at += BLOCK
        if at - start > LONGEST:
            return np.int64(UNSURE_END)
        stops = iri_stops(at)
    place = lowest_bit(stops)
    before = (_ONE << np.uint64(place)) - _ONE
    fragments += count_bits(number_signs(at) & before)
    odd |= colons(at) & before
    at += place
    if odd != _ZERO or fragments > 1 or byte_at(at) != GREATER_THAN:
        return _unusual_iri_end(start)
    return at + 1


@compiled
def _unusual_iri_end(start):  # type: ignore[no-untyped-def]
    """The end of `<…>` for any scheme; `UNSURE_END` where the parser shall decide whether it is valid."""
    at = start + 1
    if not _is_in_class(at, _LETTER):
        return np.int64(UNSURE_END)
    while _is_in_class(at, _LETTER | _DIGIT | _MORE_OF_A_SCHEME):
        at += 1
    if byte_at(at) != COLON:
        return np.int64(UNSURE_END)
    at += 1
    if byte_at(at) == SLASH and byte_at(at + 1) == SLASH:
        at += 2
        while _is_in_class(at, _MORE_OF_A_NAME):
            at += 1
        if byte_at(at) == COLON:
            at += 1
            while _is_in_class(at, _DIGIT):
                at += 1
        delimiter = byte_at(at)
        if delimiter != SLASH and delimiter != QUESTION_MARK and delimiter != NUMBER_SIGN and delimiter != GREATER_THAN:
            return np.int64(UNSURE_END)
    in_fragment = False
    while True:
        while _is_in_class(at, _MORE_OF_A_PATH):
            at += 1
        found = byte_at(at)
        if found == GREATER_THAN:
            return at + 1 if at - start <= LONGEST else np.int64(UNSURE_END)
        if found == NUMBER_SIGN and not in_fragment:
            in_fragment = True
        elif found == PERCENT and _is_in_class(at + 1, _HEX) and _is_in_class(at + 2, _HEX):
            at += 2
        elif found >= BEYOND_ASCII and _letter_length(at) > 0:
            at += _letter_length(at) - 1
        else:
            return np.int64(UNSURE_END)
        at += 1


@compiled
def _letter_length(at):  # type: ignore[no-untyped-def]
    """How many bytes a character from U+00A0 to U+D7FF has, all of which an IRI may hold; 0 for others."""
    first = byte_at(at)
    is_control = first == 0xC2 and byte_at(at + 1) < 0xA0
    return np.int64(0) if is_control or first > 0xED else character_length(at)


@compiled
def label_end(start):  # type: ignore[no-untyped-def]
    """The end of a blank node `_:label` whose label has letters of ASCII, digits, `_` and `-`, not as the first."""
    at = start + 2
    if byte_at(start + 1) != COLON or byte_at(at) == MINUS:
        return np.int64(UNSURE_END)
    while _is_in_class(at, _LABEL):
        at += 1
    # A dot may belong to the label or end the statement.
    if at == start + 2 or byte_at(at) == DOT or byte_at(at) >= BEYOND_ASCII or at - start > LONGEST:
        return np.int64(UNSURE_END)
    return at
