"""The clients of a process by address, and the remote of `SERVICE ?endpoint`.

All parts of a process that ask the same endpoint share one client, so that its limits and pauses hold for all of them.
`SERVICE ?endpoint` takes the address from the data: each key says whom to ask, and who that may be can be restricted.

    endpoints = Endpoints([EndpointSettings("https://example.org/sparql", limits=Limits(per_second=5))],
                          allowed=["https://example.org/"])
    remote = EndpointFromKey(endpoints, Variable("endpoint"), "?who :followers ?n", ["endpoint", "who"])
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from urllib.parse import urlsplit

from headwater.algebra.nodes import Node
from headwater.algebra.scope import visible
from headwater.federation.endpoint.bound_fetcher import BoundFetcher
from headwater.federation.endpoint.client import Endpoint
from headwater.federation.endpoint.endpoint_errors import EndpointError, EndpointRefused
from headwater.federation.endpoint.endpoint_settings import EndpointSettings, shown
from headwater.federation.endpoint.remote import Fetched, Page, Rows
from headwater.federation.endpoint.request_queries import Questions, as_variable, pattern_of
from headwater.terms.model import NamedNode, Row, Term, Variable

_MOST_AT_ONCE = 16


class Endpoints:
    """Clients by address, each made once. `allowed` are the beginnings of addresses that data may name; None is all."""

    def __init__(self, settings: Iterable[EndpointSettings] = (), allowed: Iterable[str] | None = None) -> None:
        self._by_url = {found.url: Endpoint(found) for found in settings}
        self._allowed = None if allowed is None else [urlsplit(beginning) for beginning in allowed]

    def of(self, url: str) -> Endpoint:
        """The client of an address; those that were given settings are always allowed."""
        known = self._by_url.get(url)
        if known is not None:
            return known
        if not self._may_be_asked(url):
            raise EndpointRefused(
                shown(url), "this address is not among the allowed ones, and was not asked", status=403
            )
        try:
            settings = EndpointSettings(url)
        except ValueError as error:
            raise EndpointRefused(shown(url), str(error)) from error
        return self._by_url.setdefault(url, Endpoint(settings))

    def _may_be_asked(self, url: str) -> bool:
        parts = urlsplit(url)
        return self._allowed is None or any(
            (parts.scheme, parts.netloc) == (allowed.scheme, allowed.netloc) and parts.path.startswith(allowed.path)
            for allowed in self._allowed
        )


class EndpointFromKey:
    """The remote of `SERVICE ?endpoint { pattern }`: one of the join variables says whom to ask.

    It is a `Remote`; it has no pages, because nobody knows all endpoints before the data name them.
    """

    def __init__(
        self,
        endpoints: Endpoints,
        variable: Variable,
        pattern: Node | str,
        join_variables: Iterable[Variable | str],
        batch: int = 100,
    ) -> None:
        node, inner = pattern_of(pattern) if isinstance(pattern, str) else (pattern, visible(pattern))
        self.join_variables = tuple(map(as_variable, join_variables))
        if variable not in self.join_variables:
            raise ValueError(f"SERVICE {variable} needs {variable} among the join variables: it says whom to ask")
        strangers = [v for v in self.join_variables if v != variable and v not in inner]
        if strangers:
            raise ValueError(f"the pattern does not show {', '.join(map(str, strangers))}: join on what it has")
        self.variables = tuple(dict.fromkeys((variable, *inner)))
        self.batch = batch
        self._endpoints = endpoints
        self._place = self.join_variables.index(variable)
        self._inner_places = [i for i, v in enumerate(self.join_variables) if v in inner]
        self._questions = Questions.about(node, [self.join_variables[i] for i in self._inner_places], inner)
        self._fetchers: dict[str, BoundFetcher] = {}
        self._variable = variable

    @property
    def name(self) -> str:
        return f"SERVICE {self._variable}"

    def fetch(self, keys: Sequence[Row], within: float | None = None) -> Fetched:
        """The rows of each key from the endpoint that it names, all endpoints at once."""
        started = time.monotonic()
        by_url: dict[str, list[Row]] = {}
        errors: list[str] = []
        for key in dict.fromkeys(keys):
            named = key[self._place]
            if isinstance(named, NamedNode):
                by_url.setdefault(named.value, []).append(key)
            elif not errors:
                errors.append(f"{self.name}: {'it is unbound' if named is None else named} is no address to ask")

        def ask(url: str) -> Fetched:
            left = None if within is None else within - (time.monotonic() - started)
            return self._fetch_from(url, by_url[url], left)

        rows: dict[Row, Rows] = {}
        if by_url:
            with ThreadPoolExecutor(min(len(by_url), _MOST_AT_ONCE)) as pool:
                for fetched in pool.map(ask, by_url):
                    rows.update(fetched.rows)
                    errors += [] if fetched.error is None else [fetched.error]
        return Fetched(rows, time.monotonic() - started, errors[0] if errors else None)

    def _fetch_from(self, url: str, keys: Sequence[Row], within: float | None) -> Fetched:
        try:
            endpoint = self._endpoints.of(url)
        except EndpointError as error:
            return Fetched({}, 0.0, str(error))
        fetcher = self._fetchers.setdefault(url, BoundFetcher(endpoint, self._questions, self.batch))
        by_inner: dict[Row, Row] = {tuple(key[i] for i in self._inner_places): key for key in keys}
        fetched = fetcher.fetch(list(by_inner), within)
        rows = {
            by_inner[inner]: tuple(self._row(row, NamedNode(url)) for row in found)
            for inner, found in fetched.rows.items()
        }
        return replace(fetched, rows=rows)

    def _row(self, row: Row, endpoint: Term) -> Row:
        named = dict(zip(self._questions.variables, row, strict=True))
        named[self._variable] = endpoint
        return tuple(named[variable] for variable in self.variables)

    def pages(self, limit: int) -> Iterator[Page]:
        yield Page([], 0.0, f"{self.name} has no pages: the keys name the endpoints; fill the view lazily")
