"""Callbacks: each answer of a query sent to a web address, in order, again and again until it is taken.

    POST /hook
    Content-Type: application/json
    Idempotency-Key: 1792000000-42-0          the id of the event, the same each time that it is sent
    X-Headwater-Query: cars
    X-Headwater-Signature: sha256=…           HMAC of the body with the secret of the server

What was taken is noted on disk, so that a server that is started again goes on behind it. Addresses must be allowed by
the egress policy, at the connection, too; redirects are not followed.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import logging
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx

from headwater.egress.policy import EgressError, EgressPolicy
from headwater.egress.secret_references import fill_in_secrets
from headwater.egress.transport import make_client
from headwater.server.answers.answer_events import Event
from headwater.server.answers.event_ids import BEGINNING, EventId
from headwater.server.answers.fan_out import FanOut, NotKept, Subscriber
from headwater.server.server_settings import ServerSettings
from headwater.sinks.file_sink import file_name
from headwater.terms.durable_files import create_folder, replace_file
from headwater.terms.redaction import redact_url

logger = logging.getLogger(__name__)

_FIRST_WAIT, _LONGEST_WAIT = 0.5, 60.0
_TIMEOUT_SECONDS = 10.0
_QUIET_SECONDS = 60.0
_ALWAYS = 1e9


class Callbacks:
    """Sends the answers of queries that have a callback."""

    def __init__(self, settings: ServerSettings, fan_out: FanOut) -> None:
        self._folder = settings.state / "callbacks"
        self._settings = settings
        self._fan_out = fan_out
        self._tasks: dict[tuple[str, str], asyncio.Task[None]] = {}

    def keep(self, queries: Mapping[str, Mapping[str, Any]]) -> None:
        """Send for these queries, and for no others. To be called in the event loop."""
        wanted = {(name, query["callback"]) for name, query in queries.items() if query.get("callback")}
        for key in [one for one in self._tasks if one not in wanted]:
            self._tasks.pop(key).cancel()
        for key in wanted:
            if key not in self._tasks or self._tasks[key].done():
                self._tasks[key] = asyncio.create_task(self._send_all(*key))

    def close(self) -> None:
        """Send nothing more."""
        for task in self._tasks.values():
            task.cancel()
        self._tasks = {}

    async def _send_all(self, query: str, url: str) -> None:
        path = self._folder / f"{file_name(query)}.json"
        after = await asyncio.to_thread(_read_mark, path, url)
        hub = self._fan_out.hub(query)
        http = self._settings.http
        try:
            await hub.check_kept("answers", after)
        except NotKept:
            logger.error("the callback of %s was away for longer than answers are kept: some were not sent", query)
            after = None
        if after is None:
            # Where nothing was sent yet, it begins with the oldest answer that is kept.
            after = BEGINNING
        subscriber = Subscriber("answers", http.waiting_events, http.waiting_bytes, _ALWAYS)
        async for events in hub.follow(subscriber, after, _QUIET_SECONDS):
            for event in events:
                if event.id is not None:
                    await self._send(query, url, event)
                    await asyncio.to_thread(_write_mark, path, url, event.id)

    async def _send(self, query: str, url: str, event: Event) -> None:
        """Send an answer until it is taken."""
        secret = fill_in_secrets({"callback_secret": self._settings.server.callback_secret or ""})["callback_secret"]
        headers = {
            "Content-Type": "application/json",
            "User-Agent": "headwater",
            "Idempotency-Key": str(event.id),
            "X-Headwater-Query": query.encode("ascii", "backslashreplace").decode(),
            "X-Headwater-Signature": sign(secret, event.data),
        }
        wait = _FIRST_WAIT
        while True:
            try:
                status = await asyncio.to_thread(self._post, url, event.data, headers)
                if status < 300:
                    return
                reason = f"status {status}"
            except (httpx.HTTPError, EgressError, OSError) as error:
                reason = type(error).__name__
            logger.warning("%s did not take an answer of %s (%s)", redact_url(url), query, reason)
            await asyncio.sleep(wait)
            wait = min(2 * wait, _LONGEST_WAIT)

    def _post(self, url: str, body: bytes, headers: dict[str, str]) -> int:
        table = self._settings.egress
        with make_client(EgressPolicy(table.allow, table.networks)) as client:
            response = client.post(url, content=body, headers=headers, timeout=_TIMEOUT_SECONDS, follow_redirects=False)
            return response.status_code


def sign(secret: str, body: bytes) -> str:
    """The signature of a body."""
    return "sha256=" + hmac.new(secret.encode("utf-8", "surrogatepass"), body, hashlib.sha256).hexdigest()


def _read_mark(path: Path, url: str) -> EventId | None:
    """The last event that an address has taken; None where it has taken none."""
    with suppress(OSError, ValueError, KeyError):
        known = json.loads(path.read_text("utf-8"))
        if known["callback"] == url:
            return EventId.parse(known["after"])
    return None


def _write_mark(path: Path, url: str, id: EventId) -> None:
    create_folder(path.parent, mode=0o700)
    replace_file(path, json.dumps({"callback": url, "after": str(id)}).encode("utf-8", "surrogatepass"))
