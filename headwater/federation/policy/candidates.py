"""The input of rankers: candidate entries with their use in the window, and the tick."""

from __future__ import annotations

from dataclasses import dataclass

from headwater.federation.view.local_view import Entry


@dataclass(frozen=True, slots=True)
class Candidate:
    """An entry that may be refreshed.

    `ticks` is how long it stays in the window, this tick included (L), `rows` how many rows of the window it joins,
    `presence` the share of recent ticks that used it.
    """

    entry: Entry
    ticks: int
    rows: int = 1
    presence: float = 0.0

    @property
    def answer_rows(self) -> int:
        """The rows of the answer that depend on it; an entry without rows may hide one."""
        return self.rows * max(1, len(self.entry.rows))


@dataclass(frozen=True, slots=True)
class Tick:
    """An evaluation: its instant t and the distance β to the next one, in microseconds.

    `refreshed_share` is the share of the candidates that recent ticks refreshed.
    """

    now: int
    slide: int
    refreshed_share: float = 0.0
