"""The interface of a remote: it fetches the rows of some keys, or all rows page by page.

A *key* is a binding of the variables that the SERVICE pattern shares with the window, a *row* is one solution of the
SERVICE pattern. A key may have many rows, or none: no rows is an answer, not a failure.

    >>> fetched = FetchResult({(user,): ((user, count),)}, seconds=0.02)
    >>> fetched.rows.get((other,))      # None: nothing is known, the remote failed or was not asked

`BoundFetcher` is the remote of a SPARQL endpoint; benchmarks/simulated_remote.py has one for experiments.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from headwater.terms.model import Row

Rows = tuple[Row, ...]
"""The solutions of one key; their order means nothing, their number does."""


@dataclass(frozen=True, slots=True)
class FetchResult:
    """The result of one request: the rows of each key that was answered, and how long it took.

    A key that was asked for and is not in `rows` failed; `error` says why. A key without a match is in `rows` with no
    rows.
    """

    rows: Mapping[Row, Rows]
    seconds: float
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Page:
    """Some of the remote's (key, row) pairs; the rows of a key may continue in the next page."""

    pairs: Sequence[tuple[Row, Row]]
    seconds: float
    error: str | None = None


@runtime_checkable
class Remote(Protocol):
    """What a SERVICE clause reads from.

    It never raises for a failure of the endpoint: a refused connection, garbage or a time-out is an `error`.
    """

    @property
    def name(self) -> str:
        """Its name in messages, for instance the endpoint's IRI."""

    @property
    def keys_per_request(self) -> int:
        """How many keys one request may hold; 1 if the endpoint does not know VALUES. It may change at run time."""

    def fetch(self, keys: Sequence[Row]) -> FetchResult:
        """Fetch the present rows of each key in one request. Any thread may call it; the remote has a time-out."""

    def pages(self, limit: int) -> Iterator[Page]:
        """All rows, at most `limit` in a page; a page with an error is the last."""
