"""Documents at web addresses, fetched under an egress policy: for data that is watched, and for LOAD.

    found = fetch_document("https://example.org/city.ttl", policy, accept="text/turtle")

Redirects are followed, and each is checked like a first request. Credentials, which come from the address itself or
from the environment, go to the origin that they belong to.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urljoin, urlsplit

import httpx

from headwater.egress.credentials import Credentials, split_user_info
from headwater.egress.policy import EgressError, EgressPolicy
from headwater.egress.transport import make_client
from headwater.egress.web_addresses import normalise
from headwater.errors import HeadwaterError, SettingError
from headwater.terms.checking.input_limits import DOCUMENT_VARIABLE, largest_document
from headwater.terms.redaction import redact_url

_TIMEOUT_SECONDS = 30.0
_MOST_REDIRECTS = 5
_REDIRECTS = frozenset({301, 302, 303, 307, 308})


class WebError(HeadwaterError, OSError):
    """A document that cannot be had; the message has no secrets of its address."""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


@dataclass(frozen=True, slots=True)
class FetchedDocument:
    """A document; `content` is None where it is the one that the headers of the request named."""

    address: str
    headers: Mapping[str, str]
    content: bytes | None

    @property
    def media_type(self) -> str:
        return self.headers.get("content-type", "").partition(";")[0].strip()


def fetch_document(
    url: str,
    policy: EgressPolicy | None = None,
    *,
    accept: str = "*/*",
    headers: Mapping[str, str] | None = None,
) -> FetchedDocument:
    """The document at an address; a `WebError` where it cannot be had, an `EgressError` where it may not be asked.

    It is not read on behind the limit of documents, whatever its server says of its size.
    """
    address, own = split_user_info(url)
    credentials = own if own is not None else Credentials.from_environment(address)
    try:
        origin = normalise(address).origin
    except SettingError as error:
        # What is no address of the web is nothing that a policy could allow.
        kind = WebError if policy is None else EgressError
        raise kind(f"{redact_url(url)} cannot be read: {error}") from None
    sent = {"Accept": accept, "User-Agent": "headwater", **(headers or {})}
    try:
        with make_client(policy) as client:
            for _ in range(_MOST_REDIRECTS + 1):
                with_secrets = credentials.as_headers() if normalise(address).origin == origin else {}
                found = _get(client, address, {**sent, **with_secrets}, largest_document())
                if isinstance(found, FetchedDocument):
                    return found
                # User info of a redirect is no secret of ours, and would be shown by whatever shows the address.
                address = split_user_info(found)[0]
                if urlsplit(address).scheme not in ("http", "https"):
                    raise WebError(f"{redact_url(url)} cannot be read: it redirects to what is not HTTP")
    except httpx.HTTPStatusError as error:
        status = f"status {error.response.status_code} {error.response.reason_phrase}"
        raise WebError(f"{redact_url(url)} cannot be read ({status})") from None
    except (httpx.HTTPError, httpx.InvalidURL, SettingError) as error:
        # Texts of httpx may have the address in them, with all its parameters.
        reason = str(error).replace(url, redact_url(url)).replace(address, redact_url(address))
        raise WebError(f"{redact_url(url)} cannot be read ({reason or type(error).__name__})") from None
    raise WebError(f"{redact_url(url)} cannot be read: more than {_MOST_REDIRECTS} redirects")


def _get(client: httpx.Client, address: str, headers: Mapping[str, str], largest: int) -> FetchedDocument | str:
    """The document at an address, or the address to which it redirects."""
    with client.stream("GET", address, headers=headers, timeout=_TIMEOUT_SECONDS, follow_redirects=False) as found:
        if found.status_code in _REDIRECTS and "location" in found.headers:
            return urljoin(address, found.headers["location"])
        if found.status_code == 304:
            return FetchedDocument(address, found.headers, None)
        found.raise_for_status()
        content = bytearray()
        for block in found.iter_bytes():
            content += block
            if len(content) > largest:
                raise WebError(
                    f"{redact_url(address)} has more than {largest:,} bytes, the limit of {DOCUMENT_VARIABLE}: "
                    "raise it, or give the document as a file"
                )
        return FetchedDocument(address, found.headers, bytes(content))
