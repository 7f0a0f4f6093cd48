"""A table of ids, each with the check of the term that owns it: compiled code for `terms.ids.id_owners`.

slots[slot] = place + 1      0: empty; open addressing, the bits of a hashed id are its hash
ids[place], checks[place]    the id, and the check of its owner's text (`terms.ids.text_hash`)
newest[place]                the newest time at which the owner was seen; `FOREVER` where it is never forgotten
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from headwater.terms.compiled_code import compiled
from headwater.terms.ids.term_texts import Ints

Checks = npt.NDArray[np.uint32]

FOREVER = (1 << 62) + 1
_FEWEST_SLOTS = 1 << 10


class OwnerArrays(NamedTuple):
    """The arrays of a table; the first `size` places are in use."""

    slots: npt.NDArray[np.int32]
    ids: Ints
    checks: Checks
    newest: Ints

    @classmethod
    def empty(cls, capacity: int = 0) -> OwnerArrays:
        """Room for some ids."""
        slots = max(_FEWEST_SLOTS, 1 << (2 * capacity).bit_length())
        return cls(
            np.zeros(slots, dtype=np.int32),
            np.empty(slots // 2, dtype=np.int64),
            np.empty(slots // 2, dtype=np.uint32),
            np.empty(slots // 2, dtype=np.int64),
        )


@compiled(inline="always")
def _slot_of(slots, ids, term_id):  # type: ignore[no-untyped-def]
    """The slot of an id, or the empty slot where it belongs."""
    mask = slots.shape[0] - 1
    slot = (term_id ^ (term_id >> 31)) & mask
    while slots[slot] != 0 and ids[slots[slot] - 1] != term_id:
        slot = (slot + 1) & mask
    return slot


@compiled
def enter_ids(table, term_ids, checks, newest):  # type: ignore[no-untyped-def]
    """Enter different ids into an empty table that has room for them."""
    slots, table_ids, table_checks, table_newest = table
    for place in range(term_ids.shape[0]):
        table_ids[place] = term_ids[place]
        table_checks[place] = checks[place]
        table_newest[place] = newest[place]
        slots[_slot_of(slots, table_ids, term_ids[place])] = place + 1


@compiled
def find_places(table, term_ids, places):  # type: ignore[no-untyped-def]
    """The place of each id; -1 where it is not in the table, or inline."""
    slots, ids = table[0], table[1]
    for i in range(term_ids.shape[0]):
        term_id = term_ids[i]
        places[i] = np.int64(slots[_slot_of(slots, ids, term_id)]) - 1 if term_id >= 0 else -1


@compiled
def find_unknown(table, term_ids, likely, found):  # type: ignore[no-untyped-def]
    """Collect the hashed ids that are not in the table and that static data may have; gives how many there are.

    `likely` is true, at the low bits of an id, where static data may have it.
    """
    slots, ids = table[0], table[1]
    count = 0
    for i in range(term_ids.shape[0]):
        term_id = term_ids[i]
        if term_id >= 0 and likely[term_id & (likely.shape[0] - 1)] and slots[_slot_of(slots, ids, term_id)] == 0:
            found[count] = term_id
            count += 1
    return count


@compiled
def claim_rows(table, size, term_ids, checks, starts, times, element, oldest, is_refused, places):  # type: ignore[no-untyped-def]
    """Have the terms of rows own their ids, element by element, from `element` on, while there is room.

    Row `i` has the ids `term_ids[i]`, element `e` the rows `starts[e]` to before `starts[e + 1]`. A row with an id that
    another term owns is refused, unless that was last seen before `oldest`; then it owns the id no longer. `places` is
    room for those of a row. Gives the element where it ends, the new size, and how many owners were replaced.
    """
    slots, ids, table_checks, newest = table
    width = term_ids.shape[1]
    last_id = np.int64(-1)
    last_place = np.int64(0)
    replaced = 0
    while element < times.shape[0]:
        low, high = starts[element], starts[element + 1]
        if size + width * (high - low) > ids.shape[0]:
            break
        # Terms of old elements own their ids, too, until windows move on.
        time = max(times[element], oldest)
        for row in range(low, high):
            refused = False
            for column in range(width):
                term_id = term_ids[row, column]
                if term_id < 0:
                    continue
                place = last_place if term_id == last_id else np.int64(slots[_slot_of(slots, ids, term_id)]) - 1
                places[column] = place
                if place >= 0 and table_checks[place] != checks[row, column] and newest[place] >= oldest:
                    refused = True
                    break
            is_refused[row] = refused
            if refused:
                continue
            for column in range(width):
                term_id = term_ids[row, column]
                if term_id < 0:
                    continue
                place = places[column]
                if place < 0:
                    # Another term of this very row may have entered it meanwhile.
                    slot = _slot_of(slots, ids, term_id)
                    place = np.int64(slots[slot]) - 1
                    if place < 0:
                        place = size
                        ids[place] = term_id
                        table_checks[place] = checks[row, column]
                        newest[place] = time
                        size += 1
                        slots[slot] = size
                if table_checks[place] != checks[row, column]:
                    if newest[place] >= oldest:
                        # Two terms of this very row have one id.
                        is_refused[row] = True
                        break
                    table_checks[place] = checks[row, column]
                    newest[place] = time
                    replaced += 1
                elif newest[place] < time:
                    newest[place] = time
                if column == 0:
                    last_id, last_place = term_id, place
        element += 1
    return element, size, replaced
