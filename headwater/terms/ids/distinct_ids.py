"""The different ids of an array, and where each of them occurs."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from headwater.terms.compiled_code import compiled
from headwater.terms.ids.term_texts import Ints

_FIRST_SLOTS = 1 << 10


@compiled
def _slot_of(term_id, different, slots):  # type: ignore[no-untyped-def]
    """The slot of an id, or a free one where it has none."""
    mask = slots.shape[0] - 1
    # Many ids are hashes; those of numbers differ in the low bits.
    slot = (term_id ^ (term_id >> 29) ^ (term_id >> 47)) & mask
    while slots[slot] >= 0 and different[slots[slot]] != term_id:
        slot = (slot + 1) & mask
    return slot


@compiled
def _find_distinct(ids, different, places, slots, only_hashes):  # type: ignore[no-untyped-def]
    """Put each id into `different` once, its number into `places`; gives how many, or -1 if the slots are too few."""
    count = 0
    for i in range(ids.shape[0]):
        if only_hashes and ids[i] < 0:
            continue
        slot = _slot_of(ids[i], different, slots)
        if slots[slot] < 0:
            if 2 * count >= slots.shape[0]:
                return -1
            slots[slot] = count
            different[count] = ids[i]
            count += 1
        places[i] = slots[slot]
    return count


@compiled
def _take_ids(ids, different, slots, is_taken, mask):  # type: ignore[no-untyped-def]
    for i in range(ids.shape[0]):
        number = slots[_slot_of(ids[i], different, slots)]
        mask[i] = number >= 0 and not is_taken[number]
        if number >= 0:
            is_taken[number] = True


class DistinctIds:
    """Each id of an array once, in the order of first occurrence (`ids`).

    `places` has the number of the id for each place of the array. With `only_hashes`, inline ids are passed over, and
    their places mean nothing.
    """

    def __init__(self, ids: Ints, *, only_hashes: bool = False) -> None:
        flat = np.ascontiguousarray(ids).reshape(-1)
        different, self.places = np.empty(flat.shape[0], np.int64), np.empty(flat.shape[0], np.int32)
        self._slots = np.full(_FIRST_SLOTS, -1, np.int32)
        while (count := _find_distinct(flat, different, self.places, self._slots, only_hashes)) < 0:
            self._slots = np.full(8 * self._slots.shape[0], -1, np.int32)
        self.ids = different[:count]
        self._is_taken = np.zeros(count, np.bool_)

    def take(self, ids: Ints) -> npt.NDArray[np.bool_]:
        """Where other ids are among these and were not taken before; each is taken once."""
        mask = np.empty(ids.shape[0], np.bool_)
        _take_ids(np.ascontiguousarray(ids), self.ids, self._slots, self._is_taken, mask)
        return mask
