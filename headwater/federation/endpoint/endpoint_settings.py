"""The settings of one SPARQL endpoint: address, credentials, time-outs, limits, retries.

Settings are plain values: they compare, hash and pickle, so a plan can carry them to a worker, which makes the client.

    EndpointSettings("https://example.org/sparql", credentials=Credentials(bearer=token), limits=Limits(per_second=5))

Credentials are given as arguments or read from the environment of the process that sends the requests, so that they
need not be sent with a plan. The variable is named after the host, `HEADWATER_AUTH_EXAMPLE_ORG` or with the port
`HEADWATER_AUTH_EXAMPLE_ORG_8890`, and holds `Bearer TOKEN`, `Basic USER:PASSWORD`, or lines `Header-Name: value`. No
representation of settings shows them.
"""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from urllib.parse import unquote, urlsplit, urlunsplit

from headwater.errors import SettingError
from headwater.federation.endpoint.limits import Limits
from headwater.terms.arguments import check_number

_VARIABLE = "HEADWATER_AUTH_"
_HEADER = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([^\r\n]*)")


class QueryMethod(Enum):
    """How an HTTP request carries a query (SPARQL 1.1 Protocol, section 2.1)."""

    POST_FORM = "POST with a form"
    POST_DIRECT = "POST of the query text"
    GET = "GET"


@dataclass(frozen=True, slots=True)
class Credentials:
    """A bearer token, user and password, or any other headers. Messages never contain them."""

    bearer: str | None = field(default=None, repr=False)
    basic: tuple[str, str] | None = field(default=None, repr=False)
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    def as_headers(self) -> dict[str, str]:
        """The request headers that carry the credentials."""
        headers = dict(self.headers)
        if self.basic is not None:
            token = base64.b64encode(":".join(self.basic).encode()).decode()
            headers["Authorization"] = f"Basic {token}"
        if self.bearer is not None:
            headers["Authorization"] = f"Bearer {self.bearer}"
        return headers

    @classmethod
    def from_environment(cls, url: str, environ: Mapping[str, str] | None = None) -> Credentials:
        """The credentials that the environment holds for the host of an address, if any."""
        variables = os.environ if environ is None else environ
        parts = urlsplit(url)
        host = re.sub(r"[^0-9A-Z]", "_", (parts.hostname or "").upper())
        named = [f"{_VARIABLE}{host}_{parts.port}"] if parts.port else []
        for name in (*named, _VARIABLE + host):
            if name in variables:
                return cls._parse(name, variables[name])
        return cls()

    @classmethod
    def _parse(cls, name: str, text: str) -> Credentials:
        scheme, _, value = text.strip().partition(" ")
        if scheme.lower() == "bearer" and value:
            return cls(bearer=value.strip())
        if scheme.lower() == "basic" and ":" in value:
            user, _, password = value.strip().partition(":")
            return cls(basic=(user, password))
        headers = [_HEADER.fullmatch(line.strip()) for line in text.strip().splitlines()]
        if not headers or not all(headers):
            # The value itself stays out of the message: it is a secret, if a badly written one.
            raise SettingError(f"{name} holds none of `Bearer TOKEN`, `Basic USER:PASSWORD`, `Header-Name: value`")
        return cls(headers=tuple((match[1], match[2]) for match in headers if match))


@dataclass(frozen=True, slots=True)
class EndpointSettings:
    """The settings of one endpoint. Times are seconds, sizes are bytes.

    `total_timeout` bounds a call with all its retries if the call itself has no time-out; `retries` counts the attempts
    after the first; `seed` makes the jitter of the back-off repeatable; without a `query_method` the client finds out
    which one the endpoint takes; `longest_pause` is an upper bound for Retry-After.
    """

    url: str
    credentials: Credentials | None = None
    limits: Limits = field(default_factory=Limits)
    connect_timeout: float = 5.0
    read_timeout: float = 30.0
    total_timeout: float = 60.0
    retries: int = 2
    backoff: float = 0.1
    longest_backoff: float = 5.0
    longest_pause: float = 86_400.0
    largest_response: int = 64 * 1024 * 1024
    longest_url: int = 4_000
    query_method: QueryMethod | None = None
    default_graphs: tuple[str, ...] = ()
    named_graphs: tuple[str, ...] = ()
    seed: int | None = None

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise SettingError(
                f"{redact_url(self.url)} is no SPARQL endpoint: its address begins with http:// or https://"
            )
        for name in ("connect_timeout", "read_timeout", "total_timeout", "largest_response", "longest_url"):
            check_number(name, getattr(self, name), can_be_zero=False)
        for name in ("retries", "backoff", "longest_backoff", "longest_pause"):
            check_number(name, getattr(self, name))
        if parts.username is not None:
            object.__setattr__(self, "url", urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2])))
            if self.credentials is None:
                basic = (unquote(parts.username), unquote(parts.password or ""))
                object.__setattr__(self, "credentials", Credentials(basic=basic))

    @property
    def name(self) -> str:
        """The name of the endpoint in messages."""
        return redact_url(self.url)

    def headers(self) -> dict[str, str]:
        """The headers with the credentials of this process."""
        credentials = Credentials.from_environment(self.url) if self.credentials is None else self.credentials
        return credentials.as_headers()


def redact_url(url: str) -> str:
    """The address without user, password, parameters and fragment, for messages."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return "the address"
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))
