"""`headwater.terms.ids.text_hash.hash_text` for compiled code."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import numpy as np
import numpy.typing as npt

from headwater.terms.compiled_code import compiled
from headwater.terms.ids.term_key import choose_key
from headwater.terms.ids.text_hash import CHECK_ROTATION
from headwater.terms.scanning.memory import key_word, mix_product, word_at

_LEFT, _RIGHT = np.uint64(CHECK_ROTATION), np.uint64(64 - CHECK_ROTATION)
_HALF = np.uint64(32)
_HASH_BITS = 4
_ONE = np.uint64(1)
_ZERO = np.uint64(0)


@compiled
def low_bytes(word, count):  # type: ignore[no-untyped-def]
    """The first bytes of a word, fewer than eight, the others zero."""
    return word & ((_ONE << np.uint64(8 * count)) - _ONE)


@compiled
def hash_and_check_of(start, length):  # type: ignore[no-untyped-def]
    """The 63 bits of the text of some length at an address, and the 32 bits of its check."""
    state = key_word(0)
    second_key = key_word(1)
    check = _ZERO
    at = start
    end = start + length
    while at + 16 <= end:
        one, other = word_at(at) ^ state, word_at(at + 8) ^ second_key
        state = mix_product(one, other)
        check = (check << _LEFT | check >> _RIGHT) + one * other
        at += 16
    left = end - at
    if left > 0:
        one, other = word_at(at) ^ state, second_key
        if left >= 8:
            other = low_bytes(word_at(at + 8), left - 8) ^ second_key
        else:
            one = low_bytes(word_at(at), left) ^ state
        state = mix_product(one, other)
        check = (check << _LEFT | check >> _RIGHT) + one * other
    one, other = state ^ key_word(2), np.uint64(length) ^ key_word(3)
    state = mix_product(one, other)
    check = (check << _LEFT | check >> _RIGHT) + one * other
    return np.int64(state & key_word(_HASH_BITS)), np.uint32(check ^ check >> _HALF)


@compiled
def _hash_texts(text, ends, hashes, checks):  # type: ignore[no-untyped-def]
    start = 0
    for i in range(hashes.shape[0]):
        hashes[i], checks[i] = hash_and_check_of(text.ctypes.data + start, ends[i] - start)
        start = ends[i]


@compiled
def _check_texts(text, starts, checks):  # type: ignore[no-untyped-def]
    for i in range(checks.shape[0]):
        checks[i] = hash_and_check_of(text.ctypes.data + starts[i], starts[i + 1] - starts[i])[1]


def checks_of_blob(blob: npt.NDArray[np.uint8], starts: npt.NDArray[np.int64]) -> npt.NDArray[np.uint32]:
    """The checks of texts that lie in one array; text `i` is `blob[starts[i]:starts[i + 1]]`."""
    checks = np.empty(starts.shape[0] - 1, dtype=np.uint32)
    # Whole words are read, beyond the end of the last text, too.
    _check_texts(np.concatenate([blob, np.zeros(16, dtype=np.uint8)]), np.ascontiguousarray(starts), checks)
    return checks


def hash_texts(texts: Sequence[bytes]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint32]]:
    """The 63 bits of each text, and the 32 bits of its check."""
    choose_key()
    hashes = np.empty(len(texts), dtype=np.int64)
    checks = np.empty(len(texts), dtype=np.uint32)
    # Whole words are read, beyond the end of the last text, too.
    joined = np.frombuffer(bytearray(b"".join(texts)) + bytes(16), dtype=np.uint8)
    _hash_texts(joined, np.fromiter(accumulate(map(len, texts)), np.int64, len(texts)), hashes, checks)
    return hashes, checks
