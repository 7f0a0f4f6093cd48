"""Errors of calls on their way from the engine process to the HTTP process: a kind, and words for the person who asked.

Kinds that may have paths of this machine in their words keep them: the log has them, the reply has not.
"""

from __future__ import annotations

import logging
from typing import Any

from headwater.egress.policy import EgressError
from headwater.errors import HeadwaterError, SettingError, StateError
from headwater.execution.registered import RegistrationError
from headwater.explain.dot import GraphvizError
from headwater.language.errors import QueryError
from headwater.sources.posting.posted import KeyReused, StreamBusy
from headwater.sources.source import SourceError
from headwater.terms.durations import DurationError
from headwater.terms.packing import Plain
from headwater.terms.template import TemplateError
from headwater.values.query_limits import LimitError

logger = logging.getLogger(__name__)


class UnknownName(HeadwaterError):
    """A query or a stream that is not there."""


class NotAllowedHere(HeadwaterError):
    """What a server does not do for those who only reach it over HTTP."""


class TooMany(HeadwaterError):
    """One query or stream more than there may be."""


class EngineDown(HeadwaterError):
    """The engine process is not there, or went away before it replied."""


class CallError(HeadwaterError):
    """What the engine process replied instead of a value."""

    def __init__(self, kind: str, message: str, places: list[dict[str, Any]] | None = None) -> None:
        super().__init__(message)
        self.kind = kind
        self.places = places or []


_KINDS: tuple[tuple[type[Exception], str], ...] = (
    (UnknownName, "unknown"),
    (NotAllowedHere, "forbidden"),
    (TooMany, "too-many"),
    (StreamBusy, "busy"),
    (KeyReused, "key"),
    (QueryError, "query"),
    (RegistrationError, "conflict"),
    (EgressError, "egress"),
    (LimitError, "limit"),
    (GraphvizError, "graphviz"),
    (TemplateError, "setting"),
    (DurationError, "setting"),
    (SettingError, "setting"),
    (StateError, "state"),
)


def error_to_plain(error: Exception) -> Plain:
    """An error as plain values, which say nothing of this machine."""
    if isinstance(error, SourceError):
        logger.error("%s", error)
        return {"kind": "storage", "message": "it cannot be written now: the server's log says why"}
    for kind, name in _KINDS:
        if isinstance(error, kind):
            places = query_error_places(error) if isinstance(error, QueryError) else []
            message = error.message if isinstance(error, QueryError) else str(error)
            return {"kind": name, "message": message, "places": places}
    logger.error("a call failed", exc_info=error)
    return {"kind": "internal", "message": "the engine could not do this: the server's log says why"}


def query_error_places(error: QueryError) -> list[dict[str, Any]]:
    """Where a query is wrong, and what was expected there."""
    return [
        {"line": error.line, "column": error.column, "message": error.message, "expected": list(error.expected)},
    ]
