"""The durable form of a local view: a whole state and the changes since, each packed once.

The state is written after every batch; a view may be large while a tick changes few of its entries. So earlier records
are kept as bytes and written again unchanged, and only the entries that changed since are packed. When the changes
have become longer than the whole state, a new whole state replaces them. Entries are packed as columns, which costs
less than one after the other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

import numpy as np

from headwater.federation.view.local_view import Entry, LocalView
from headwater.terms.packing import Plain, pack, unpack

_WHOLE_NUMBERS = ("refreshed_at", "best_before", "refreshes", "changes", "last_tick")
_NUMBERS = ("extent", "uses")


class ViewJournal:
    """Serializes one view, and restores it."""

    def __init__(self, view: LocalView) -> None:
        self._view = view
        self._records: list[bytes] = []

    def records(self) -> tuple[bytes, ...]:
        """The records that a restart needs: the first is a whole state, the others are changes in their order."""
        changes = sum(map(len, self._records[1:]))
        if not self._records or changes > len(self._records[0]):
            self._records = [pack_state(self._view.state())]
        else:
            self._records.append(pack_state(self._view.changes()))
        return tuple(self._records)

    def restore(self, records: Sequence[bytes]) -> None:
        """Replace the content of the view by that of the records."""
        first, *later = records
        self._view.restore(unpack_state(first))
        for record in later:
            self._view.apply_changes(unpack_state(record))
        self._records = list(records)


def pack_state(state: Mapping[str, Any]) -> bytes:
    """The state of a view, or its changes, as bytes."""
    return pack({**state, "entries": entries_to_plain(state["entries"])})


def unpack_state(record: bytes) -> dict[str, Any]:
    """The state, or changes, that `pack_state` packed."""
    state: dict[str, Any] = unpack(record)
    return {**state, "entries": entries_from_plain(state["entries"])}


def entries_to_plain(entries: Sequence[Entry]) -> Plain:
    """Entries as plain values, a column for each field."""
    beliefs = [entry.belief for entry in entries if entry.belief is not None]
    return {
        "keys": [entry.key for entry in entries],
        "rows": [row for entry in entries for row in entry.rows],
        "row_counts": np.array([len(entry.rows) for entry in entries], dtype=np.int64),
        **{name: np.array([getattr(one, name) for one in entries], dtype=np.int64) for name in _WHOLE_NUMBERS},
        **{name: np.array([getattr(one, name) for one in entries], dtype=np.float64) for name in _NUMBERS},
        "failing_since": [entry.failing_since for entry in entries],
        "has_belief": np.array([entry.belief is not None for entry in entries], dtype=np.bool_),
        "beliefs": np.array(beliefs, dtype=np.float64),
    }


def entries_from_plain(value: Plain) -> list[Entry]:
    """The entries that `entries_to_plain` gave."""
    rows, beliefs = iter(value["rows"]), iter(value["beliefs"])
    columns = [value[name].tolist() for name in (*_WHOLE_NUMBERS, *_NUMBERS)]
    counts, has_belief = value["row_counts"].tolist(), value["has_belief"].tolist()
    return [
        Entry(
            key,
            tuple(islice(rows, count)),
            failing_since=failing_since,
            belief=next(beliefs).copy() if has_own else None,
            **dict(zip((*_WHOLE_NUMBERS, *_NUMBERS), numbers, strict=True)),
        )
        for key, count, failing_since, has_own, numbers in zip(
            value["keys"], counts, value["failing_since"], has_belief, zip(*columns, strict=True), strict=True
        )
    ]
