"""Receivers: what comes over a network connection goes into a spool, in the driver, while a run is at work.

A receiver connects, and connects again with growing waits when the connection breaks; it counts what it got and what it
could not read. Each message gets its time of arrival, in whole microseconds that only grow, unless the data say another
time. A message is safe when it is in the spool; what a sender sent while nobody was connected is the sender's to keep
(MQTT brokers do, `headwater.sources.mqtt`).
"""

from __future__ import annotations

import logging
import tempfile
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

from headwater.sources.outages import BackOff
from headwater.sources.payloads import Decoder, Message
from headwater.sources.records import RecordSource
from headwater.sources.source import Source, SourceError
from headwater.sources.spool import FILE_BYTES, FILE_SECONDS, KEEP_SECONDS, Spool, SpoolSource

_STOP_SECONDS = 10.0
_LOG = logging.getLogger("headwater.connectors")


@dataclass
class Counts:
    """What a receiver did so far."""

    messages: int = 0
    bad: int = 0
    connections: int = 0
    last_error: str | None = None


class Receiver(ABC):
    """Receives in a thread of its own, from `start` to `stop`."""

    def __init__(self, address: str, decoder: Decoder, spool: Spool) -> None:
        self.address = address
        self.counts = Counts()
        self.failure: BaseException | None = None
        self.on_failure: Callable[[], None] | None = None
        self.stopping = threading.Event()
        self._decoder = decoder
        self._spool = spool
        self._last_time = 0
        self._thread = threading.Thread(target=self._run, name=f"headwater-receiver {address}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """End the connection; what has arrived is in the spool then."""
        self.stopping.set()
        if self._thread.ident is not None:
            self._thread.join(_STOP_SECONDS)
        self._spool.close()

    def _run(self) -> None:
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
                self.trouble(reason)
                waits.wait(self.stopping)
        except BaseException as error:
            self.failure = error
            if self.on_failure is not None:
                self.on_failure()

    @abstractmethod
    def receive(self) -> None:
        """Connect and receive until the connection ends or `stopping` is set; an `OSError` where that fails."""

    def connected(self) -> None:
        """To be called when a connection stands."""
        self.counts.connections += 1
        self.counts.last_error = None

    def trouble(self, reason: str) -> None:
        """To be called when a connection broke, or none could be had; said once for each reason."""
        if reason != self.counts.last_error:
            _LOG.warning("%s: %s; connecting again", self.address, reason)
        self.counts.last_error = reason

    def keep(self, payloads: Sequence[tuple[bytes, Mapping[str, str]]]) -> None:
        """Put messages, each with its cells for templates, into the spool; they are on disk when this returns."""
        found = []
        for payload, cells in payloads:
            self._last_time = max(time.time_ns() // 1000, self._last_time + 1)
            message = Message(payload, self._last_time, self.address, (self._last_time,), cells)
            found.extend(self._decoder.decode(message))
        try:
            self.counts.bad += self._spool.append(found)
        except OSError as error:
            # Not a matter of the connection: what was received cannot be kept.
            reason = error.strerror or error
            raise SourceError(
                f"{self.address}: what was received cannot be written to {self._spool.folder}: {reason}; "
                "make room, or see to the right to write, and start again"
            ) from error
        self.counts.messages += len(payloads)


MakeReceiver = Callable[[Decoder, Spool], Receiver]


@dataclass(frozen=True)
class ReceivedSource:
    """A stream that is received while a run is at work; `mqtt`, `tcp` and `websocket` make one.

    `spool` is the folder that it is kept in: one in the checkpoint, or a temporary one, unless it is said.
    """

    address: str
    decoder: Decoder
    make: MakeReceiver
    spool: Path | None = None
    keep: float = KEEP_SECONDS
    file_bytes: int = FILE_BYTES
    file_seconds: float = FILE_SECONDS

    @contextmanager
    def opened(self, folder: Path, stop: Callable[[], None]) -> Iterator[SpoolSource]:
        """The spool as a source, while the receiver is at work; `stop` ends the run when the receiver cannot go on."""
        chosen = (self.spool or folder).absolute()
        spool = Spool(chosen, file_bytes=self.file_bytes, file_seconds=self.file_seconds)
        receiver = self.make(self.decoder, spool)
        receiver.on_failure = stop
        receiver.start()
        try:
            yield SpoolSource(str(chosen), self.keep)
        finally:
            receiver.stop()
        if isinstance(receiver.failure, SourceError):
            raise receiver.failure
        if receiver.failure is not None:
            raise SourceError(f"{self.address}: the receiver ended: {receiver.failure!r}") from receiver.failure


@contextmanager
def opened(
    sources: Mapping[str, Source | ReceivedSource], checkpoint: Path | None, stop: Callable[[], None]
) -> Iterator[dict[str, Source]]:
    """The sources of a run, those that are received through their spools, while their receivers are at work."""
    with ExitStack() as stack:
        found: dict[str, Source] = {}
        for stream, source in sources.items():
            if isinstance(source, ReceivedSource):
                if checkpoint is None:
                    base = stack.enter_context(tempfile.TemporaryDirectory(prefix="headwater-spool-"))
                else:
                    base = str(checkpoint / "spool" / blake2b(stream.encode(), digest_size=8).hexdigest())
                found[stream] = stack.enter_context(source.opened(Path(base), stop))
            else:
                found[stream] = source
        yield found


def readable_in_process(sources: Mapping[str, Source]) -> None:
    """A `SourceError` for sources that only Spark reads."""
    for stream, source in sources.items():
        if isinstance(source, RecordSource):
            raise SourceError(
                f"the stream {stream} is read by Spark: leave out in_process=True (--in-process), or use files"
            )


def readable_as_frames(sources: Mapping[str, Source | ReceivedSource]) -> dict[str, Source]:
    """The same sources; a `SourceError` for those that are received while a run is at work, which nobody runs here."""
    found: dict[str, Source] = {}
    for stream, source in sources.items():
        if isinstance(source, ReceivedSource):
            raise SourceError(
                f"the stream {stream} is received by a run: take engine.run(…, sinks=…) instead of a DataFrame, "
                "or read the spool of a run with files(…)"
            )
        found[stream] = source
    return found
