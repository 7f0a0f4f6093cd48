"""Receivers: they write what comes over a network connection into a spool, in the driver, during a run.

A receiver connects, and connects again with growing waits when the connection breaks. Each message gets its time of
arrival, in whole microseconds that only grow, unless the data give another. As long as they give none, the receiver
marks in the spool up to when everything that arrived is there, several times a second (`Spool.mark_settled`). A message
is safe when it is in the spool. What is sent while no receiver is connected is lost unless the sender keeps it (MQTT
brokers do, `sources.mqtt`).
"""

from __future__ import annotations

import logging
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

from headwater.sources.offsets import StreamOffset
from headwater.sources.outages import BackOff
from headwater.sources.payloads import Decoder, ReceivedMessage
from headwater.sources.records import RecordSource
from headwater.sources.source import Source, SourceError
from headwater.sources.spool import FILE_BYTES, FILE_SECONDS, KEEP_SECONDS, Spool, SpoolSource, read_mark
from headwater.terms.arguments import check_duration, check_number, check_path
from headwater.terms.model import BadElement, Element
from headwater.terms.names import iri_to_name
from headwater.terms.scratch_folders import ScratchFolder

INSTALL_CONNECTORS = "Type in the source tree: pip install '.[connectors]'"
_STOP_SECONDS = 10.0
MARK_SECONDS = 0.2
_LOG = logging.getLogger("headwater.connectors")


@dataclass(frozen=True, slots=True)
class Timeouts:
    """How long, in microseconds, a receiver tries to connect, and is connected and gets nothing; None: for ever."""

    connect: int | None = None
    read: int | None = None

    @classmethod
    def of(cls, connect: int | str | None, read: int | str | None) -> Timeouts:
        """The time-outs as they were given."""
        return cls(
            None if connect is None else check_duration("connect_timeout", connect),
            None if read is None else check_duration("read_timeout", read),
        )

    def reason(self, seconds: float, connected: bool, last_error: str | None) -> str | None:
        """Why the run ends, after so many seconds without a change; None where it goes on."""
        limit = self.read if connected else self.connect
        if limit is None or seconds * 1_000_000 < limit:
            return None
        waited = f"{limit / 1_000_000:g} s"
        if connected:
            return f"nothing has arrived for {waited}: see to the sender, or allow more with read_timeout"
        cause = f" ({last_error})" if last_error else ""
        return (
            f"no connection for {waited}{cause}: check the address, and that the server runs, "
            "or allow more with connect_timeout"
        )


class Receiver(ABC):
    """Receives in a thread of its own, from `start` to `stop`."""

    def __init__(self, address: str, decoder: Decoder, spool: Spool) -> None:
        self.address = address
        self.timeouts = Timeouts()
        self._connected = False
        self._changed_at = time.monotonic()
        """When the connection was made or lost, or something arrived."""
        self._last_error: str | None = None
        self.failure: BaseException | None = None
        self.on_failure: Callable[[], None] | None = None
        self.on_arrival: Callable[[], None] = lambda: None
        self.stopping = threading.Event()
        self._decoder = decoder
        self._spool = spool
        marked = read_mark(spool.folder)
        self._last_time = 0 if marked is None else marked - 1
        # Whether messages say their own times may only be seen in them: then the first one tells.
        keeps = decoder.keeps_message_times
        self._stamps = marked is not None if keeps is None else keeps
        self._has_stored = False
        self._storing = threading.Lock()
        self._watching = threading.Thread(
            target=self._watch_until_stopped, name=f"headwater-watch {address}", daemon=True
        )
        self._thread = threading.Thread(
            target=self._receive_until_stopped, name=f"headwater-receiver {address}", daemon=True
        )

    def start(self) -> None:
        self._changed_at = time.monotonic()
        self._thread.start()
        self._watching.start()

    def stop(self) -> None:
        """End the connection; what has arrived is in the spool then."""
        self.stopping.set()
        if self._thread.ident is not None:
            self._thread.join(_STOP_SECONDS)
            self._watching.join(_STOP_SECONDS)
        self._spool.close()

    def _watch_until_stopped(self) -> None:
        """Mark what has settled, again and again, and end the run when the connection keeps it waiting for too long."""
        while not self.stopping.is_set():
            with self._storing, suppress(OSError):
                # A mark that cannot be written holds nothing up for ever: messages are written to the same disk.
                self._mark()
            reason = self.timeouts.reason(time.monotonic() - self._changed_at, self._connected, self._last_error)
            if reason is not None and self.failure is None:
                self.failure = SourceError(f"{self.address}: {reason}")
                if self.on_failure is not None:
                    self.on_failure()
            self.stopping.wait(MARK_SECONDS)

    def _mark(self) -> None:
        """Write the mark; later messages are stamped with this instant at the earliest."""
        if not self._stamps:
            self._spool.mark_settled(None)
            return
        settled = max(time.time_ns() // 1000, self._last_time + 1)
        self._last_time = settled - 1
        self._spool.mark_settled(settled)

    def _receive_until_stopped(self) -> None:
        """Receive and connect again after each loss; any other error is kept as `failure`."""
        waits = BackOff(float("inf"))
        try:
            while not self.stopping.is_set():
                try:
                    self.receive()
                    reason = "the connection was closed"
                except OSError as error:
                    reason = str(error) or type(error).__name__
                if self.stopping.is_set():
                    return
                self.note_trouble(reason)
                waits.wait(self.stopping)
        except BaseException as error:
            self.failure = error
            if self.on_failure is not None:
                self.on_failure()

    @abstractmethod
    def receive(self) -> None:
        """Connect and receive until the connection ends or `stopping` is set; an `OSError` where that fails."""

    def note_connection(self) -> None:
        """To be called when a connection is established."""
        self._last_error = None
        self._connected, self._changed_at = True, time.monotonic()

    def note_trouble(self, reason: str) -> None:
        """To be called when a connection broke or failed; a warning is logged once for each reason."""
        if self._connected:
            self._connected, self._changed_at = False, time.monotonic()
        if reason != self._last_error:
            _LOG.warning("%s: %s; connecting again", self.address, reason)
        self._last_error = reason

    def store(self, payloads: Sequence[tuple[bytes, Mapping[str, str]]]) -> None:
        """Put messages, each with its cells for templates, into the spool; they are on disk when this returns."""
        if payloads:
            self._changed_at = time.monotonic()
        with self._storing:
            self._store(payloads)

    def _store(self, payloads: Sequence[tuple[bytes, Mapping[str, str]]]) -> None:
        elements: list[Element | BadElement] = []
        for payload, cells in payloads:
            self._last_time = max(time.time_ns() // 1000, self._last_time + 1)
            message = ReceivedMessage(payload, self._last_time, self.address, (self._last_time,), cells)
            decoded = self._decoder.decode(message)
            elements.extend(decoded)
            self._note_stamps(message, decoded)
        try:
            self._spool.append(elements)
            if elements:
                self._mark()
        except OSError as error:
            # Not a matter of the connection: what was received cannot be kept.
            reason = error.strerror or error
            raise SourceError(
                f"{self.address}: what was received cannot be written to {self._spool.folder}: {reason}; "
                "make room, or see to the right to write, and start again"
            ) from error
        self.on_arrival()

    def _note_stamps(self, message: ReceivedMessage, decoded: Sequence[Element | BadElement]) -> None:
        """Where messages may say their own times: stamp by arrival from the first that says none to one that does."""
        times = [one.time for one in decoded if isinstance(one, Element)]
        if self._decoder.keeps_message_times is None and times:
            has_own = any(time != message.time for time in times)
            self._stamps = not has_own and (self._stamps or not self._has_stored)
            self._has_stored = True


MakeReceiver = Callable[[Decoder, Spool], Receiver]


@dataclass(frozen=True)
class RunSignals:
    """How a receiver reaches the run that it receives for: `stop` ends it, `wake` says that something has arrived."""

    stop: Callable[[], None]
    wake: Callable[[], None] = lambda: None


class ReceivedSource(ABC):
    """A stream that comes in while a run is at work, and is read from its spool."""

    address: str

    @abstractmethod
    def open_spool(self, folder: Path, signals: RunSignals, *, is_durable: bool) -> AbstractContextManager[SpoolSource]:
        """Receives into a spool, by default in `folder`, as long as the context is open; the spool as a source.

        With `is_durable`, the folder is there after the run, and what was received has to be, too.
        """

    def note_read(self, offset: StreamOffset) -> None:
        """The stream was evaluated up to here."""
        return


@dataclass(frozen=True)
class NetworkSource(ReceivedSource):
    """A stream that is received over a network connection; `mqtt`, `tcp` and `websocket` make one.

    `spool` is the folder for what was received: one in the checkpoint, or a temporary one, unless it is given.
    """

    address: str
    decoder: Decoder
    make_receiver: MakeReceiver
    spool: Path | None = None
    keep_seconds: float = KEEP_SECONDS
    file_bytes: int = FILE_BYTES
    file_seconds: float = FILE_SECONDS
    timeouts: Timeouts = Timeouts()

    @contextmanager
    def open_spool(self, folder: Path, signals: RunSignals, *, is_durable: bool) -> Iterator[SpoolSource]:
        chosen = (self.spool or folder).absolute()
        is_kept = is_durable or self.spool is not None
        spool = Spool(chosen, file_bytes=self.file_bytes, file_seconds=self.file_seconds, is_durable=is_kept)
        receiver = self.make_receiver(self.decoder, spool)
        receiver.on_failure, receiver.timeouts = signals.stop, self.timeouts
        receiver.on_arrival = signals.wake
        receiver.start()
        try:
            yield SpoolSource(str(chosen), self.keep_seconds)
        finally:
            receiver.stop()
        if isinstance(receiver.failure, SourceError):
            raise receiver.failure
        if receiver.failure is not None:
            raise SourceError(f"{self.address}: the receiver ended: {receiver.failure!r}") from receiver.failure


def make_received_source(
    address: str, decoder: Decoder, make: MakeReceiver, spool: str | Path | None, keep: float, timeouts: Timeouts
) -> NetworkSource:
    """A received source, its spool and how many seconds that is kept checked."""
    folder = None if spool is None else check_path("spool", spool)
    return NetworkSource(address, decoder, make, folder, check_number("keep", keep), timeouts=timeouts)


def spool_folder(checkpoint: Path, stream: str) -> Path:
    """Where what was received of a stream is kept with a checkpoint, unless its source says another place."""
    return checkpoint / "spool" / blake2b(stream.encode(), digest_size=8).hexdigest()


@contextmanager
def run_receivers(
    sources: Mapping[str, Source | ReceivedSource], checkpoint: Path | None, signals: RunSignals
) -> Iterator[dict[str, Source]]:
    """Runs the receivers of the sources that have one; gives all sources, those with a receiver as their spools."""
    with ExitStack() as stack:
        readable: dict[str, Source] = {}
        for stream, source in sources.items():
            if isinstance(source, ReceivedSource):
                if checkpoint is None:
                    base = stack.enter_context(ScratchFolder("spool"))
                else:
                    base = spool_folder(checkpoint, stream)
                spool = source.open_spool(base, signals, is_durable=checkpoint is not None)
                readable[stream] = stack.enter_context(spool)
            else:
                readable[stream] = source
        yield readable


def check_readable_in_process(sources: Mapping[str, Source]) -> None:
    """Raise `SourceError` for a source that only Spark can read."""
    for stream, source in sources.items():
        if isinstance(source, RecordSource):
            name = iri_to_name(stream)
            raise SourceError(
                f"the stream {name} is read by Spark: leave out in_process=True (--in-process), or use files"
            )


def check_readable_as_frames(sources: Mapping[str, Source | ReceivedSource]) -> dict[str, Source]:
    """The same sources; a `SourceError` for one that needs a receiver, which only `Engine.run` starts."""
    readable: dict[str, Source] = {}
    for stream, source in sources.items():
        if isinstance(source, ReceivedSource):
            raise SourceError(
                f"the stream {stream} is received by a run: take engine.run(…, sinks=…) instead of a DataFrame, "
                "or read the spool of a run with files(…)"
            )
        readable[stream] = source
    return readable
