"""The hash of a term's text: 63 bits that every process on every machine computes alike.

The text (canonical N-Triples, as UTF-8 bytes) is taken 16 bytes at a time, as two little-endian words; the last part is
filled up with zero bytes, and the length tells such texts apart. Each step multiplies two 64-bit words and folds the
128 bits of the product into 64:

    state = fold((first ^ state) * (second ^ SECOND_KEY))          fold(p) = low half of p ^ high half of p

`SECOND_KEY` holds bytes that never occur in UTF-8, so that no text can make the second factor zero and wipe out what
was read before. Compiled code has the same steps in `terms.scanning.byte_hashes`, at about a nanosecond per word;
a cryptographic hash would take longer for a term than all the rest of reading it. Collisions need not be hard to find:
what keeps terms by their hash compares the texts (`HashCollision`).

>>> text_hash(b"<http://example.org/city>") == text_hash(b"<http://example.org/city>")
True
>>> text_hash(b"") == text_hash(bytes(1))
False
"""

from __future__ import annotations

import struct

STATE_KEY = 0x9E3779B97F4A7C15
SECOND_KEY = 0xF5C1B7E151628AED
LENGTH_KEY = 0xC2B2AE3D27D4EB4F
LAST_KEY = 0xD6E8FEB86659FD93
BLOCK_BYTES = 16
HASH_MASK = (1 << 63) - 1
_WORD_MASK = (1 << 64) - 1


def hash_text(text: bytes) -> int:
    """63 bits for a text."""
    length = len(text)
    blocks = -(-length // BLOCK_BYTES)
    words = struct.unpack(f"<{2 * blocks}Q", text.ljust(BLOCK_BYTES * blocks, b"\0"))
    state = STATE_KEY
    for place in range(0, 2 * blocks, 2):
        product = (words[place] ^ state) * (words[place + 1] ^ SECOND_KEY)
        state = (product ^ product >> 64) & _WORD_MASK
    product = (state ^ LAST_KEY) * (length ^ LENGTH_KEY)
    return (product ^ product >> 64) & HASH_MASK
