"""The durable form of a local view: a whole state and the changes since, each pickled once.

The state is written after every batch; a view may be large while a tick changes few of its entries. So earlier records
are kept as bytes and written again unchanged, and only the entries that changed since are pickled. When the changes
have become longer than the whole state, a new whole state replaces them.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence

from headwater.federation.view.local_view import LocalView


class ViewJournal:
    """Serializes one view, and restores it."""

    def __init__(self, view: LocalView) -> None:
        self._view = view
        self._records: list[bytes] = []

    def records(self) -> tuple[bytes, ...]:
        """The records that a restart needs: the first is a whole state, the others are changes in their order."""
        changes = sum(map(len, self._records[1:]))
        if not self._records or changes > len(self._records[0]):
            self._records = [pickle.dumps(self._view.state(), protocol=pickle.HIGHEST_PROTOCOL)]
        else:
            self._records.append(pickle.dumps(self._view.changes(), protocol=pickle.HIGHEST_PROTOCOL))
        return tuple(self._records)

    def restore(self, records: Sequence[bytes]) -> None:
        """Replace the content of the view by that of the records."""
        first, *later = records
        self._view.restore(pickle.loads(first))
        for record in later:
            self._view.apply_changes(pickle.loads(record))
        self._records = list(records)
