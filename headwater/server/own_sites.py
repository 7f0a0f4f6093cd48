"""Which websites a browser may bring requests from: this server's own pages, and those that the setting `cors` names.

A browser on this machine reaches a server on loopback for any website that it shows. Without tokens nothing else would
tell such a request from one of the person at the machine. So the server must be asked for by a name of this machine
(a website elsewhere may lead its own name here), and a request must not come from a page of another origin.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from urllib.parse import urlsplit

from starlette.datastructures import Headers

from headwater.server.problems import Problem

_ANY = "*"


@dataclass(frozen=True, slots=True)
class OwnSites:
    """The names and origins of one server. `host` is where it listens; `is_open` says that it has no tokens."""

    is_open: bool
    host: str = "127.0.0.1"
    cors: tuple[str, ...] = ()

    @classmethod
    def of(cls, is_open: bool, host: str, cors: Sequence[str]) -> OwnSites:
        return cls(is_open, host, tuple(one.rstrip("/").lower() for one in cors))

    def check(self, headers: Headers) -> None:
        """Raise a `Problem` where another website may stand behind a request."""
        host, origin = headers.get("host", "").lower(), headers.get("origin")
        if origin is not None and not self._is_known(origin.lower(), host):
            raise Problem(
                403,
                "A page of another website asks",
                "Put its origin into cors of [server], if its pages may use this server",
            )
        if self.is_open and not self._is_own(host):
            raise Problem(403, "This is no name of this machine", "Ask for this server by the name localhost")

    def _is_known(self, origin: str, host: str) -> bool:
        if origin in self.cors or _ANY in self.cors:
            return True
        try:
            return urlsplit(origin).netloc == host
        except ValueError:
            return False

    def _is_own(self, host: str) -> bool:
        """Whether a header `Host` names this machine. Nobody elsewhere can lead an address of loopback here."""
        name = host.rpartition(":")[0] if ":" in host.rpartition("]")[2] else host
        name = name.removeprefix("[").removesuffix("]").rstrip(".")
        if name in ("localhost", self.host.lower()):
            return True
        try:
            return ip_address(name).is_loopback
        except ValueError:
            return False
