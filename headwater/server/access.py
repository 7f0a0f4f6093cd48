"""Who may do what: bearer tokens with scopes, kept as hashes.

| scope | allows |
|---|---|
| `read` | queries, their answers, streams, metrics, previews |
| `feed` | elements for streams |
| `register` | queries, and streams that are fed over HTTP |
| `update` | the linked data |
| `admin` | all of it, and streams from elsewhere |

A token may be confined to queries and streams whose names begin with some texts. It is a text of 32 random bytes, so a
plain SHA-256 of it tells nothing about it.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from headwater.errors import SettingError
from headwater.server.problems import Problem

Scope: TypeAlias = Literal["read", "feed", "register", "update", "admin"]
SCOPES: tuple[str, ...] = get_args(Scope)
_KIND = "sha256:"
_REALM = 'Bearer realm="headwater"'


@dataclass(frozen=True, slots=True)
class AccessToken:
    """What the settings know of a token: its name, its hash and what it allows."""

    name: str
    hash: str
    scopes: frozenset[str] = frozenset({"read"})
    queries: tuple[str, ...] = ("",)
    streams: tuple[str, ...] = ("",)

    @classmethod
    def of(
        cls, name: str, hash: str, scopes: Sequence[str], queries: Sequence[str] | None, streams: Sequence[str] | None
    ) -> AccessToken:
        """A token as it stands in the settings; a `SettingError` where it cannot be right."""
        if not hash.startswith(_KIND) or len(hash) != len(_KIND) + 64:
            raise SettingError(
                f"the token {name!r} needs a hash, as `headwater serve --make-token {name}` prints it, and not itself"
            )
        if unknown := sorted(set(scopes) - set(SCOPES)):
            raise SettingError(f"the token {name!r} has the scope {', '.join(unknown)}: use {', '.join(SCOPES)}")
        return cls(
            name,
            hash,
            frozenset(scopes),
            ("",) if queries is None else tuple(queries),
            ("",) if streams is None else tuple(streams),
        )


@dataclass(frozen=True, slots=True)
class Caller:
    """Who makes a request: the token, or anybody where the server has none."""

    name: str = "anybody"
    scopes: frozenset[str] = frozenset(SCOPES)
    queries: tuple[str, ...] = ("",)
    streams: tuple[str, ...] = ("",)

    @property
    def has_all_streams(self) -> bool:
        """Whether the caller is confined to no streams."""
        return "" in self.streams

    @property
    def has_all(self) -> bool:
        """Whether the caller is confined neither to queries nor to streams."""
        return self.has_all_streams and "" in self.queries

    def may(self, scope: Scope, *, query: str | None = None, stream: str | None = None) -> bool:
        """Whether this caller may do something, with a query or a stream of a name where there is one."""
        if scope not in self.scopes and "admin" not in self.scopes:
            return False
        return (query is None or query.startswith(self.queries)) and (stream is None or stream.startswith(self.streams))

    def check(self, scope: Scope, *, query: str | None = None, stream: str | None = None) -> None:
        """Raise a `Problem` where this caller may not."""
        if not self.may(scope, query=query, stream=stream):
            name = query if query is not None else stream
            what = f"the scope {scope}" + ("" if name is None else f" for {name!r}")
            raise Problem(
                403,
                "The token does not allow this",
                f"It needs {what}: ask who runs the server for such a token",
                {"WWW-Authenticate": f'{_REALM}, error="insufficient_scope", scope="{scope}"'},
            )


def hash_token(token: str) -> str:
    """The hash of a token, as it stands in the settings."""
    return _KIND + hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def make_token() -> str:
    """A new token."""
    return f"hw_{secrets.token_urlsafe(32)}"


class AccessControl:
    """Finds out who makes a request."""

    def __init__(self, tokens: Sequence[AccessToken] = ()) -> None:
        self._tokens = tuple(tokens)

    @property
    def is_open(self) -> bool:
        """Whether anybody may do anything, because there are no tokens."""
        return not self._tokens

    def identify(self, authorization: str | None) -> Caller:
        """The caller that a header `Authorization` names; a `Problem` where it names nobody.

        All hashes are compared, each in constant time: how long that takes says nothing.
        """
        if self.is_open:
            return Caller()
        kind, _, given = (authorization or "").partition(" ")
        found: AccessToken | None = None
        own = hash_token(given.strip())
        for token in self._tokens:
            if hmac.compare_digest(own, token.hash):
                found = token
        if found is None or kind.lower() != "bearer":
            raise Problem(
                401,
                "A token is needed",
                "Send the header Authorization: Bearer, with a token of this server",
                {"WWW-Authenticate": _REALM},
            )
        return Caller(found.name, found.scopes, found.queries, found.streams)
