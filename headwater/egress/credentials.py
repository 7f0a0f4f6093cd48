"""Who asks: credentials that belong to one scheme, host and port, from the environment or from files.

    HEADWATER_AUTH_BANK="https://api.bank.org Bearer TOKEN"
    HEADWATER_AUTH_FILE=/run/secrets/headwater-auth       a file with such a line for each origin

The name of a variable is free behind `HEADWATER_AUTH_`; its value says first for which origin it is: scheme, host and,
unless it is the usual one, port. It is sent there and nowhere else: not to a host with a similar name, not over plain
http when it is for https, not to another port, not to where a redirect leads. Then come `Bearer TOKEN`, `Basic
USER:PASSWORD`, or headers `Header-Name: value`, one in each line of the variable. A file of `HEADWATER_AUTH_FILE` has
one line for each; empty lines and those that begin with `#` are passed over.

Credentials are read in the process that sends the request, so that they need not travel with a plan. No representation
shows them.
"""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote, urlsplit, urlunsplit

from headwater.egress.web_addresses import normalise
from headwater.errors import SettingError

VARIABLE = "HEADWATER_AUTH_"
FILE_VARIABLE = "HEADWATER_AUTH_FILE"
_HEADER = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([^\r\n]*)")
_SENDABLE = re.compile(r"[\t\r\n\x20-\x7e]*")
_FORMS = "`Bearer TOKEN`, `Basic USER:PASSWORD`, `Header-Name: value`"


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
        """The credentials that the environment and its files hold for the origin of an address, if any."""
        try:
            origin = normalise(url).origin
        except SettingError:
            return cls()
        for place, owner, credentials in read_credentials(os.environ if environ is None else environ):
            if owner == origin:
                return parse_credentials(place, credentials)
        return cls()


def check_credentials(environ: Mapping[str, str] | None = None) -> None:
    """Raise a `SettingError` for credentials of the environment or its files that are written wrongly."""
    for place, _, credentials in read_credentials(os.environ if environ is None else environ):
        parse_credentials(place, credentials)


def read_credentials(variables: Mapping[str, str]) -> Iterator[tuple[str, tuple[str, str, int | None], str]]:
    """The place, the origin and the text of all credentials that the environment and its files hold."""
    for name in sorted(variables):
        if name.startswith(VARIABLE) and name != FILE_VARIABLE:
            yield _read_line(name, variables[name])
    for path in filter(None, variables.get(FILE_VARIABLE, "").split(os.pathsep)):
        try:
            lines = Path(path).read_text("utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "it is no UTF-8"
            raise SettingError(f"{FILE_VARIABLE} names {path}, which cannot be read ({reason})") from None
        for number, line in enumerate(lines, 1):
            if line.strip() and not line.lstrip().startswith("#"):
                yield _read_line(f"line {number} of {path}", line)


def _read_line(place: str, text: str) -> tuple[str, tuple[str, str, int | None], str]:
    """The origin and the credentials of `https://example.org Bearer TOKEN`."""
    owner, _, credentials = text.strip().partition(" ") if "\n" not in text.strip().split(" ")[0] else _by_line(text)
    # Neither part is repeated in messages: a text without an origin begins with the secret.
    wanted = f"{place} must say for whom it is, as in `https://example.org Bearer TOKEN`"
    if "://" not in owner:
        raise SettingError(f"{wanted}; before 0.2 the name of the variable said it, and similar hosts got the secret")
    try:
        parts = urlsplit(owner)
        address = normalise(owner)
    except (SettingError, ValueError):
        raise SettingError(wanted) from None
    if parts.path not in ("", "/") or parts.query or parts.fragment or "@" in parts.netloc:
        raise SettingError(f"{wanted}, with scheme, host and port alone")
    return place, address.origin, credentials.strip()


def _by_line(text: str) -> tuple[str, str, str]:
    owner, _, rest = text.strip().partition("\n")
    return owner.strip(), "\n", rest


def parse_credentials(place: str, text: str) -> Credentials:
    """Credentials from their text; a `SettingError` that names the place, and not the text."""
    scheme, _, value = text.strip().partition(" ")
    if scheme.lower() != "basic" and not _SENDABLE.fullmatch(text):
        raise SettingError(f"{place} holds characters that no HTTP header can have")
    if scheme.lower() == "bearer" and value and value.isprintable():
        return Credentials(bearer=value.strip())
    if scheme.lower() == "basic" and ":" in value:
        user, _, password = value.strip().partition(":")
        return Credentials(basic=(user, password))
    headers = [_HEADER.fullmatch(line.strip()) for line in text.strip().splitlines()]
    if not headers or not all(headers):
        raise SettingError(f"{place} holds none of {_FORMS} behind its address")
    return Credentials(headers=tuple((match[1], match[2]) for match in headers if match))


def split_user_info(url: str) -> tuple[str, Credentials | None]:
    """An address without its user info, and the credentials that the user info is."""
    try:
        parts = urlsplit(url)
        has_user = parts.username is not None
    except ValueError:
        raise SettingError("an address is scheme://host:port/path") from None
    if not has_user:
        return url, None
    plain = urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
    return plain, Credentials(basic=(unquote(parts.username or ""), unquote(parts.password or "")))
