"""Fetches the rows of a SERVICE pattern from an endpoint, by key or page by page: many keys in one request.

    queries = RequestQueries.for_pattern("?who <http://example.org/followers> ?n", join_variables=["who"])
    remote = BoundFetcher(Endpoint("https://example.org/sparql"), queries)
    remote.fetch([(anna,), (bert,)], timeout=0.2).rows      # {(anna,): ((anna, ten),), (bert,): ()}

A key binds the join variables in their order; None leaves one free. The query is {keys} ⋈ pattern:

    SELECT ?hw_key ?who ?n WHERE { VALUES (?hw_key ?who) { ("0" :anna) ("1" :bert) } ?who :followers ?n . }

Each row has the index of the key that it belongs to, because keys may overlap (a free variable) and the pattern may
leave a join variable unbound. Rows whose terms differ from the key's (some endpoints take "01" for "1") are dropped and
counted: the join would drop them, and every strategy must give the same answer.

An endpoint that refuses VALUES (SPARQL 1.0), even in the smallest query, gets one key per request (`substitution`). A
request that is too large, too long or too slow, or fails, is cut in two; a key that is refused alone is reported with
its error, and the others go on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from headwater.federation.endpoint.client import Endpoint
from headwater.federation.endpoint.endpoint_errors import (
    EndpointError,
    EndpointGarbage,
    EndpointRefused,
    EndpointTimeout,
    EndpointTooLarge,
)
from headwater.federation.endpoint.key_requests import KeyRequests
from headwater.federation.endpoint.remote import FetchResult, Page, Rows
from headwater.federation.endpoint.request_queries import RequestQueries
from headwater.federation.endpoint.request_size import RequestSize
from headwater.terms.model import Row, Variable

_BEYOND_ALL_ROWS = 1_000_000_000
"""An offset at which no endpoint has a row."""
_MOST_FAILURES = 6
"""How often in a row a page is made smaller before it counts as failed."""


@dataclass(frozen=True, slots=True)
class KeyedRows:
    """The rows of the keys that were answered, and the errors of the others.

    `dropped` counts rows that the endpoint gave for a key although their terms are not the key's.
    """

    rows: Mapping[Row, Rows]
    failures: Mapping[Row, EndpointError]
    dropped: int
    seconds: float


class BoundFetcher:
    """The `Remote` of one pattern at one endpoint.

    `keys_per_request` is the number of keys in the first request, `largest_request` the most that later ones have.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        queries: RequestQueries,
        keys_per_request: int = 100,
        largest_request: int = 1_000,
    ) -> None:
        self.endpoint = endpoint
        self.queries = queries
        self._size = RequestSize(keys_per_request, largest_request)

    @property
    def name(self) -> str:
        return self.endpoint.name

    @property
    def variables(self) -> tuple[Variable, ...]:
        """The columns of a row."""
        return self.queries.variables

    @property
    def keys_per_request(self) -> int:
        """How many keys one request holds at present."""
        return 1 if self.endpoint.can_take_values is False else self._size.current

    def fetch(self, keys: Sequence[Row], timeout: float | None = None) -> FetchResult:
        """Fetch the present rows of each key; never raises for a failure of the endpoint."""
        fetched = self.fetch_keys(keys, timeout)
        error = next(iter(fetched.failures.values()), None)
        return FetchResult(fetched.rows, fetched.seconds, None if error is None else str(error))

    def fetch_keys(self, keys: Sequence[Row], timeout: float | None = None) -> KeyedRows:
        """Fetch the present rows of each key, or the error of each key that failed, in as many requests as needed."""
        started = self.endpoint.now()
        requests = KeyRequests(self.endpoint, self.queries, self._size, self.endpoint.deadline(timeout))
        requests.run(keys)
        self.endpoint.count_dropped(requests.dropped)
        return KeyedRows(requests.rows, requests.failures, requests.dropped, self.endpoint.now() - started)

    def pages(self, limit: int, timeout: float | None = None) -> Iterator[Page]:
        """All rows, at most `limit` in a page, each page in `timeout` seconds; a page with an error is the last.

        Pages need an order to fit together, which is expensive: the endpoint sorts all rows for each page. So the first
        page is requested without an order; it is the whole table if there is no row after it. Otherwise only an empty
        page is the end: many endpoints silently give fewer rows than requested.
        """
        size = RequestSize(limit, limit)
        whole = self._fetch_whole_table(limit, timeout)
        if whole is not None:
            yield whole
            return
        offset = failures = 0
        before: tuple[Row, ...] = ()
        while True:
            started = self.endpoint.now()
            limit_now = size.current
            try:
                rows = self._fetch_rows(limit_now, offset, timeout)
                if rows and rows == before and self._fetch_rows(1, _BEYOND_ALL_ROWS, timeout):
                    yield self._make_failed_page(started, EndpointGarbage(self.name, "it does not know OFFSET"))
                    return
            except EndpointError as error:
                failures += 1
                if limit_now > 1 and failures <= _MOST_FAILURES and _is_too_much(error):
                    size.report_failure(limit_now)
                    continue
                yield self._make_failed_page(started, error)
                return
            if not rows:
                return
            size.report_success(limit_now)
            failures = 0
            yield self._make_page(rows, started)
            offset += len(rows)
            before = rows

    def _fetch_whole_table(self, limit: int, timeout: float | None) -> Page | None:
        """All rows, if they fit into one page; None if they do not, or if it is not known."""
        started = self.endpoint.now()
        try:
            rows = self._fetch_rows(limit, 0, timeout, is_ordered=False)
            is_all = len(rows) < limit and not self._fetch_rows(1, len(rows), timeout, is_ordered=False)
        except EndpointError as error:
            return None if _is_too_much(error) else self._make_failed_page(started, error)
        return self._make_page(rows, started) if is_all else None

    def _fetch_rows(self, limit: int, offset: int, timeout: float | None, is_ordered: bool = True) -> tuple[Row, ...]:
        table = self.endpoint.select(self.queries.select_page(limit, offset, is_ordered), timeout)
        return tuple(table.project(self.queries.names))

    def _make_page(self, rows: tuple[Row, ...], started: float) -> Page:
        return Page([(self.queries.key_of(row), row) for row in rows], self.endpoint.now() - started)

    def _make_failed_page(self, started: float, error: EndpointError) -> Page:
        return Page([], self.endpoint.now() - started, str(error))


def _is_too_much(error: EndpointError) -> bool:
    """Whether a smaller page may succeed where this one failed."""
    if isinstance(error, EndpointRefused):
        return error.status in (413, 414) or (error.status or 0) >= 500
    return isinstance(error, EndpointTimeout | EndpointTooLarge | EndpointGarbage)
