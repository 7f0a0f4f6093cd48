"""What the local view asks of a remote: the rows of some keys now, and everything page by page.

A *key* is a binding of the variables that the SERVICE pattern shares with the window, a *row* is one solution of the
SERVICE pattern. A key may have many rows, or none: none is an answer too, and different from a failure.

    >>> fetched = Fetched({(user,): ((user, count),)}, seconds=0.02)
    >>> fetched.rows.get((other,))      # None: nothing is known, the remote failed or was not asked

`SimulatedRemote` and the SPARQL endpoint client both are remotes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from headwater.terms.model import Row

Rows = tuple[Row, ...]
"""The solutions of one key; their order means nothing, their number does."""


@dataclass(frozen=True, slots=True)
class Fetched:
    """What one request brought: the rows of each key that was answered, how long it took, and why some are missing.

    A key that was asked and does not stand in `rows` failed; `error` says why. A key without a match stands there
    with no rows.
    """

    rows: Mapping[Row, Rows]
    seconds: float
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Page:
    """Some (key, row) pairs of everything that the remote has; the rows of a key may go on in the next page."""

    pairs: Sequence[tuple[Row, Row]]
    seconds: float
    error: str | None = None


@runtime_checkable
class Remote(Protocol):
    """The far side of a SERVICE clause.

    It never raises for what the far side does: a refused connection, garbage or a time-out is an `error`.
    """

    @property
    def name(self) -> str:
        """What messages call it, for instance the endpoint's IRI."""

    @property
    def batch(self) -> int:
        """How many keys one request may carry; 1 where the endpoint does not take VALUES. It may change at run time."""

    def fetch(self, keys: Sequence[Row]) -> Fetched:
        """The rows of each key now, in one request, from whatever thread; given up by the remote's own time-out."""

    def pages(self, limit: int) -> Iterator[Page]:
        """All rows, at most `limit` in a page; a page with an error is the last."""
