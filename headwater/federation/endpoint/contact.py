"""A remote that records whether it ever answered, and its last error.

A SERVICE clause without options is plain SPARQL: an endpoint that cannot be reached is an error of the query. A
continuous query that has run for days should not end because one request failed. So the error is raised only while the
endpoint has never answered, when its address is probably wrong; after that the old rows stay, marked as suspects.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from headwater.execution.remote_solutions import ServiceError
from headwater.federation.endpoint.remote import FetchResult, Page, Remote
from headwater.terms.model import Row


class Contact:
    """A `Remote` that passes requests on to another and records their outcome."""

    def __init__(self, remote: Remote) -> None:
        self._remote = remote
        self.has_answered = False
        self.error: str | None = None

    @property
    def name(self) -> str:
        return self._remote.name

    @property
    def keys_per_request(self) -> int:
        return self._remote.keys_per_request

    def fetch(self, keys: Sequence[Row]) -> FetchResult:
        try:
            fetched = self._remote.fetch(keys)
        except Exception as error:
            self._record(f"{type(error).__name__}: {error}", has_answered=False)
            raise
        self._record(fetched.error, bool(fetched.rows))
        return fetched

    def pages(self, limit: int) -> Iterator[Page]:
        for page in self._remote.pages(limit):
            self._record(page.error, page.error is None)
            yield page

    def _record(self, error: str | None, has_answered: bool) -> None:
        self.error = error
        self.has_answered = self.has_answered or has_answered

    def raise_if_never_answered(self) -> None:
        """Raise the last error if the remote has never answered."""
        if not self.has_answered and self.error is not None:
            raise ServiceError(self.error)


class NoEndpoint:
    """The `Remote` for an IRI that is not the address of an endpoint: every request fails."""

    keys_per_request = 1

    def __init__(self, name: str, error: str) -> None:
        self.name = name
        self._error = error

    def fetch(self, keys: Sequence[Row]) -> FetchResult:
        return FetchResult({}, 0.0, self._error)

    def pages(self, limit: int) -> Iterator[Page]:
        yield Page([], 0.0, self._error)
