"""How to speak with one SPARQL endpoint: address, credentials, time-outs, limits, retries.

Settings are plain values: they compare, hash and pickle, so a plan can carry them to a worker, which makes the client.

    EndpointSettings("https://example.org/sparql", credentials=Credentials(bearer=token), limits=Limits(per_second=5))

Credentials are given as arguments or found in the environment of the process that asks (so they need not travel with
a plan): the variable is named after the host, `HEADWATER_AUTH_EXAMPLE_ORG` or with the port
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

_VARIABLE = "HEADWATER_AUTH_"
_HEADER = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([^\r\n]*)")


class Way(Enum):
    """How a query travels (SPARQL 1.1 Protocol, section 2.1)."""

    POST_FORM = "POST with a form"
    POST_DIRECT = "POST of the query text"
    GET = "GET"


@dataclass(frozen=True, slots=True)
class Credentials:
    """Who we are: a bearer token, user and password, or any other headers. Never shown."""

    bearer: str | None = field(default=None, repr=False)
    basic: tuple[str, str] | None = field(default=None, repr=False)
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    def as_headers(self) -> dict[str, str]:
        """The request headers that say it."""
        found = dict(self.headers)
        if self.basic is not None:
            token = base64.b64encode(":".join(self.basic).encode()).decode()
            found["Authorization"] = f"Basic {token}"
        if self.bearer is not None:
            found["Authorization"] = f"Bearer {self.bearer}"
        return found

    @classmethod
    def from_environment(cls, url: str, environ: Mapping[str, str] | None = None) -> Credentials:
        """What the environment says for the host of an address; nothing where it says nothing."""
        variables = os.environ if environ is None else environ
        parts = urlsplit(url)
        host = re.sub(r"[^0-9A-Z]", "_", (parts.hostname or "").upper())
        named = [f"{_VARIABLE}{host}_{parts.port}"] if parts.port else []
        for name in (*named, _VARIABLE + host):
            if name in variables:
                return cls._read(name, variables[name])
        return cls()

    @classmethod
    def _read(cls, name: str, text: str) -> Credentials:
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
        return cls(headers=tuple((found[1], found[2]) for found in headers if found))


@dataclass(frozen=True, slots=True)
class EndpointSettings:
    """All there is to know about an endpoint before the first request. Times are seconds, sizes are bytes.

    `total_timeout` bounds a call with all its retries where the call itself sets no time; `retries` counts the attempts
    after the first; `seed` makes the jitter of the back-off repeatable; `way` fixes how queries travel, otherwise the
    client finds out; `longest_pause` bounds how long a Retry-After is believed.
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
    way: Way | None = None
    default_graphs: tuple[str, ...] = ()
    named_graphs: tuple[str, ...] = ()
    seed: int | None = None

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise SettingError(f"{shown(self.url)} is no SPARQL endpoint: its address begins with http:// or https://")
        for name in ("connect_timeout", "read_timeout", "total_timeout", "largest_response", "longest_url"):
            if getattr(self, name) <= 0:
                raise SettingError(f"{name} must be above zero, and it is {getattr(self, name)}")
        for name in ("retries", "backoff", "longest_backoff", "longest_pause"):
            if getattr(self, name) < 0:
                raise SettingError(f"{name} must not be negative, and it is {getattr(self, name)}")
        if parts.username is not None:
            object.__setattr__(self, "url", urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2])))
            if self.credentials is None:
                basic = (unquote(parts.username), unquote(parts.password or ""))
                object.__setattr__(self, "credentials", Credentials(basic=basic))

    @property
    def name(self) -> str:
        """What messages call the endpoint."""
        return shown(self.url)

    def headers(self) -> dict[str, str]:
        """The credentials that hold in this process."""
        found = Credentials.from_environment(self.url) if self.credentials is None else self.credentials
        return found.as_headers()


def shown(url: str) -> str:
    """An address as messages may show it: without user, password, parameters and fragment."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return "the address"
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))
