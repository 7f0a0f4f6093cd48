"""A remote that is watched: whether it ever answered, and what it said last when it did not.

A SERVICE clause that asks for nothing special is plain SPARQL, and there an endpoint that cannot be reached is an error
of the query. A continuous query that has run for days should not end because one request failed. So the error is raised
while the endpoint has never answered, when an address is likely wrong; after that old rows stay, marked.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from headwater.errors import HeadwaterError
from headwater.federation.endpoint.remote import Fetched, Page, Remote
from headwater.terms.model import Row


class ServiceError(HeadwaterError, OSError):
    """An endpoint that has never answered."""


class Contact:
    """A `Remote` that passes everything on and remembers how it went."""

    def __init__(self, remote: Remote) -> None:
        self._remote = remote
        self.answered = False
        self.error: str | None = None

    @property
    def name(self) -> str:
        return self._remote.name

    @property
    def batch(self) -> int:
        return self._remote.batch

    def fetch(self, keys: Sequence[Row]) -> Fetched:
        fetched = self._remote.fetch(keys)
        self._note(fetched.error, bool(fetched.rows))
        return fetched

    def pages(self, limit: int) -> Iterator[Page]:
        for page in self._remote.pages(limit):
            self._note(page.error, page.error is None)
            yield page

    def _note(self, error: str | None, answered: bool) -> None:
        self.error = error
        self.answered = self.answered or answered

    def demand(self) -> None:
        """Raise where it has failed and never answered."""
        if not self.answered and self.error is not None:
            raise ServiceError(self.error)


class NoEndpoint:
    """The `Remote` of a name that is no address of an endpoint: it fails whenever it is asked."""

    batch = 1

    def __init__(self, name: str, error: str) -> None:
        self.name = name
        self._error = error

    def fetch(self, keys: Sequence[Row]) -> Fetched:
        return Fetched({}, 0.0, self._error)

    def pages(self, limit: int) -> Iterator[Page]:
        yield Page([], 0.0, self._error)
