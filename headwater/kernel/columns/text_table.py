"""Texts of terms by their ids, in a few arrays: what streams bring along until somebody asks for a term (CQ5).

Most terms of a stream come and go without ever being asked for. So their texts are taken in, looked up and given up by
the thousand, in compiled code, and become objects only one by one.

    slots[slot] = place + 1      0: empty; open addressing, the bits of a hashed id are its hash
    text of ids[place]           blob[starts[place] : starts[place + 1]]

Two texts with one id are an error that is told: every text is compared with the one that came first.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from headwater.kernel.columns.prefetching import prefetch
from headwater.kernel.columns.ring_index import AHEAD, Ints, Links
from headwater.kernel.columns.row_numbers import enlarged, grown
from headwater.terms.compiled_code import compiled
from headwater.terms.ids.dictionary import HashCollision
from headwater.terms.ids.term_texts import Kinds, TermTexts, kinds_of_beginnings, term_of_text

_FEWEST_SLOTS = 64


@compiled(inline="always")
def _slot_of(slots, ids, number):  # type: ignore[no-untyped-def]
    """The slot of an id, or the empty one where it belongs."""
    mask = slots.shape[0] - 1
    slot = number & mask
    while slots[slot] != 0 and ids[slots[slot] - 1] != number:
        slot = (slot + 1) & mask
    return slot


@compiled(inline="always")
def _look_ahead(slots, ids, numbers, i):  # type: ignore[no-untyped-def]
    """Ask for the slot of an id some steps before its turn, and for what the slot names when that has arrived."""
    mask = slots.shape[0] - 1
    prefetch(slots, numbers[i + 2 * AHEAD] & mask)
    following = slots[numbers[i + AHEAD] & mask]
    if following:
        prefetch(ids, np.int64(following) - 1)


@compiled
def _enter(slots, ids, size):  # type: ignore[no-untyped-def]
    """Give each of some different ids a slot."""
    for place in range(size):
        slots[_slot_of(slots, ids, ids[place])] = place + 1


@compiled
def _add(slots, ids, starts, blob, size, numbers, offsets, texts):  # type: ignore[no-untyped-def]
    """Take texts in, for which there is room; gives how many there are now, and the first that clashes or -1."""
    for i in range(numbers.shape[0]):
        if i + 2 * AHEAD < numbers.shape[0]:
            _look_ahead(slots, ids, numbers, i)
        slot = _slot_of(slots, ids, numbers[i])
        start = offsets[i]
        length = offsets[i + 1] - start
        if slots[slot] == 0:
            at = starts[size]
            for k in range(length):
                blob[at + k] = texts[start + k]
            ids[size] = numbers[i]
            size += 1
            starts[size] = at + length
            slots[slot] = size
        else:
            at = starts[slots[slot] - 1]
            if starts[slots[slot]] - at != length:
                return size, i
            for k in range(length):
                if blob[at + k] != texts[start + k]:
                    return size, i
    return size, -1


@compiled
def _places(slots, ids, numbers, places):  # type: ignore[no-untyped-def]
    for i in range(numbers.shape[0]):
        if i + 2 * AHEAD < numbers.shape[0]:
            _look_ahead(slots, ids, numbers, i)
        places[i] = np.int64(slots[_slot_of(slots, ids, numbers[i])]) - 1


@compiled
def _mark(slots, ids, numbers, marks):  # type: ignore[no-untyped-def]
    for i in range(numbers.shape[0]):
        if i + 2 * AHEAD < numbers.shape[0]:
            _look_ahead(slots, ids, numbers, i)
        place = slots[_slot_of(slots, ids, numbers[i])]
        if place:
            marks[place - 1] = True


@compiled
def _gather(starts, blob, places, offsets, texts):  # type: ignore[no-untyped-def]
    for i in range(places.shape[0]):
        start = starts[places[i]]
        length = starts[places[i] + 1] - start
        offsets[i + 1] = offsets[i] + length
        for k in range(length):
            texts[offsets[i] + k] = blob[start + k]


def _slots_for(size: int) -> Links:
    return np.zeros(max(_FEWEST_SLOTS, 1 << (2 * size).bit_length()), dtype=np.int32)


class Marks:
    """Which of some different ids are seen in arrays of ids."""

    def __init__(self, ids: Ints, slots: Links | None = None) -> None:
        self._ids = ids
        if slots is None:
            slots = _slots_for(ids.shape[0])
            _enter(slots, ids, ids.shape[0])
        self._slots = slots
        self.seen: npt.NDArray[np.bool_] = np.zeros(ids.shape[0], dtype=np.bool_)

    def see(self, numbers: Ints) -> None:
        """Look at some ids, one after the other."""
        if self._ids.shape[0]:
            _mark(self._slots, self._ids, numbers, self.seen)


class TextTable:
    """Texts by hashed ids."""

    def __init__(self) -> None:
        self._take_over(np.empty(0, dtype=np.int64), np.zeros(1, dtype=np.int64), np.empty(0, dtype=np.uint8))

    def _take_over(self, ids: Ints, starts: Ints, blob: npt.NDArray[np.uint8]) -> None:
        """Have these texts and no others."""
        self._ids, self._starts, self._blob = ids, starts, blob
        self._size: int = ids.shape[0]
        self._slots = _slots_for(self._size)
        _enter(self._slots, ids, self._size)

    def __len__(self) -> int:
        return self._size

    def __contains__(self, number: int) -> bool:
        return self._place(number) >= 0

    def get(self, number: int) -> bytes | None:
        """The text of an id, if it is here."""
        place = self._place(number)
        return None if place < 0 else self._blob[self._starts.item(place) : self._starts.item(place + 1)].tobytes()

    def _place(self, number: int) -> int:
        return self._slots.item(_slot_of(self._slots, self._ids, number)) - 1

    def add(self, texts: TermTexts) -> None:
        """Take in texts that may be here already."""
        if not len(texts):
            return
        ids, offsets = (np.require(one, np.int64, ("C", "W")) for one in (texts.ids, texts.offsets))
        blob = np.require(texts.blob, np.uint8, ("C", "W"))
        self._make_room(ids.shape[0], int(offsets[-1] - offsets[0]))
        self._size, clash = _add(self._slots, self._ids, self._starts, self._blob, self._size, ids, offsets, blob)
        if clash >= 0:
            number, known = ids.item(clash), self.get(ids.item(clash))
            assert known is not None
            other = blob[offsets[clash] : offsets[clash + 1]].tobytes()
            raise HashCollision(number, term_of_text(known), term_of_text(other))

    def _make_room(self, more: int, letters: int) -> None:
        size, end = self._size + more, self._starts.item(self._size) + letters
        if size > self._ids.shape[0]:
            capacity = grown(size, self._ids.shape[0])
            self._ids, self._starts = enlarged(self._ids, capacity), enlarged(self._starts, capacity + 1)
        if end > self._blob.shape[0]:
            self._blob = enlarged(self._blob, grown(end, self._blob.shape[0]))
        if 2 * size > self._slots.shape[0]:
            self._slots = _slots_for(2 * size)
            _enter(self._slots, self._ids, self._size)

    def places(self, ids: Ints) -> Ints:
        """Where the texts of some ids are; -1 for those that are not here."""
        places = np.empty(ids.shape[0], dtype=np.int64)
        _places(self._slots, self._ids, ids, places)
        return places

    def at(self, places: Ints) -> TermTexts:
        """The ids and texts at some places."""
        offsets = np.zeros(places.shape[0] + 1, dtype=np.int64)
        blob = np.empty(int((self._starts[places + 1] - self._starts[places]).sum()), dtype=np.uint8)
        _gather(self._starts, self._blob, places, offsets, blob)
        return TermTexts(self._ids[places], offsets, blob)

    def kinds_at(self, places: Ints) -> Kinds:
        """What the terms at some places are."""
        starts = self._starts[places]
        return kinds_of_beginnings(self._blob[starts], self._blob[starts + 1])

    def marks(self) -> Marks:
        """To be shown ids that are in use."""
        return Marks(self._ids[: self._size], self._slots)

    def keep(self, marks: Marks) -> None:
        """Forget the texts of ids that were not seen."""
        kept = self.at(np.flatnonzero(marks.seen))
        self._take_over(kept.ids, kept.offsets, kept.blob)
