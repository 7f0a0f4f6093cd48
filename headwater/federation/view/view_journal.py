"""The durable form of a local view: one whole state and the changes since, each pickled once.

A state is written after every batch, and a view may be large while a tick touches few entries of it. So what was
pickled before is kept as bytes and written again as it is; only what the last ticks changed is pickled anew. When the
changes have become as long as the whole, they are folded into a new whole.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence

from headwater.federation.view.local_view import LocalView


class ViewJournal:
    """Writes one view down, and reads it back."""

    def __init__(self, view: LocalView) -> None:
        self._view = view
        self._pieces: list[bytes] = []

    def pieces(self) -> tuple[bytes, ...]:
        """All that a restart needs: the first piece is a whole, the others are changes in their order."""
        changes = sum(map(len, self._pieces[1:]))
        if not self._pieces or changes > len(self._pieces[0]):
            self._pieces = [pickle.dumps(self._view.state(), protocol=pickle.HIGHEST_PROTOCOL)]
        else:
            self._pieces.append(pickle.dumps(self._view.changes(), protocol=pickle.HIGHEST_PROTOCOL))
        return tuple(self._pieces)

    def restore(self, pieces: Sequence[bytes]) -> None:
        """Let the view be what the pieces say."""
        first, *later = pieces
        self._view.restore(pickle.loads(first))
        for piece in later:
            self._view.apply(pickle.loads(piece))
        self._pieces = list(pieces)
