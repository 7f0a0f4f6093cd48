"""The hash of a term's text: 63 bits that every process with the same key computes alike.

The text (canonical N-Triples, as UTF-8 bytes) is taken 16 bytes at a time, as two little-endian words; the last part is
filled up with zero bytes, and the length tells such texts apart. Each step multiplies two 64-bit words and mixes the
factors with both halves of the product:

    state = mix(first ^ state, second ^ key₁)          mix(a, b) = a ^ b ^ low half of a·b ^ high half of a·b

The first state, `key₁` and the two words of the last step are the secret key (`terms.ids.term_key`). Without it nobody
can aim at a state: neither at two texts with one state, nor at a factor of zero. Because the factors themselves are
mixed in, a factor that is zero by chance does not wipe out what was read before. This is the keyed form of wyhash that
keeps its factors. Compiled code has the same steps in `terms.scanning.byte_hashes`, at about a nanosecond per word.

Two texts may still have one hash by chance, once in 2⁶³ pairs. What keeps texts by their hash compares them
(`HashCollision`).

>>> hash_text(b"<http://example.org/city>") == hash_text(b"<http://example.org/city>")
True
>>> hash_text(b"") == hash_text(bytes(1))
False
"""

from __future__ import annotations

import struct

from headwater.terms.ids.term_key import KEY_WORDS, choose_key

BLOCK_BYTES = 16
HASH_MASK = (1 << 63) - 1
_WORD_MASK = (1 << 64) - 1


def hash_text(text: bytes) -> int:
    """63 bits for a text."""
    choose_key()
    state, second_key, last_key, length_key = KEY_WORDS
    length = len(text)
    blocks = -(-length // BLOCK_BYTES)
    words = struct.unpack(f"<{2 * blocks}Q", text.ljust(BLOCK_BYTES * blocks, b"\0"))
    for place in range(0, 2 * blocks, 2):
        state = _mix(words[place] ^ state, words[place + 1] ^ second_key)
    return _mix(state ^ last_key, length ^ length_key) & HASH_MASK


def _mix(one: int, other: int) -> int:
    product = one * other
    return (one ^ other ^ product ^ product >> 64) & _WORD_MASK
