"""Which streams the text of a query reads and makes, and whether a caller may have that.

A token may be confined to streams whose names begin with some texts. A query brings what its streams hold to whoever
reads its answers, so its text counts: every stream that it reads, also one that another query makes or that its IRI
locates, and the stream that it registers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from headwater.algebra.build import plan_query
from headwater.engine.registering import parse_choice
from headwater.errors import HeadwaterError
from headwater.language.parser import parse
from headwater.language.stream_clauses import Dialect, RegistrationKind
from headwater.server.access import Caller, Scope
from headwater.server.problems import Problem
from headwater.server.process.call_errors import CallError, error_to_plain
from headwater.terms.names import iri_to_name, name_to_iri

_ANY = "urn:headwater:any-stream"
"""Stands for all streams: a text that reads this one reads `STREAM ?s`."""


@dataclass(frozen=True, slots=True)
class StreamUse:
    """The IRIs of the streams that a text reads and makes; `reads_any` where it reads all there are, and will be."""

    read: frozenset[str]
    made: frozenset[str]
    reads_any: bool


def find_stream_use(text: str, dialect: str | None) -> StreamUse:
    """The streams of a text; a `QueryError` where it is no query."""
    parsed = parse(text, parse_choice(Dialect, dialect, "dialect"))
    plan = plan_query(parsed, name="query", streams=[_ANY])
    read = {window.stream.value for window in plan.windows}
    registration = parsed.registration
    is_stream = registration is not None and registration.kind is RegistrationKind.STREAM
    made = {name_to_iri(registration.name).value} if registration is not None and is_stream else set()
    return StreamUse(frozenset(read - {_ANY}), frozenset(made), _ANY in read)


async def check_stream_rights(
    caller: Caller, scope: Scope, text: str, dialect: str | None, streams: Mapping[str, Mapping[str, Any]]
) -> None:
    """Raise a `Problem` where a text reads or makes a stream that this caller may not have.

    `streams` are those of the server. A text that is no query is a `CallError`, as it would be in the engine.
    """
    if caller.has_all_streams:
        return
    try:
        use = await asyncio.to_thread(find_stream_use, text, dialect)
    except HeadwaterError as error:
        found = error_to_plain(error)
        raise CallError(found["kind"], found["message"], found.get("places")) from None
    if use.reads_any:
        raise Problem(
            403,
            "The token does not allow this",
            "STREAM with a variable reads every stream, and the token is for some of them: name them",
        )
    names = {one.get("iri") or name_to_iri(name).value: name for name, one in streams.items()}
    for iri in sorted(use.read | use.made):
        name = names.get(iri) or iri_to_name(iri)
        caller.check(scope, stream=name)
        if iri not in names and _has_dots(iri):
            # Whoever is asked for such an address may take another one for the same.
            raise Problem(403, "The token does not allow this", f"Write {name!r} without . and .. in its path")


def _has_dots(iri: str) -> bool:
    parts = iri.lower().replace("%2e", ".").replace("%2f", "/").replace("\\", "/").split("/")
    return "." in parts or ".." in parts
