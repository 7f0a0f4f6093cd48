"""Addresses in one normal form, so that what is compared is what is connected to.

>>> normalise("HTTPS://Example.org.:443/a/../b")
WebAddress(scheme='https', host='example.org', port=443, path='/b')

The host is lower case and ASCII (IDNA), without the dot of the root. An IP address has one spelling; spellings of it
that only some programs understand (`2130706433`, `0177.1`, `0x7f.0.0.1`) are refused. A missing port is that of the
scheme.
"""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

import idna

from headwater.errors import SettingError

PORTS = {"http": 80, "https": 443, "ws": 80, "wss": 443, "mqtt": 1883, "mqtts": 8883, "kafka": 9092}
"""The ports of addresses that name none."""
IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address

_FORBIDDEN = re.compile(r"[\x00-\x20\\<>\"^`{|}\x7f]")
_NAME = re.compile(r"(?!-)[a-z0-9_-]+(?<!-)(?:\.(?!-)[a-z0-9_-]+(?<!-))*")
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_MOST_DECODINGS = 5


@dataclass(frozen=True, slots=True)
class WebAddress:
    """What of an address decides where a request goes; user info, parameters and fragment do not."""

    scheme: str
    host: str
    port: int | None
    path: str = "/"

    @property
    def origin(self) -> tuple[str, str, int | None]:
        """Scheme, host and port: what credentials belong to."""
        return self.scheme, self.host, self.port

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = "" if self.port is None or PORTS.get(self.scheme) == self.port else f":{self.port}"
        return f"{self.scheme}://{host}{port}{self.path}"


def normalise(url: str) -> WebAddress:
    """The normal form of an address; a `SettingError`, which does not repeat it, where it has none."""
    if _FORBIDDEN.search(url):
        raise SettingError("an address has no blanks, control characters or backslashes")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise SettingError("an address is scheme://host:port/path, with a port from 1 to 65535") from None
    if not parts.scheme or not parts.hostname:
        raise SettingError("an address is scheme://host:port/path")
    if port == 0:
        raise SettingError("an address has a port from 1 to 65535")
    scheme = parts.scheme.lower()
    path = remove_dot_segments(parts.path or "/")
    return WebAddress(scheme, normalise_host(parts.hostname), port or PORTS.get(scheme), path)


def normalise_host(host: str) -> str:
    """The one spelling of a host; a `SettingError` for a host that programs read in different ways."""
    address = parse_ip(host)
    if address is not None:
        return str(address)
    name = host.rstrip(".").lower() if host.rstrip(".").isascii() else _to_ascii(host)
    if _is_odd_ip(name):
        raise SettingError(f"the host {name} is an IP address in an unusual spelling: write it as 127.0.0.1 is written")
    if not _NAME.fullmatch(name):
        raise SettingError("a host has letters, digits, hyphens and dots")
    return name


def _to_ascii(host: str) -> str:
    try:
        return idna.encode(host.rstrip("."), uts46=True).decode("ascii").lower()
    except (idna.IDNAError, UnicodeError):
        raise SettingError("the host of an address is no name that IDNA knows") from None


def _is_odd_ip(name: str) -> bool:
    """Whether the system reads a name as an IPv4 address, as it does with decimal, octal and shortened forms."""
    try:
        socket.inet_aton(name)
    except OSError:
        return False
    return True


def parse_ip(host: str) -> IPAddress | None:
    """The IP address that a host is, in its usual spelling; None for a name."""
    try:
        return ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return None


def is_public(address: IPAddress) -> bool:
    """Whether an IP address belongs to the public Internet, and so does each IPv4 address that it stands for."""
    if not address.is_global or address.is_multicast or address.is_reserved or getattr(address, "is_site_local", False):
        return False
    return all(is_public(inner) for inner in _embedded(address))


def _embedded(address: IPAddress) -> Iterator[ipaddress.IPv4Address]:
    """The IPv4 addresses to which an IPv6 address leads: mapped, 6to4, Teredo, NAT64."""
    if isinstance(address, ipaddress.IPv4Address):
        return
    if address.ipv4_mapped is not None:
        yield address.ipv4_mapped
    if address.sixtofour is not None:
        yield address.sixtofour
    if address.teredo is not None:
        yield from address.teredo
    if address in _NAT64:
        yield ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF)


def plain_address(address: IPAddress) -> IPAddress:
    """The IPv4 address of an IPv4-mapped IPv6 address; any other address as it is."""
    return getattr(address, "ipv4_mapped", None) or address


def remove_dot_segments(path: str) -> str:
    """A path without `.` and `..` (RFC 3986, section 5.2.4); the slashes between segments stay as they are."""
    kept: list[str] = []
    segments = path.split("/")
    for index, segment in enumerate(segments):
        if segment in (".", ".."):
            if segment == ".." and len(kept) > 1:
                kept.pop()
            if index == len(segments) - 1:
                kept.append("")
        else:
            kept.append(segment)
    return "/".join(kept) or "/"


def readings_of(path: str) -> Iterator[str]:
    """The path in every way in which a server may read it: with percent encodings decoded once, twice, and so on.

    A backslash may be read as a slash, and several slashes as one; what stands behind a semicolon in a segment may be
    left out, so that `..;a` is `..`. Dot segments are removed from each reading.
    """
    for _ in range(_MOST_DECODINGS):
        slashed = path.replace("\\", "/")
        yield remove_dot_segments(slashed)
        yield remove_dot_segments(re.sub("/+", "/", slashed))
        yield remove_dot_segments(re.sub("/+", "/", re.sub(";[^/]*", "", slashed)))
        decoded = unquote(path, errors="replace")
        if decoded == path:
            return
        path = decoded
    raise SettingError("the path of an address is encoded too often")


def is_below(path: str, prefix: str) -> bool:
    """Whether every reading of a path is the prefix, or lies below it: `/sparql` has `/sparql/a` and not `/sparql2`."""
    start = prefix if prefix.endswith("/") else prefix + "/"
    return all(reading == prefix or reading.startswith(start) for reading in readings_of(path))
