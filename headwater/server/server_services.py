"""What the routes of the server share: the engine, the subscribers, who may do what, and the last known counts."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field
from typing import Any

from fastapi import Request, WebSocket

from headwater.server.access import AccessControl, Caller
from headwater.server.answers.fan_out import FanOut
from headwater.server.callbacks import Callbacks
from headwater.server.own_sites import OwnSites
from headwater.server.problems import Problem
from headwater.server.process.engine_client import EngineClient
from headwater.server.process.registry import Registry
from headwater.server.request_limits import RateLimit
from headwater.server.server_settings import ServerSettings
from headwater.terms.packing import Plain

logger = logging.getLogger(__name__)

_COUNTS = ("elements", "late", "bad", "ahead")
CALLER = "headwater.caller"
"""Where the caller stands in the scope of a request."""

OPERATION = "headwater.operation"
"""Where the scope of a request says what it does, for the audit log, if its path does not."""


@dataclass
class ServerServices:
    """Everything that the routes of one server use."""

    settings: ServerSettings
    access: AccessControl
    sites: OwnSites
    rates: RateLimit
    engine: EngineClient = field(init=False)
    fan_out: FanOut = field(init=False)
    callbacks: Callbacks = field(init=False)
    status: dict[str, Any] = field(default_factory=dict)
    """What the engine told last: queries, streams, and how the run is doing."""
    _counted: dict[str, dict[str, Any]] = field(default_factory=dict)
    """The counts of streams of the runs before this one."""
    _batches: int = 0
    subscriptions: int = 0
    is_ending: asyncio.Event = field(default_factory=asyncio.Event)

    @classmethod
    def of(cls, settings: ServerSettings) -> ServerServices:
        """The services of a server with these settings; nothing is begun."""
        tokens = [one.to_token() for one in settings.tokens]
        sites = OwnSites.of(not tokens, settings.server.host, settings.server.cors)
        rates = RateLimit(settings.http.requests_per_second, settings.http.burst)
        found = cls(settings, AccessControl(tokens), sites, rates)
        found.engine = EngineClient(settings.to_engine_settings(), found._take_notice)
        found.fan_out = FanOut(settings.state / "answers")
        found.callbacks = Callbacks(settings, found.fan_out)
        registry = Registry(settings.state / "registry.json")
        found.status = {
            "queries": {name: {"status": "waiting", "text": one.text} for name, one in registry.queries.items()},
            "streams": {name: {"source": one.source} for name, one in registry.streams.items()},
            "run": {},
            "failure": None,
        }
        return found

    def _take_notice(self, name: str, value: Plain) -> None:
        """Called in the event loop with what the engine tells."""
        if name == "answers":
            self.fan_out.note_news(value)
        elif name in ("status", "ready"):
            self._carry_counts(value["run"])
            self.status = value
            self.fan_out.keep(set(value["queries"]))
            self.callbacks.keep(value["queries"])
        if name in ("ready", "down"):
            # What was logged shortly before the end was perhaps not told.
            self.fan_out.note_all_news()

    def _carry_counts(self, run: dict[str, Any]) -> None:
        """Add to the counts of streams what runs before this one counted since the server began."""
        before = self.status["run"]
        if run.get("batches", 0) < self._batches:
            self._counted = before.get("streams", {})
        self._batches = run.get("batches", 0)
        known = run.setdefault("streams", {})
        for stream, counts in self._counted.items():
            own = known.setdefault(stream, {})
            for kind in _COUNTS:
                own[kind] = own.get(kind, 0) + counts.get(kind, 0)

    def visible_status(self, caller: Caller) -> dict[str, Any]:
        """What the engine told last, and the open subscriptions: of it what this caller may know."""
        status = self.status
        if caller.has_all:
            return {**status, "subscriptions": self.subscriptions}
        queries = {name: one for name, one in status["queries"].items() if caller.may("read", query=name)}
        streams = {name: one for name, one in status["streams"].items() if caller.may("read", stream=name)}
        run = {
            part: {name: one for name, one in status["run"].get(part, {}).items() if caller.may("read", stream=name)}
            for part in ("streams", "watermarks")
        }
        counts = self.fan_out.counts
        return {
            "queries": queries,
            "streams": streams,
            "run": run,
            "failure": status["failure"],
            "subscriptions": sum(counts.get(name, 0) for name in queries),
        }

    def query_status(self, name: str) -> dict[str, Any]:
        """What is known of a query; a `Problem` where there is none of that name."""
        if name not in self.status["queries"]:
            raise Problem(404, "There is no such query", f"No query is named {name!r}: see /queries")
        found: dict[str, Any] = self.status["queries"][name]
        return found

    def stream_status(self, name: str) -> dict[str, Any]:
        """What is known of a stream; a `Problem` where there is none of that name."""
        if name not in self.status["streams"]:
            raise Problem(404, "There is no such stream", f"No stream is named {name!r}: see /streams")
        found: dict[str, Any] = self.status["streams"][name]
        return found

    def take_subscription(self) -> None:
        """Count a subscription; a `Problem` where it is one too many."""
        most = self.settings.http.subscriptions
        if self.subscriptions >= most:
            raise Problem(
                429,
                "There are too many subscriptions",
                f"At most {most:,} are allowed: try later",
                {"Retry-After": "5"},
            )
        self.subscriptions += 1

    def return_subscription(self) -> None:
        """A subscription has ended."""
        self.subscriptions -= 1

    def end_streams(self) -> None:
        """End all subscriptions, because the server stops."""
        self.is_ending.set()
        self.callbacks.close()
        self.fan_out.close("the server stops: come back with the id of your last event")


def services_of(request: Request | WebSocket) -> ServerServices:
    """The services of the application that a request came to."""
    found: ServerServices = request.app.state.services
    return found


def caller_of(request: Request | WebSocket) -> Caller:
    """Who makes a request."""
    found: Caller = request.scope[CALLER]
    return found
