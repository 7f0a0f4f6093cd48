"""`headwater.terms.ids.text_hash.hash_text` for compiled code."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import numpy as np
import numpy.typing as npt

from headwater.terms.compiled_code import compiled
from headwater.terms.ids.term_key import choose_key
from headwater.terms.ids.text_hash import HASH_MASK
from headwater.terms.scanning.memory import key_word, mix_product, word_at

_HASH_MASK = np.uint64(HASH_MASK)
_ONE = np.uint64(1)
_ZERO = np.uint64(0)


@compiled
def low_bytes(word, count):  # type: ignore[no-untyped-def]
    """The first bytes of a word, fewer than eight, the others zero."""
    return word & ((_ONE << np.uint64(8 * count)) - _ONE)


@compiled
def hash_of(start, length):  # type: ignore[no-untyped-def]
    """The 63 bits of the text of some length at an address."""
    state = key_word(0)
    second_key = key_word(1)
    at = start
    end = start + length
    while at + 16 <= end:
        state = mix_product(word_at(at) ^ state, word_at(at + 8) ^ second_key)
        at += 16
    left = end - at
    if left >= 8:
        state = mix_product(word_at(at) ^ state, low_bytes(word_at(at + 8), left - 8) ^ second_key)
    elif left > 0:
        state = mix_product(low_bytes(word_at(at), left) ^ state, second_key)
    return np.int64(mix_product(state ^ key_word(2), np.uint64(length) ^ key_word(3)) & _HASH_MASK)


@compiled
def _hash_texts(text, ends, hashes):  # type: ignore[no-untyped-def]
    start = 0
    for i in range(hashes.shape[0]):
        hashes[i] = hash_of(text.ctypes.data + start, ends[i] - start)
        start = ends[i]


def hash_texts(texts: Sequence[bytes]) -> npt.NDArray[np.int64]:
    """The 63 bits of each text."""
    choose_key()
    hashes = np.empty(len(texts), dtype=np.int64)
    # Whole words are read, beyond the end of the last text, too.
    joined = np.frombuffer(bytearray(b"".join(texts)) + bytes(16), dtype=np.uint8)
    _hash_texts(joined, np.fromiter(accumulate(map(len, texts)), np.int64, len(texts)), hashes)
    return hashes
