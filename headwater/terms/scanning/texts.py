"""The texts behind ids: each different hashed id once, with its canonical N-Triples text, in one piece of memory.

Only terms that are marked as wanted are collected (`patterns`), and an inline id needs no text. Every occurrence of an
id is compared with the text that came first: two texts with one id raise `HashCollision`.
"""

from __future__ import annotations

import numba as nb
import numpy as np

from headwater.terms.scanning.hashing import low_bytes
from headwater.terms.scanning.memory import store_word, word_at

_ZERO = np.uint64(0)
_HALF = np.uint64(32)
_SMALLEST = 1024
_PLACES = 3


@nb.njit(cache=True)
def same_text(one, other, length):  # type: ignore[no-untyped-def]
    """Whether two texts of one length are equal."""
    at = 0
    while at + 8 <= length:
        if word_at(one + at) != word_at(other + at):
            return False
        at += 8
    return low_bytes(word_at(one + at) ^ word_at(other + at), length - at) == _ZERO


@nb.njit(cache=True)
def copy_text(source, target, length):  # type: ignore[no-untyped-def]
    """Copy a text; up to seven bytes behind both are touched."""
    at = 0
    while at < length:
        store_word(target + at, word_at(source + at))
        at += 8


@nb.njit(cache=True)
def address_of(base, extra, start):  # type: ignore[no-untyped-def]
    """Where a span begins: in the text, or, where its start is negative, among the rewritten texts."""
    return base + start if start >= 0 else extra + ~np.int64(start)


@nb.njit(cache=True)
def _slot_of(term_id, size):  # type: ignore[no-untyped-def]
    # The bits of a hash are as good as any.
    return (np.int64(term_id) ^ (np.int64(term_id) >> 32)) & (size - 1)


@nb.njit(cache=True)
def _grown(slots, ids, count):  # type: ignore[no-untyped-def]
    size = 2 * slots.shape[0]
    larger = np.zeros(size, dtype=np.int32)
    for number in range(count):
        slot = _slot_of(ids[number], size)
        while larger[slot] != 0:
            slot = (slot + 1) & (size - 1)
        larger[slot] = number + 1
    return larger


@nb.njit(cache=True)
def _twice(array):  # type: ignore[no-untyped-def]
    larger = np.empty(2 * array.shape[0], dtype=array.dtype)
    larger[: array.shape[0]] = array
    return larger


@nb.njit(cache=True)
def collect(base, extra, triples, spans, marks, names, name_spans):  # type: ignore[no-untyped-def]
    """The different hashed ids among the marked terms and some names, with the address and length of their texts.

    Gives ids, addresses, lengths, their number, and of a collision the two addresses and lengths and the id (all zero
    where there is none).
    """
    slots = np.zeros(2 * _SMALLEST, dtype=np.int32)
    ids = np.empty(_SMALLEST, dtype=np.int64)
    addresses = np.empty(_SMALLEST, dtype=np.int64)
    lengths = np.empty(_SMALLEST, dtype=np.int64)
    last_id = np.full(_PLACES + 1, -1, dtype=np.int64)
    last_address = np.zeros(_PLACES + 1, dtype=np.int64)
    last_length = np.zeros(_PLACES + 1, dtype=np.int64)
    clash = np.zeros(5, dtype=np.int64)
    count = 0
    rows = triples.shape[0]
    for row in range(rows + names.shape[0]):
        first, behind = (0, _PLACES) if row < rows else (_PLACES, _PLACES + 1)
        for place in range(first, behind):
            if place < _PLACES:
                if (marks[row] >> place) & 1 == 0:
                    continue
                term_id = triples[row, place]
                start, length = spans[row, place, 0], np.int64(spans[row, place, 1])
            else:
                term_id = names[row - rows]
                start, length = name_spans[row - rows, 0], np.int64(name_spans[row - rows, 1])
            if term_id < 0:
                continue
            address = address_of(base, extra, start)
            if term_id == last_id[place]:
                known, known_length = last_address[place], last_length[place]
            else:
                size = slots.shape[0]
                slot = _slot_of(term_id, size)
                while slots[slot] != 0 and ids[slots[slot] - 1] != term_id:
                    slot = (slot + 1) & (size - 1)
                if slots[slot] == 0:
                    ids[count], addresses[count], lengths[count] = term_id, address, length
                    count += 1
                    slots[slot] = count
                    if count == ids.shape[0]:
                        ids, addresses, lengths = _twice(ids), _twice(addresses), _twice(lengths)
                        slots = _grown(slots, ids, count)
                    known, known_length = address, length
                else:
                    number = slots[slot] - 1
                    known, known_length = addresses[number], lengths[number]
            if known != address and (known_length != length or not same_text(known, address, length)):
                clash[0], clash[1], clash[2], clash[3], clash[4] = known, known_length, address, length, term_id
                return ids, addresses, lengths, count, clash
            last_id[place], last_address[place], last_length[place] = term_id, address, length
    return ids, addresses, lengths, count, clash


@nb.njit(cache=True)
def gather(addresses, offsets, target):  # type: ignore[no-untyped-def]
    """Copy texts one behind the other."""
    for number in range(addresses.shape[0]):
        copy_text(addresses[number], target + offsets[number], offsets[number + 1] - offsets[number])
