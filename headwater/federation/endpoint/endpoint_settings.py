"""The settings of one SPARQL endpoint: address, credentials, time-outs, limits, retries.

Settings are plain values: they compare, hash and pickle, so a plan can carry them to a worker, which makes the client.

    EndpointSettings("https://example.org/sparql", credentials=Credentials(bearer=token), limits=Limits(per_second=5))

Credentials are given as arguments or read from the environment of the process that sends the requests
(`egress.credentials`), so that they need not be sent with a plan. No representation of settings shows them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from urllib.parse import urlsplit

from headwater.egress.credentials import Credentials, split_user_info
from headwater.errors import SettingError
from headwater.federation.endpoint.limits import Limits
from headwater.terms.arguments import check_number
from headwater.terms.redaction import redact_url


class QueryMethod(Enum):
    """How an HTTP request carries a query (SPARQL 1.1 Protocol, section 2.1)."""

    POST_FORM = "POST with a form"
    POST_DIRECT = "POST of the query text"
    GET = "GET"


@dataclass(frozen=True, slots=True, repr=False)
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
        url, own = split_user_info(self.url)
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise SettingError(
                f"{redact_url(self.url)} is no SPARQL endpoint: its address begins with http:// or https://"
            )
        for name in ("connect_timeout", "read_timeout", "total_timeout", "largest_response", "longest_url"):
            check_number(name, getattr(self, name), can_be_zero=False)
        for name in ("retries", "backoff", "longest_backoff", "longest_pause"):
            check_number(name, getattr(self, name))
        if own is not None:
            object.__setattr__(self, "url", url)
            if self.credentials is None:
                object.__setattr__(self, "credentials", own)

    def __repr__(self) -> str:
        # The parameters of an address may be secrets as well.
        return f"EndpointSettings({self.name!r})"

    @property
    def name(self) -> str:
        """The name of the endpoint in messages."""
        return redact_url(self.url)

    def headers(self) -> dict[str, str]:
        """The headers with the credentials of this process."""
        credentials = Credentials.from_environment(self.url) if self.credentials is None else self.credentials
        return credentials.as_headers()
