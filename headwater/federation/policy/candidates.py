"""What proposers hand to rankers: entries of the view with what the window says of them, and the tick they are for."""

from __future__ import annotations

from dataclasses import dataclass

from headwater.federation.view.local_view import Entry


@dataclass(frozen=True, slots=True)
class Candidate:
    """An entry that may be refreshed.

    `ticks` is how many the window still holds it for, this one included (L), `rows` how many rows of the window it
    serves, `presence` the share of ticks at which it was used of late.
    """

    entry: Entry
    ticks: int
    rows: int = 1
    presence: float = 0.0

    @property
    def answers(self) -> int:
        """The rows of the answer that rest on it; an entry without rows hides one, perhaps."""
        return self.rows * max(1, len(self.entry.rows))


@dataclass(frozen=True, slots=True)
class Tick:
    """An evaluation: when it is, and how far the next one is (t and β, microseconds).

    `share` is the share of the candidates that are refreshed at a tick, as it was of late.
    """

    now: int
    slide: int
    share: float = 0.0
