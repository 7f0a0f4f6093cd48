"""Which addresses may be asked: the one rule for SERVICE, LOAD, web documents and streams that queries locate.

    EgressPolicy(allow=["https://query.example.org/sparql", "https://*.example.com"], networks=["10.1.0.0/16"])

`allow` lists addresses: scheme, host, port and the beginning of the path. A host `*.example.com` stands for all names
below example.com, `*` for every host. What is not listed is refused; so a policy without arguments refuses everything.

Addresses outside the public Internet (loopback, private networks, link-local ones with the metadata services of clouds)
are refused, whatever the name that led to them. `networks` lists those that may be connected to. An IP address that
`allow` itself spells out, as in `http://127.0.0.1:7878/`, needs no network.

The address that counts is the one that is connected to (`egress.transport`): a name is resolved once, checked, and the
connection goes to what was checked. Every redirect is checked like a first request.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from headwater.egress.web_addresses import (
    PORTS,
    IPAddress,
    WebAddress,
    is_below,
    is_public,
    normalise,
    parse_ip,
    plain_address,
)
from headwater.errors import HeadwaterError, SettingError
from headwater.terms.redaction import redact_url

_ANY_HOST = "any-host.invalid"


class EgressError(HeadwaterError, PermissionError):
    """An address that the egress policy does not allow; nothing was sent to it."""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


@dataclass(frozen=True, slots=True)
class AllowedAddress:
    """One line of the allow-list. `is_suffix`: all names below the host; an empty host: every host."""

    scheme: str
    host: str
    port: int | None
    path: str
    is_suffix: bool = False

    @classmethod
    def parse(cls, text: str) -> AllowedAddress:
        """The rule that a text says: `https://example.org/sparql`, `https://*.example.org`, `http://*:8080`."""
        written = text.strip()
        scheme, separator, rest = written.partition("://")
        if not separator or any(mark in rest for mark in "?#@"):
            raise SettingError(
                f"{redact_url(written)!r} is no address to allow: write scheme://host:port/path, such as "
                "https://example.org/sparql or https://*.example.org"
            )
        is_any, is_suffix = rest == "*" or rest.startswith(("*/", "*:")), rest.startswith("*.")
        if is_any:
            rest = _ANY_HOST + rest[1:]
        elif is_suffix:
            rest = rest[2:]
        try:
            address = normalise(f"{scheme}://{rest}")
        except SettingError as error:
            raise SettingError(f"{text!r} cannot be allowed: {error}") from None
        if address.scheme not in PORTS and address.port is None:
            raise SettingError(f"{text!r} cannot be allowed: {address.scheme}:// needs a port")
        return cls(address.scheme, "" if is_any else address.host, address.port, address.path, is_suffix)

    def __str__(self) -> str:
        shown = WebAddress(self.scheme, self.host or "*", self.port, self.path)
        return str(shown).replace("://", "://*.", 1) if self.is_suffix else str(shown)

    def covers(self, address: WebAddress) -> bool:
        """Whether a request to an address is allowed by this line."""
        if (self.scheme, self.port) != (address.scheme, address.port):
            return False
        if self.is_suffix and not address.host.endswith(f".{self.host}"):
            return False
        if self.host and not self.is_suffix and self.host != address.host:
            return False
        return is_below(address.path, self.path)


@dataclass(frozen=True, slots=True)
class EgressPolicy:
    """The addresses that may be asked; a plain value, which can be sent to a worker.

    `allow` are addresses: `https://example.org/sparql`, `https://*.example.org`, `http://*` for every public host.
    `networks` are the networks outside the public Internet that may be connected to, such as `10.1.0.0/16`.
    """

    allow: tuple[AllowedAddress, ...] = ()
    networks: tuple[ipaddress.IPv4Network | ipaddress.IPv6Network, ...] = ()

    def __init__(self, allow: Iterable[str | AllowedAddress] = (), networks: Iterable[str] = ()) -> None:
        for name, given in (("allow", allow), ("networks", networks)):
            if isinstance(given, str | bytes):
                raise SettingError(f"{name} is a list of texts, and not one text: write [{given!r}]")
        rules = tuple(one if isinstance(one, AllowedAddress) else AllowedAddress.parse(one) for one in allow)
        object.__setattr__(self, "allow", rules)
        object.__setattr__(self, "networks", tuple(_parse_network(str(one)) for one in networks))

    @classmethod
    def of(cls, given: EgressPolicy | Mapping[str, Any] | Iterable[str] | None) -> EgressPolicy | None:
        """A policy as it is, from a mapping with `allow` and `networks`, or from a list of addresses; None: no policy.

        Without a policy everything may be asked.
        """
        if given is None or isinstance(given, EgressPolicy):
            return given
        if isinstance(given, Mapping):
            if unknown := given.keys() - {"allow", "networks"}:
                raise SettingError(f"{', '.join(sorted(unknown))} is no part of an egress policy: use allow, networks")
            return cls(given.get("allow", ()), given.get("networks", ()))
        if isinstance(given, str | bytes) or not isinstance(given, Iterable):
            raise SettingError("egress is EgressPolicy(…), or a list of addresses such as ['https://example.org/']")
        return cls(given)

    def check_url(self, url: str) -> WebAddress:
        """Refuse an address that no line allows, with an `EgressError`; gives its normal form."""
        try:
            address = normalise(url)
            if any(rule.covers(address) for rule in self._rules_for(address.host)):
                return address
        except SettingError as error:
            raise EgressError(f"{redact_url(url)} is not asked, because {error}") from None
        raise EgressError(
            f"the egress policy does not allow {address.scheme}://{_host_and_port(address)}{address.path}: "
            "add it to the allowed addresses, or leave it out of the query"
        )

    def allows_ip(self, host: str, port: int, address: IPAddress) -> bool:
        """Whether a connection to an IP address is allowed, to which the host of an allowed address has led."""
        address = plain_address(address)
        if self._is_in_open_network(address):
            return True
        literal = parse_ip(host)
        if literal is None or plain_address(literal) != address:
            return False
        return any(rule.host == str(literal) and rule.port == port for rule in self.allow)

    def _is_in_open_network(self, address: IPAddress) -> bool:
        listed = (network for network in self.networks if network.version == address.version)
        return is_public(address) or any(address in network for network in listed)

    def _rules_for(self, host: str) -> Iterable[AllowedAddress]:
        """The lines that can allow a host; an IP address outside the open networks must be spelled out in one."""
        literal = parse_ip(host)
        if literal is None or self._is_in_open_network(plain_address(literal)):
            return self.allow
        return (rule for rule in self.allow if rule.host == host)


def _host_and_port(address: WebAddress) -> str:
    host = f"[{address.host}]" if ":" in address.host else address.host
    return f"{host}:{address.port}"


def _parse_network(text: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
    try:
        return ipaddress.ip_network(text.strip())
    except ValueError:
        raise SettingError(f"{text!r} is no network: write 10.1.0.0/16, 127.0.0.1 or ::1") from None
