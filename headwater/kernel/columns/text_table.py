"""Texts of terms by their ids, in a few arrays: what streams bring along until a term is needed (CQ5).

Most terms of a stream enter and leave without being decoded. So their texts are added, looked up and dropped by the
thousand, in compiled code, and become Python objects one by one, on demand.

    slots[slot] = place + 1      0: empty; open addressing, the bits of a hashed id are its hash
    text of ids[place]           blob[starts[place] : starts[place + 1]]

Two texts with one id raise `HashCollision`: each text is compared with the first one of its id.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from headwater.kernel.columns.ring_index import PREFETCH_DISTANCE, Ints, Links
from headwater.kernel.columns.row_ids import enlarge, grow_capacity
from headwater.terms.compiled_code import compiled
from headwater.terms.ids.gathered_texts import gather_texts
from headwater.terms.ids.hash_collisions import HashCollision
from headwater.terms.ids.prefetching import prefetch
from headwater.terms.ids.term_texts import TermKinds, TermTexts, kinds_of_beginnings, term_of_text

_FEWEST_SLOTS = 64


@compiled(inline="always")
def _find_slot(slots, ids, term_id):  # type: ignore[no-untyped-def]
    """The slot of an id, or the empty slot where it belongs."""
    mask = slots.shape[0] - 1
    slot = term_id & mask
    while slots[slot] != 0 and ids[slots[slot] - 1] != term_id:
        slot = (slot + 1) & mask
    return slot


@compiled(inline="always")
def _prefetch_text(slots, ids, starts, blob, term_ids, i):  # type: ignore[no-untyped-def]
    """Prefetch the slot of a later id, the place of a nearer one, and the text of one that is nearer still."""
    mask = slots.shape[0] - 1
    prefetch(slots, term_ids[i + 3 * PREFETCH_DISTANCE] & mask)
    place = np.int64(slots[term_ids[i + 2 * PREFETCH_DISTANCE] & mask]) - 1
    if place >= 0:
        prefetch(ids, place)
        prefetch(starts, place)
    place = np.int64(slots[term_ids[i + PREFETCH_DISTANCE] & mask]) - 1
    if place >= 0:
        prefetch(blob, starts[place])


@compiled(inline="always")
def _prefetch_slot(slots, ids, term_ids, i):  # type: ignore[no-untyped-def]
    """Prefetch the slot of a later id, and the id at the place of a nearer one, whose slot is in the cache by now."""
    mask = slots.shape[0] - 1
    prefetch(slots, term_ids[i + 2 * PREFETCH_DISTANCE] & mask)
    next_place = slots[term_ids[i + PREFETCH_DISTANCE] & mask]
    if next_place:
        prefetch(ids, np.int64(next_place) - 1)


@compiled
def _assign_slots(slots, ids, size):  # type: ignore[no-untyped-def]
    """Give each of some different ids a slot."""
    for place in range(size):
        slots[_find_slot(slots, ids, ids[place])] = place + 1


@compiled
def _add(slots, ids, starts, blob, size, term_ids, offsets, texts):  # type: ignore[no-untyped-def]
    """Add texts, for which there is room; gives the new size, and the first text that collides, or -1."""
    for i in range(term_ids.shape[0]):
        if i + 3 * PREFETCH_DISTANCE < term_ids.shape[0]:
            _prefetch_text(slots, ids, starts, blob, term_ids, i)
        slot = _find_slot(slots, ids, term_ids[i])
        start = offsets[i]
        length = offsets[i + 1] - start
        if slots[slot] == 0:
            at = starts[size]
            for k in range(length):
                blob[at + k] = texts[start + k]
            ids[size] = term_ids[i]
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
def _find_places(slots, ids, term_ids, places):  # type: ignore[no-untyped-def]
    for i in range(term_ids.shape[0]):
        if i + 2 * PREFETCH_DISTANCE < term_ids.shape[0]:
            _prefetch_slot(slots, ids, term_ids, i)
        places[i] = np.int64(slots[_find_slot(slots, ids, term_ids[i])]) - 1


@compiled
def _mark(slots, ids, term_ids, marks):  # type: ignore[no-untyped-def]
    for i in range(term_ids.shape[0]):
        if i + 2 * PREFETCH_DISTANCE < term_ids.shape[0]:
            _prefetch_slot(slots, ids, term_ids, i)
        place = slots[_find_slot(slots, ids, term_ids[i])]
        if place:
            marks[place - 1] = True


def _new_slots(size: int) -> Links:
    return np.zeros(max(_FEWEST_SLOTS, 1 << (2 * size).bit_length()), dtype=np.int32)


class UsedIds:
    """Which of some different ids occur in arrays of ids."""

    def __init__(self, ids: Ints, slots: Links | None = None) -> None:
        self._ids = ids
        if slots is None:
            slots = _new_slots(ids.shape[0])
            _assign_slots(slots, ids, ids.shape[0])
        self._slots = slots
        self.is_used: npt.NDArray[np.bool_] = np.zeros(ids.shape[0], dtype=np.bool_)

    def mark(self, term_ids: Ints) -> None:
        """Mark the ids that occur in an array."""
        if self._ids.shape[0]:
            _mark(self._slots, self._ids, term_ids, self.is_used)


class TextTable:
    """The texts of terms by their hashed ids."""

    def __init__(self) -> None:
        self._replace_all(np.empty(0, dtype=np.int64), np.zeros(1, dtype=np.int64), np.empty(0, dtype=np.uint8))

    def _replace_all(self, ids: Ints, starts: Ints, blob: npt.NDArray[np.uint8]) -> None:
        """Hold these texts and no others."""
        self._ids, self._starts, self._blob = ids, starts, blob
        self._size: int = ids.shape[0]
        self._slots = _new_slots(self._size)
        _assign_slots(self._slots, ids, self._size)

    def __len__(self) -> int:
        return self._size

    def __contains__(self, term_id: int) -> bool:
        return self._place(term_id) >= 0

    def get(self, term_id: int) -> bytes | None:
        """The text of an id; None if it is not here."""
        place = self._place(term_id)
        return None if place < 0 else self._blob[self._starts.item(place) : self._starts.item(place + 1)].tobytes()

    def _place(self, term_id: int) -> int:
        return self._slots.item(_find_slot(self._slots, self._ids, term_id)) - 1

    def add(self, texts: TermTexts) -> None:
        """Add texts, some of which may be here already."""
        if not len(texts):
            return
        ids, offsets = (np.require(one, np.int64, ("C", "W")) for one in (texts.ids, texts.offsets))
        blob = np.require(texts.blob, np.uint8, ("C", "W"))
        self._make_room(ids.shape[0], int(offsets[-1] - offsets[0]))
        self._size, clash = _add(self._slots, self._ids, self._starts, self._blob, self._size, ids, offsets, blob)
        if clash >= 0:
            term_id, first = ids.item(clash), self.get(ids.item(clash))
            assert first is not None
            second = blob[offsets[clash] : offsets[clash + 1]].tobytes()
            raise HashCollision(term_id, term_of_text(first), term_of_text(second))

    def _make_room(self, more: int, byte_count: int) -> None:
        size, end = self._size + more, self._starts.item(self._size) + byte_count
        if size > self._ids.shape[0]:
            capacity = grow_capacity(size, self._ids.shape[0])
            self._ids, self._starts = enlarge(self._ids, capacity), enlarge(self._starts, capacity + 1)
        if end > self._blob.shape[0]:
            self._blob = enlarge(self._blob, grow_capacity(end, self._blob.shape[0]))
        if 2 * size > self._slots.shape[0]:
            self._slots = _new_slots(2 * size)
            _assign_slots(self._slots, self._ids, self._size)

    def places(self, ids: Ints) -> Ints:
        """The places of some ids; -1 for those that are not here."""
        places = np.empty(ids.shape[0], dtype=np.int64)
        _find_places(self._slots, self._ids, ids, places)
        return places

    def texts_at(self, places: Ints) -> TermTexts:
        """The ids and texts at some places."""
        return TermTexts(self._ids[places], *gather_texts(self._blob, self._starts[places], self._starts[places + 1]))

    def kinds_at(self, places: Ints) -> TermKinds:
        """The kinds of the terms at some places."""
        starts = self._starts[places]
        return kinds_of_beginnings(self._blob[starts], self._blob[starts + 1])

    def start_marking(self) -> UsedIds:
        """Start to mark the ids that are in use."""
        return UsedIds(self._ids[: self._size], self._slots)

    def keep_used(self, used: UsedIds) -> None:
        """Forget the texts of ids that were not marked."""
        texts = self.texts_at(np.flatnonzero(used.is_used))
        self._replace_all(texts.ids, texts.offsets, texts.blob)
