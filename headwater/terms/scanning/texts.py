"""The texts behind ids: each different hashed id once, with its canonical N-Triples text, in one piece of memory.

Only terms that are marked as wanted are collected (`patterns`), and an inline id needs no text. Every occurrence of an
id is compared with the text that came first: two texts with one id raise `HashCollision`.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from headwater.terms.compiled_code import compiled
from headwater.terms.scanning.byte_hashes import low_bytes
from headwater.terms.scanning.memory import store_word, word_at

_ZERO = np.uint64(0)
_HALF = np.uint64(32)
_SMALLEST = 1024
_PLACES = 3
_ID, _ADDRESS, _LENGTH = 0, 1, 2

Ints = npt.NDArray[np.int64]
Spans = npt.NDArray[np.int32]
Marks = npt.NDArray[np.uint8]


@compiled
def is_same_text(one, other, length):  # type: ignore[no-untyped-def]
    """Whether two texts of one length are equal."""
    at = 0
    while at + 8 <= length:
        if word_at(one + at) != word_at(other + at):
            return False
        at += 8
    return low_bytes(word_at(one + at) ^ word_at(other + at), length - at) == _ZERO


@compiled
def copy_text(source, target, length):  # type: ignore[no-untyped-def]
    """Copy a text; up to seven bytes behind both are touched."""
    at = 0
    while at < length:
        store_word(target + at, word_at(source + at))
        at += 8


@compiled
def address_of(base, extra, start):  # type: ignore[no-untyped-def]
    """Where a span begins: in the text, or, where its start is negative, among the rewritten texts."""
    return base + start if start >= 0 else extra + ~np.int64(start)


@compiled
def _slot_of(term_id, size):  # type: ignore[no-untyped-def]
    # The bits of a hash are as good as any.
    return (np.int64(term_id) ^ (np.int64(term_id) >> 32)) & (size - 1)


@compiled
def _enter_ids(slots, found, count):  # type: ignore[no-untyped-def]
    """Give each of some different ids a slot."""
    size = slots.shape[0]
    for number in range(count):
        slot = _slot_of(found[number, _ID], size)
        while slots[slot] != 0:
            slot = (slot + 1) & (size - 1)
        slots[slot] = number + 1


@compiled(nogil=True)
def _collect_rows(base, extra, triples, spans, marks, names, name_spans, row, count, slots, found, last, clash):  # type: ignore[no-untyped-def]
    """Go on at a row while there is room in `found`; gives the row where it ends and how many ids there are.

    Room is made outside: compiled code that makes arrays counts references to all it has, again and again.
    """
    rows = triples.shape[0]
    size = slots.shape[0]
    while row < rows + names.shape[0] and count + _PLACES <= found.shape[0]:
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
            if term_id == last[place, _ID]:
                known, known_length = last[place, _ADDRESS], last[place, _LENGTH]
            else:
                slot = _slot_of(term_id, size)
                while slots[slot] != 0 and found[slots[slot] - 1, _ID] != term_id:
                    slot = (slot + 1) & (size - 1)
                if slots[slot] == 0:
                    found[count, _ID], found[count, _ADDRESS], found[count, _LENGTH] = term_id, address, length
                    count += 1
                    slots[slot] = count
                    known, known_length = address, length
                else:
                    number = slots[slot] - 1
                    known, known_length = found[number, _ADDRESS], found[number, _LENGTH]
            if known != address and (known_length != length or not is_same_text(known, address, length)):
                clash[0], clash[1], clash[2], clash[3], clash[4] = known, known_length, address, length, term_id
                return rows + names.shape[0], count
            last[place, _ID], last[place, _ADDRESS], last[place, _LENGTH] = term_id, address, length
        row += 1
    return row, count


def collect_texts(
    base: int, extra: int, triples: Ints, spans: Spans, marks: Marks, names: Ints, name_spans: Spans
) -> tuple[Ints, Ints]:
    """The different hashed ids among the marked terms and some names, with the address and length of their texts.

    Gives a row (id, address, length) for each, and of a collision the two addresses and lengths and the id, all zero
    where there is none.
    """
    capacity = _SMALLEST
    slots = np.zeros(2 * capacity, dtype=np.int32)
    found = np.empty((capacity, 3), dtype=np.int64)
    last = np.full((_PLACES + 1, 3), -1, dtype=np.int64)
    clash = np.zeros(5, dtype=np.int64)
    row = count = 0
    while True:
        row, count = _collect_rows(
            base, extra, triples, spans, marks, names, name_spans, row, count, slots, found, last, clash
        )
        if row == len(triples) + len(names):
            return found[:count], clash
        capacity *= 4
        larger = np.empty((capacity, 3), dtype=np.int64)
        larger[:count] = found[:count]
        slots, found = np.zeros(2 * capacity, dtype=np.int32), larger
        _enter_ids(slots, found, count)


@compiled
def copy_texts(addresses, offsets, target):  # type: ignore[no-untyped-def]
    """Copy texts one behind the other."""
    for number in range(addresses.shape[0]):
        copy_text(addresses[number], target + offsets[number], offsets[number + 1] - offsets[number])
