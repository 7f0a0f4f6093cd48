"""The HTTP process' side of the engine process: calls, and a process that is begun again when it ends.

While the engine is away, calls raise `EngineDown`, and whoever reads answers reads on from the log. What was delivered
before is in the log; what was not is delivered again from the checkpoint, under the same ids.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from headwater.server.process.call_errors import CallError, EngineDown
from headwater.server.process.engine_settings import EngineSettings
from headwater.server.process.frames import pack_frame, read_frame
from headwater.terms.packing import Plain

logger = logging.getLogger(__name__)

_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 10.0
_SETTLED_SECONDS = 60.0
"""A process that ran for so long did not fail because of how it was begun."""
_CLOSE_SECONDS = 8.0
_EXIT_SECONDS = 0.5
_MOST_FAILURES = 3
"""An engine that cannot begin because of its settings is begun so often."""
_MOST_EARLY_ENDS = 10
"""One that ends by itself before it is ready, without saying why, is begun so often."""
CALL_SECONDS = 60.0
_STREAM_LIMIT = 1 << 20
_SOCKET_BYTES = 4 << 20

OnNotice = Callable[[str, Plain], None]


class EngineClient:
    """Runs the engine process and calls it.

    `on_notice` is called in the event loop with what the engine tells, and with `down` when the process has ended.
    """

    def __init__(self, settings: EngineSettings, on_notice: OnNotice) -> None:
        self._settings = settings
        self._on_notice = on_notice
        self._process: asyncio.subprocess.Process | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._waiting: dict[int, asyncio.Future[Plain]] = {}
        self._number = 0
        self._is_closing = False
        self._is_ready = asyncio.Event()
        self._keeper: asyncio.Task[None] | None = None
        self._reason: str | None = None
        self._has_been_ready = False
        self._failures = self._early_ends = 0
        self.starts = 0
        """How often the process was begun."""
        self.failure: str | None = None
        """Why the process is not begun any more; None as long as it is."""

    @property
    def is_ready(self) -> bool:
        """Whether the engine takes calls."""
        return self._is_ready.is_set()

    @property
    def process_id(self) -> int | None:
        """The number of the process; None where there is none."""
        return None if self._process is None else self._process.pid

    async def wait_until_ready(self) -> None:
        """Wait until the engine takes calls."""
        await self._is_ready.wait()

    def start(self) -> None:
        """Begin the process, and keep it going until `close`."""
        self._keeper = asyncio.create_task(self._keep_going())

    async def _keep_going(self) -> None:
        pause = _FIRST_PAUSE
        while True:
            begun = time.monotonic()
            try:
                await self._run_once()
            except Exception:
                logger.exception("the engine process cannot be begun")
            self._note_end()
            if self._is_closing or self._is_hopeless():
                return
            if time.monotonic() - begun > _SETTLED_SECONDS:
                pause = _FIRST_PAUSE
            logger.error("the engine process has ended; it is begun again in %.1f s", pause)
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)

    def _is_hopeless(self) -> bool:
        """Whether the process has failed so often before it was ready that another attempt would, too."""
        code = None if self._process is None else self._process.returncode
        if self._reason is not None:
            self._failures += 1
        elif self._has_been_ready or (code is not None and code < 0):
            # It worked, or somebody else ended it.
            self._failures = self._early_ends = 0
        else:
            self._early_ends += 1
        if self._failures >= _MOST_FAILURES:
            self.failure = self._reason
        elif self._early_ends >= _MOST_EARLY_ENDS:
            self.failure = f"it ended {self._early_ends} times before it was ready: the server's log says why"
        if self.failure is not None:
            logger.error("the engine cannot begin, and is not begun any more: %s", self.failure)
        return self.failure is not None

    async def _run_once(self) -> None:
        """Begin the process, and take what it sends until it ends."""
        self._reason, self._has_been_ready = None, False
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        for one in (ours, theirs):
            # A body of some megabytes goes through at once.
            one.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SOCKET_BYTES)
        with theirs:
            self.starts += 1
            number = theirs.fileno()
            command = [sys.executable, "-m", "headwater.server.process.engine_process", str(number)]
            self._process = await asyncio.create_subprocess_exec(
                *command, pass_fds=[number], stdin=asyncio.subprocess.DEVNULL, start_new_session=True
            )
        reader, self._writer = await asyncio.open_connection(sock=ours, limit=_STREAM_LIMIT)
        try:
            self._writer.writelines(pack_frame({"settings": self._settings.to_plain()}))
            while True:
                try:
                    frame = await read_frame(reader)
                except (asyncio.IncompleteReadError, OSError):
                    break
                self._take(frame)
        finally:
            self._writer.close()
            self._is_ready.clear()
            with suppress(TimeoutError):
                # How it ended by itself says whether to begin another one.
                await asyncio.wait_for(self._process.wait(), _EXIT_SECONDS)
            with suppress(ProcessLookupError):
                self._process.kill()
            await self._process.wait()

    def _take(self, frame: dict[str, Any]) -> None:
        if "notice" in frame:
            if frame["notice"] == "ready":
                self._has_been_ready = True
                self._is_ready.set()
            elif frame["notice"] == "failed":
                self._reason = str(frame["value"])
                logger.error("the engine cannot begin: %s", self._reason)
                return
            self._on_notice(frame["notice"], frame["value"])
            return
        waiting = self._waiting.pop(frame["id"], None)
        if waiting is None or waiting.done():
            return
        if "error" in frame:
            error = frame["error"]
            waiting.set_exception(CallError(error["kind"], error["message"], error.get("places")))
        else:
            waiting.set_result(frame["value"])

    def _note_end(self) -> None:
        self._is_ready.clear()
        self._writer = None
        waiting, self._waiting = self._waiting, {}
        for one in waiting.values():
            if not one.done():
                one.set_exception(EngineDown("the engine went away before it had replied"))
        self._on_notice("down", None)

    async def call(self, name: str, /, **arguments: Plain) -> Plain:
        """Call a method of the service; a `CallError` for what it refuses, `EngineDown` where nobody is there."""
        if not self._is_ready.is_set() or self._writer is None:
            if self.failure is not None:
                raise EngineDown("the engine cannot begin, and is not begun any more: /ready says why")
            raise EngineDown("the engine is being started")
        self._number += 1
        number = self._number
        waiting = self._waiting[number] = asyncio.get_running_loop().create_future()
        try:
            self._writer.writelines(pack_frame({"id": number, "call": name, "arguments": arguments}))
            await self._writer.drain()
            return await asyncio.wait_for(waiting, CALL_SECONDS)
        except TimeoutError:
            raise EngineDown(f"the engine has not replied for {CALL_SECONDS:g} seconds") from None
        except OSError:
            raise EngineDown("the engine went away") from None
        finally:
            self._waiting.pop(number, None)

    async def close(self) -> None:
        """End the process in order, or, where it does not end, at once."""
        self._is_closing = True
        if self._writer is not None:
            with suppress(OSError):
                self._writer.writelines(pack_frame({"id": 0, "call": "close", "arguments": {}}))
        if self._keeper is not None:
            try:
                await asyncio.wait_for(asyncio.shield(self._keeper), _CLOSE_SECONDS)
            except TimeoutError:
                logger.error("the engine process does not end and is killed; it goes on from its checkpoint")
                if self._process is not None:
                    with suppress(ProcessLookupError):
                        self._process.kill()
            self._keeper.cancel()
            with suppress(asyncio.CancelledError):
                await self._keeper


def is_alive(process_id: int) -> bool:
    """Whether a process is there."""
    try:
        os.kill(process_id, 0)
    except ProcessLookupError:
        return False
    return True
