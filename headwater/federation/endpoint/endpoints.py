"""The clients of a process by address, and the remote of `SERVICE ?endpoint`.

All queries of a process share one client per endpoint, so that its limits and pauses hold for all of them. `SERVICE
?endpoint` takes the address from the data: it is a part of the key. The egress policy says what may be asked.

    endpoints = Endpoints([EndpointSettings("https://example.org/sparql", limits=Limits(per_second=5))],
                          EgressPolicy(["https://example.org/"]))
    remote = EndpointFromKey(endpoints, Variable("endpoint"), "?who :followers ?n", ["endpoint", "who"])
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from headwater.algebra.nodes import Node
from headwater.algebra.scope import visible_variables
from headwater.egress.policy import EgressError, EgressPolicy
from headwater.federation.endpoint.bound_fetcher import BoundFetcher
from headwater.federation.endpoint.client import Endpoint
from headwater.federation.endpoint.endpoint_errors import EndpointError, EndpointForbidden, EndpointRefused
from headwater.federation.endpoint.endpoint_settings import EndpointSettings
from headwater.federation.endpoint.remote import FetchResult, Page, Rows
from headwater.federation.endpoint.request_queries import RequestQueries, parse_pattern, variable_of
from headwater.terms.model import NamedNode, Row, Term, Variable
from headwater.terms.redaction import has_user_info, redact_url

_MOST_AT_ONCE = 16


class Endpoints:
    """Clients by address, each made once. `egress` says which addresses may be asked; None: all."""

    def __init__(self, settings: Iterable[EndpointSettings] = (), egress: EgressPolicy | None = None) -> None:
        self._by_url = {one.url: Endpoint(one, egress=egress) for one in settings}
        self._egress = egress

    def client_of(self, url: str) -> Endpoint:
        """The client of an address; an `EndpointForbidden` where the egress policy does not allow it."""
        try:
            if self._egress is not None:
                self._egress.check_url(url)
        except EgressError as error:
            raise EndpointForbidden(redact_url(url), str(error)) from None
        known = self._by_url.get(url)
        if known is not None:
            return known
        if has_user_info(url):
            raise EndpointRefused(
                redact_url(url),
                "an address in a query or in data names no user and no password: give them with engine.endpoint(…) or "
                "in HEADWATER_AUTH_…",
                status=401,
            )
        try:
            settings = EndpointSettings(url)
        except ValueError as error:
            raise EndpointRefused(redact_url(url), str(error)) from error
        return self._by_url.setdefault(url, Endpoint(settings, egress=self._egress))


class EndpointFromKey:
    """The remote of `SERVICE ?endpoint { pattern }`: one of the join variables holds the address.

    It is a `Remote`; it has no pages, because the endpoints are not known before the data name them.
    """

    def __init__(
        self,
        endpoints: Endpoints,
        variable: Variable,
        pattern: Node | str,
        join_variables: Iterable[Variable | str],
        keys_per_request: int = 100,
    ) -> None:
        node, inner = parse_pattern(pattern) if isinstance(pattern, str) else (pattern, visible_variables(pattern))
        self.join_variables = tuple(map(variable_of, join_variables))
        if variable not in self.join_variables:
            raise ValueError(f"SERVICE {variable} needs {variable} among the join variables: it says whom to ask")
        unknown = [v for v in self.join_variables if v != variable and v not in inner]
        if unknown:
            raise ValueError(f"the pattern does not show {', '.join(map(str, unknown))}: join on what it has")
        self.variables = tuple(dict.fromkeys((variable, *inner)))
        self.keys_per_request = keys_per_request
        self._endpoints = endpoints
        self._address_column = self.join_variables.index(variable)
        self._inner_columns = [i for i, v in enumerate(self.join_variables) if v in inner]
        self._queries = RequestQueries.for_pattern(node, [self.join_variables[i] for i in self._inner_columns], inner)
        self._fetchers: dict[str, BoundFetcher] = {}
        self._variable = variable

    @property
    def name(self) -> str:
        return f"SERVICE {self._variable}"

    def fetch(self, keys: Sequence[Row], timeout: float | None = None) -> FetchResult:
        """Fetch the rows of each key from the endpoint that it names, from all endpoints at once."""
        started = time.monotonic()
        by_url: dict[str, list[Row]] = {}
        errors: list[str] = []
        for key in dict.fromkeys(keys):
            address = key[self._address_column]
            if isinstance(address, NamedNode):
                by_url.setdefault(address.value, []).append(key)
            elif not errors:
                errors.append(f"{self.name}: {'it is unbound' if address is None else address} is no address to ask")

        def ask(url: str) -> FetchResult:
            left = None if timeout is None else timeout - (time.monotonic() - started)
            return self._fetch_from(url, by_url[url], left)

        rows: dict[Row, Rows] = {}
        if by_url:
            with ThreadPoolExecutor(min(len(by_url), _MOST_AT_ONCE)) as pool:
                for fetched in pool.map(ask, by_url):
                    rows.update(fetched.rows)
                    errors += [] if fetched.error is None else [fetched.error]
        return FetchResult(rows, time.monotonic() - started, errors[0] if errors else None)

    def _fetch_from(self, url: str, keys: Sequence[Row], timeout: float | None) -> FetchResult:
        try:
            endpoint = self._endpoints.client_of(url)
        except EndpointError as error:
            return FetchResult({}, 0.0, str(error))
        fetcher = self._fetchers.setdefault(url, BoundFetcher(endpoint, self._queries, self.keys_per_request))
        by_inner: dict[Row, Row] = {tuple(key[i] for i in self._inner_columns): key for key in keys}
        fetched = fetcher.fetch(list(by_inner), timeout)
        rows = {
            by_inner[inner]: tuple(self._with_endpoint(row, NamedNode(url)) for row in inner_rows)
            for inner, inner_rows in fetched.rows.items()
        }
        return replace(fetched, rows=rows)

    def _with_endpoint(self, row: Row, endpoint: Term) -> Row:
        terms = {**dict(zip(self._queries.variables, row, strict=True)), self._variable: endpoint}
        return tuple(terms[variable] for variable in self.variables)

    def pages(self, limit: int) -> Iterator[Page]:
        yield Page([], 0.0, f"{self.name} has no pages: the keys name the endpoints; fill the view lazily")
