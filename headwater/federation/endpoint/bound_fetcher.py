"""The rows that an endpoint has for many keys of a SERVICE pattern: many in one request where it takes VALUES.

    questions = Questions.about("?who <http://example.org/followers> ?n", join_variables=["who"])
    remote = BoundFetcher(Endpoint("https://example.org/sparql"), questions)
    remote.fetch([(anna,), (bert,)], within=0.2).rows      # {(anna,): ((anna, ten),), (bert,): ()}

A key binds the join variables in their order; None leaves one free. What is asked is {keys} ⋈ pattern:

    SELECT ?hw_key ?who ?n WHERE { VALUES (?hw_key ?who) { ("0" :anna) ("1" :bert) } ?who :followers ?n . }

The number of the key travels along, so each row says which key it belongs to, even where keys overlap (a free
variable) or the pattern leaves a join variable unbound. Rows whose terms differ from the key's (an endpoint that takes
"01" for "1") are left out and counted: the join would drop them, and every strategy shall give the same answer.

An endpoint that refuses VALUES (SPARQL 1.0), and also refuses it in the smallest query there is, is asked for one key
at a time (`substitution`). Requests are halved when the endpoint finds one too large, too long or too slow, or fails; a
key that is refused alone is reported with its error, the others go on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from headwater.federation.endpoint.batch_size import BatchSize
from headwater.federation.endpoint.client import Endpoint
from headwater.federation.endpoint.endpoint_errors import (
    EndpointError,
    EndpointGarbage,
    EndpointRefused,
    EndpointTimeout,
    EndpointTooLarge,
)
from headwater.federation.endpoint.key_requests import KeyRequests
from headwater.federation.endpoint.remote import Fetched, Page, Rows
from headwater.federation.endpoint.request_queries import Questions
from headwater.terms.model import Row, Variable

_BEYOND = 1_000_000_000
"""An offset at which no endpoint has anything."""
_MOST_FAILURES = 6
"""How often in a row a page is made smaller."""


@dataclass(frozen=True, slots=True)
class KeyedRows:
    """What came for some keys: the rows of those that were answered, the errors of the others.

    `dropped` counts rows that the endpoint gave for a key although their terms are not the key's.
    """

    rows: Mapping[Row, Rows]
    failures: Mapping[Row, EndpointError]
    dropped: int
    seconds: float


class BoundFetcher:
    """The remote side of a SERVICE clause: a pattern at an endpoint, asked by key or page by page.

    It is a `Remote`. `batch` is the number of keys in the first request, `largest_batch` the most that later ones have.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        questions: Questions,
        batch: int = 100,
        largest_batch: int = 1_000,
    ) -> None:
        self.endpoint = endpoint
        self.questions = questions
        self._size = BatchSize(batch, largest_batch)

    @property
    def name(self) -> str:
        return self.endpoint.name

    @property
    def variables(self) -> tuple[Variable, ...]:
        """The columns of a row."""
        return self.questions.variables

    @property
    def batch(self) -> int:
        """How many keys one request carries at the moment."""
        return 1 if self.endpoint.takes_values is False else self._size.now

    def fetch(self, keys: Sequence[Row], within: float | None = None) -> Fetched:
        """The rows of each key now; never raises for what the far side does."""
        found = self.fetch_keys(keys, within)
        error = next(iter(found.failures.values()), None)
        return Fetched(found.rows, found.seconds, None if error is None else str(error))

    def fetch_keys(self, keys: Sequence[Row], within: float | None = None) -> KeyedRows:
        """The rows of each key now, or the error of each key that has none, in as many requests as it takes."""
        started = self.endpoint.now()
        work = KeyRequests(self.endpoint, self.questions, self._size, self.endpoint.deadline(within))
        work.run(keys)
        self.endpoint.count_dropped(work.dropped)
        return KeyedRows(work.rows, work.failures, work.dropped, self.endpoint.now() - started)

    def pages(self, limit: int, within: float | None = None) -> Iterator[Page]:
        """All rows, at most `limit` in a page, each page in `within` seconds; a page with an error is the last.

        An order makes pages fit together, and is dear: the endpoint sorts everything for each of them. So the first one
        is asked for without, and is all there is if nothing stands behind it. Only an empty page is the end: many
        endpoints give fewer rows than asked for and do not say so.
        """
        size = BatchSize(limit, limit)
        whole = self._whole(limit, within)
        if whole is not None:
            yield whole
            return
        offset = failures = 0
        before: tuple[Row, ...] = ()
        while True:
            started = self.endpoint.now()
            asked = size.now
            try:
                rows = self._rows(asked, offset, within)
                if rows and rows == before and self._rows(1, _BEYOND, within):
                    yield self._failed_page(started, EndpointGarbage(self.name, "it does not know OFFSET"))
                    return
            except EndpointError as error:
                failures += 1
                if asked > 1 and failures <= _MOST_FAILURES and _is_too_much(error):
                    size.failed(asked)
                    continue
                yield self._failed_page(started, error)
                return
            if not rows:
                return
            size.succeeded(asked)
            failures = 0
            yield self._page(rows, started)
            offset += len(rows)
            before = rows

    def _whole(self, limit: int, within: float | None) -> Page | None:
        """Everything, if it fits in one page; None if it does not, or nobody knows."""
        started = self.endpoint.now()
        try:
            rows = self._rows(limit, 0, within, ordered=False)
            is_all = len(rows) < limit and not self._rows(1, len(rows), within, ordered=False)
        except EndpointError as error:
            return None if _is_too_much(error) else self._failed_page(started, error)
        return self._page(rows, started) if is_all else None

    def _rows(self, limit: int, offset: int, within: float | None, ordered: bool = True) -> tuple[Row, ...]:
        table = self.endpoint.select(self.questions.page(limit, offset, ordered), within)
        return tuple(table.columns(self.questions.names))

    def _page(self, rows: tuple[Row, ...], started: float) -> Page:
        return Page([(self.questions.key(row), row) for row in rows], self.endpoint.now() - started)

    def _failed_page(self, started: float, error: EndpointError) -> Page:
        return Page([], self.endpoint.now() - started, str(error))


def _is_too_much(error: EndpointError) -> bool:
    """Whether a smaller page may succeed where this one failed."""
    if isinstance(error, EndpointRefused):
        return error.status in (413, 414) or (error.status or 0) >= 500
    return isinstance(error, EndpointTimeout | EndpointTooLarge | EndpointGarbage)
