"""The hash of a term's text: 63 bits that every process with the same key computes alike.

The text (canonical N-Triples, as UTF-8 bytes) is taken 16 bytes at a time, as two little-endian words; the last part is
filled up with zero bytes, and the length tells such texts apart. Each step multiplies two 64-bit words and mixes the
factors with both halves of the product:

    state = mix(first ^ state, second ^ key₁)          mix(a, b) = a ^ b ^ low half of a·b ^ high half of a·b

The first state, `key₁` and the two words of the last step are the secret key (`terms.ids.term_key`). Without it nobody
can aim at a state: neither at two texts with one state, nor at a factor of zero. Because the factors themselves are
mixed in, a factor that is zero by chance does not wipe out what was read before. This is the keyed form of wyhash that
keeps its factors. Compiled code has the same steps in `terms.scanning.byte_hashes`, at about a nanosecond per word.

Two texts may still have one hash by chance, once in 2⁶³ pairs. So a text has a *check*, too: 32 bits that are made of
the low halves of the same products, and are equal by chance once in 2³² pairs, whether or not the hashes are.

    check = (check rotated left by 29) + low half of a·b

Whoever compares terms by ids compares the checks when an id comes in again (`execution.id_owners`). What keeps texts by
their ids compares those (`HashCollision`).

>>> hash_text(b"<http://example.org/city>") == hash_text(b"<http://example.org/city>")
True
>>> hash_text(b"") == hash_text(bytes(1))
False
"""

from __future__ import annotations

import struct

from headwater.terms.ids.term_key import KEY_WORDS, choose_key

BLOCK_BYTES = 16
CHECK_ROTATION = 29
_WORD_MASK = (1 << 64) - 1


def hash_text(text: bytes) -> int:
    """63 bits for a text."""
    return hash_and_check(text)[0]


def hash_and_check(text: bytes) -> tuple[int, int]:
    """63 bits for a text, and the 32 bits of its check."""
    choose_key()
    state, second_key, last_key, length_key, hash_bits = KEY_WORDS
    check = 0
    length = len(text)
    blocks = -(-length // BLOCK_BYTES)
    words = struct.unpack(f"<{2 * blocks}Q", text.ljust(BLOCK_BYTES * blocks, b"\0"))
    for place in range(0, 2 * blocks, 2):
        state, check = _mix(words[place] ^ state, words[place + 1] ^ second_key, check)
    state, check = _mix(state ^ last_key, length ^ length_key, check)
    return state & hash_bits, (check ^ check >> 32) & 0xFFFFFFFF


def _mix(one: int, other: int, check: int) -> tuple[int, int]:
    product = one * other
    rotated = check << CHECK_ROTATION | check >> 64 - CHECK_ROTATION
    return (one ^ other ^ product ^ product >> 64) & _WORD_MASK, rotated + product & _WORD_MASK
