"""A stream that a program sends itself: `push()`, and `send` from any thread while a run is at work.

    gates = hw.push()
    engine.stream("gates", gates)
    with engine:
        gates.send([triple])                    at the time of arrival
        gates.send([triple], time=1_000_000)    at a time of its own
        gates.close()                           nothing follows: open windows are answered

What was sent goes through a spool, as what is received over a network does (`sources.receivers`): with a checkpoint it
is on disk when `send` returns, and a later run goes on with what was not answered. Before a run reads the stream, and
between two runs, elements wait in memory.

Elements without a time of their own are stamped when they are sent. As long as all are, the spool has a mark of what
has settled, as that of a receiver: windows close by the clock, and an eager query answers at once.

A bounded number of elements may wait to be evaluated. Behind that `send` waits, so that a program cannot be faster than
its queries for long. Where no run reads the stream nobody would end that wait, and `send` raises a `StateError`.
"""

from __future__ import annotations

import asyncio
import json
import logging
import threading
import time as clock
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Any, TypeAlias

from headwater.errors import SettingError, StateError
from headwater.linting.implausible_times import is_in_seconds, seconds_text
from headwater.sources.offsets import StreamOffset
from headwater.sources.payloads import Decoder, ReceivedMessage
from headwater.sources.receivers import MARK_SECONDS, ReceivedSource, RunSignals
from headwater.sources.source import SourceError
from headwater.sources.spool import Spool, SpoolSource, read_mark
from headwater.terms.arguments import check_elements, check_number, check_time, check_whole
from headwater.terms.model import BadElement, Element, Triple
from headwater.terms.template import RowTemplate
from headwater.terms.timestamps import check_in_calendar, datetime_to_time

_BUFFER = 10_000
_PATIENCE_SECONDS = 10.0
"""A `send` that waits for so long says so in the log."""
_LOG = logging.getLogger("headwater.connectors")

Message: TypeAlias = bytes | str | Mapping[str, Any]
"""What a source with a format or a template takes: the bytes or the text of a message, or a JSON row."""
Sent: TypeAlias = Element | Iterable[Triple] | Message
Time: TypeAlias = int | str | datetime


class PushSource(ReceivedSource):
    """A stream whose elements a program sends; `push` makes one. All methods may be called from any thread."""

    def __init__(self, decoder: Decoder | None, buffer: int) -> None:
        self.address = "push"
        self._decoder = decoder
        self._most = buffer
        self._changed = threading.Condition()
        self._unspooled: list[Element | BadElement] = []
        """What waits in memory, because no run reads the stream."""
        self._unread: deque[tuple[str, int, Sequence[Element | BadElement]]] = deque()
        """What is in the spool and was not evaluated: the file, the place behind the elements, the elements."""
        self._spool: Spool | None = None
        self._wake: Callable[[], None] = lambda: None
        self._is_closed = False
        self._has_ended = False
        self._last_time = 0
        self._stamps: bool | None = None
        """Whether all elements were stamped when they were sent; None before the first one."""
        self._stamped: set[int] = set()
        """The stamps of elements that are not written yet."""
        self._sent = 0
        self._is_begun = False
        """Whether an element was made, whose time was looked at."""

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return self._is_closed

    @property
    def waiting(self) -> int:
        """How many elements were sent and are not evaluated yet."""
        with self._changed:
            return self._waiting()

    def _waiting(self) -> int:
        return len(self._unspooled) + sum(len(elements) for _, _, elements in self._unread)

    def send(self, data: Sent, *, time: Time | None = None, timeout: float | None = None) -> None:
        """Send one element: triples, an `Element`, or a message where the source has a format or a template.

        `time` is in microseconds since 1970, a text such as an xsd:dateTime, or a `datetime` with a time zone; without
        it the element, or what the message says, has its own time, and triples have that of their arrival. When too
        many elements wait, this waits until some were evaluated, or for `timeout` seconds: then, and where no run
        reads the stream, a `StateError` says that nothing was sent.
        """
        self._take([(data, time)], timeout)

    def send_all(
        self, elements: Iterable[Sent | tuple[Time, Iterable[Triple]]], *, timeout: float | None = None
    ) -> None:
        """Send several elements at once: as `send` takes them, or pairs of a time and triples.

        With a checkpoint this is faster than sending each of them, because they are written to disk together.
        """
        listed = list(elements)
        pairs: list[tuple[Any, Time | None]] = []
        for one in listed:
            is_pair = isinstance(one, tuple) and len(one) == 2 and isinstance(one[0], int | str | datetime)
            pairs.append((one[1], one[0]) if isinstance(one, tuple) and is_pair else (one, None))
        self._take(pairs, timeout)

    async def send_async(self, data: Sent, *, time: Time | None = None, timeout: float | None = None) -> None:
        """The same as `send`, for programs with an event loop, which goes on while this waits."""
        await asyncio.to_thread(self.send, data, time=time, timeout=timeout)

    def close(self) -> None:
        """Say that nothing follows. When all was evaluated the stream ends, and its open windows are answered.

        Iterators over queries all of whose streams have ended so end, too, also while the run goes on.
        """
        with self._changed:
            self._is_closed = True
            if self._spool is not None:
                self._spool.end_stream()
            self._changed.notify_all()
        self._wake()

    def __enter__(self) -> PushSource:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _take(self, pairs: Sequence[tuple[Any, Time | None]], timeout: float | None) -> None:
        """Make elements and write them, a buffer at a time."""
        end = None if timeout is None else clock.monotonic() + check_number("timeout", timeout)
        stamps: set[int] = set()
        try:
            elements = [element for data, time in pairs for element in self._make_elements(data, time, stamps)]
            has_own = any(isinstance(one, Element) and one.time not in stamps for one in elements)
            for first in range(0, len(elements), self._most):
                part = elements[first : first + self._most]
                with self._changed:
                    self._wait_for_room(len(part), end)
                    self._stamps = self._stamps is not False and not has_own
                    self._store(part)
                self._wake()
        finally:
            with self._changed:
                self._stamped -= stamps
                self._mark()
        self._wake()

    def _mark(self) -> None:
        """Write into the spool what has settled; later elements are stamped with this instant at the earliest."""
        if self._spool is None or self._stamps is None:
            return
        settled = min(self._stamped, default=max(clock.time_ns() // 1000, self._last_time + 1))
        if self._stamps and not self._stamped:
            self._last_time = settled - 1
        # A mark that cannot be written holds nothing up for ever: elements are written to the same disk.
        with suppress(OSError):
            self._spool.mark_settled(settled if self._stamps else None)

    def _mark_until(self, stop: threading.Event) -> None:
        while not stop.wait(MARK_SECONDS):
            with self._changed:
                self._mark()

    def _wait_for_room(self, count: int, end: float | None) -> None:
        begin, is_told = clock.monotonic(), False
        while True:
            if self._is_closed:
                raise StateError("this stream was closed: make a new source with push() to send more")
            waiting = self._waiting()
            if waiting + count <= self._most or not waiting:
                return
            if self._spool is None:
                raise StateError(
                    f"{waiting:,} elements wait and no run reads this stream, so nothing more was sent: start the "
                    "engine with a query that reads it, or give push() a larger buffer"
                )
            now = clock.monotonic()
            if end is not None and now >= end:
                raise StateError(
                    f"{waiting:,} elements still wait to be evaluated, so nothing more was sent: send more slowly, "
                    "wait longer (timeout), or give push() a larger buffer"
                )
            if not is_told and now - begin > _PATIENCE_SECONDS:
                is_told = True
                _LOG.warning("send() waits: %s elements are not evaluated yet; does a query read them?", f"{waiting:,}")
            self._changed.wait(_PATIENCE_SECONDS if end is None else min(_PATIENCE_SECONDS, end - now))

    def _make_elements(self, data: Any, time: Time | None, stamps: set[int]) -> list[Element | BadElement]:
        """The elements of what was sent; what is no element is refused, an unreadable message is kept as bad.

        `stamps` gets the stamp of an element that is given no time.
        """
        given = _check_instant(time)
        if given is None and not isinstance(data, Element | Triple):
            given = self._arrival()
            stamps.add(given)
        if isinstance(data, bytes | str | Mapping):
            return list(self._decode(data, given))
        if isinstance(data, Element):
            data = data if given is None else Element(given, data.triples, data.graph)
        else:
            if isinstance(data, Triple):
                raise SettingError("send takes a list of triples, and this is a triple alone: send([triple])")
            data = (given, data)
        element = check_elements("what is sent", [data])[0]
        if not element.triples:
            raise SettingError("what is sent has no triples: an element has at least one")
        check_in_calendar(element.time, f"the time {element.time}")
        if not self._is_begun and isinstance(element.time, int) and is_in_seconds(element.time):
            _LOG.warning("%s", seconds_text("what is sent", element.time))
        self._is_begun = True
        return [element]

    def _decode(self, data: Message, arrived: int | None) -> Iterable[Element | BadElement]:
        if self._decoder is None:
            raise SettingError(
                "send takes triples or an Element; for texts and rows say what they are: push(format=…, template=…)"
            )
        if isinstance(data, Mapping):
            data = json.dumps(data, default=str)
        payload = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data
        assert arrived is not None
        with self._changed:
            self._sent += 1
            position = (arrived, self._sent)
        return self._decoder.decode(ReceivedMessage(payload, arrived, self.address, position, {}))

    def _arrival(self) -> int:
        """The time now, in whole microseconds that only grow."""
        with self._changed:
            self._last_time = max(clock.time_ns() // 1000, self._last_time + 1)
            self._stamped.add(self._last_time)
            return self._last_time

    def _store(self, elements: Sequence[Element | BadElement]) -> None:
        if self._spool is None:
            self._unspooled.extend(elements)
            return
        try:
            name, end = self._spool.append(elements)
        except OSError as error:
            reason = error.strerror or error
            raise SourceError(
                f"what was sent cannot be written to {self._spool.folder}: {reason}; make room, and send it again"
            ) from error
        self._unread.append((name, end, elements))

    @contextmanager
    def open_spool(self, folder: Path, signals: RunSignals, *, is_durable: bool) -> Iterator[SpoolSource]:
        with self._changed:
            if self._spool is not None:
                raise StateError("another run reads this push source: give each engine its own")
            self._spool = Spool(folder.absolute(), is_durable=is_durable)
            self._wake, self._has_ended = signals.wake, False
            self._last_time = max(self._last_time, (read_mark(folder) or 0) - 1)
            waiting, self._unspooled = self._unspooled, []
            if waiting:
                self._store(waiting)
            if self._is_closed:
                self._spool.end_stream()
        stop = threading.Event()
        marking = threading.Thread(target=self._mark_until, args=(stop,), name="headwater-push", daemon=True)
        marking.start()
        try:
            yield SpoolSource(str(folder.absolute()))
        finally:
            stop.set()
            marking.join()
            with self._changed:
                self._spool.close()
                self._spool, self._wake = None, lambda: None
                # With a checkpoint the spool stays; without one they wait in memory for the next run.
                if not is_durable:
                    self._unspooled = [one for _, _, elements in self._unread for one in elements]
                self._unread.clear()
                self._changed.notify_all()

    def note_read(self, offset: StreamOffset) -> None:
        """The stream was evaluated up to here; who waits in `send` may go on."""
        read = {item.name: item.end for item in offset.items}
        with self._changed:
            while self._unread and read.get(self._unread[0][0], -1) >= self._unread[0][1]:
                self._unread.popleft()
            self._has_ended = offset.has_ended
            self._changed.notify_all()

    @property
    def is_finished(self) -> bool:
        """Whether the source is closed and all that was sent, its end included, was evaluated."""
        with self._changed:
            return self._is_closed and self._has_ended and not self._waiting()

    def wait_until_read(self, is_over: Callable[[], bool]) -> None:
        """Wait until all that was sent was evaluated, and the end of the stream where it was closed."""
        with self._changed:
            while self._spool is not None and not is_over():
                if not self._waiting() and self._has_ended >= self._is_closed:
                    return
                self._changed.wait(0.1)


def _check_instant(time: Time | None) -> int | None:
    if time is None:
        return None
    return datetime_to_time(time) if isinstance(time, datetime) else check_time("time", time)


def push(
    *,
    format: str | None = None,
    template: RowTemplate | str | Path | None = None,
    time: str | None = None,
    buffer: int = _BUFFER,
) -> PushSource:
    """A stream that this program sends, with `send` and `close`, while a run is at work.

    `send` takes triples or `Element`s; with a `format` or a `template`, messages of that form (see
    `headwater.sources.payloads`), for instance JSON rows. At most `buffer` elements wait to be evaluated: then `send`
    waits. With a checkpoint, what was sent during a run is on disk.
    """
    is_decoded = format is not None or template is not None or time is not None
    decoder = Decoder.of(format, template=template, time=time) if is_decoded else None
    return PushSource(decoder, check_whole("buffer", buffer, 1))
