"""Receivers: they write what comes over a network connection into a spool, in the driver, during a run.

A receiver connects, and connects again with growing waits when the connection breaks. Each message gets its time of
arrival, in whole microseconds that only grow, unless the data give another. A message is safe when it is in the spool.
What is sent while no receiver is connected is lost unless the sender keeps it (MQTT brokers do, `sources.mqtt`).
"""

from __future__ import annotations

import logging
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

from headwater.sources.outages import BackOff
from headwater.sources.payloads import Decoder, ReceivedMessage
from headwater.sources.records import RecordSource
from headwater.sources.source import Source, SourceError
from headwater.sources.spool import FILE_BYTES, FILE_SECONDS, KEEP_SECONDS, Spool, SpoolSource
from headwater.terms.arguments import check_number, check_path
from headwater.terms.scratch_folders import ScratchFolder

INSTALL_CONNECTORS = "Type in the source tree: pip install '.[connectors]'"
_STOP_SECONDS = 10.0
_LOG = logging.getLogger("headwater.connectors")


class Receiver(ABC):
    """Receives in a thread of its own, from `start` to `stop`."""

    def __init__(self, address: str, decoder: Decoder, spool: Spool) -> None:
        self.address = address
        self._last_error: str | None = None
        self.failure: BaseException | None = None
        self.on_failure: Callable[[], None] | None = None
        self.on_arrival: Callable[[], None] = lambda: None
        self.stopping = threading.Event()
        self._decoder = decoder
        self._spool = spool
        self._last_time = 0
        self._thread = threading.Thread(
            target=self._receive_until_stopped, name=f"headwater-receiver {address}", daemon=True
        )

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """End the connection; what has arrived is in the spool then."""
        self.stopping.set()
        if self._thread.ident is not None:
            self._thread.join(_STOP_SECONDS)
        self._spool.close()

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

    def note_trouble(self, reason: str) -> None:
        """To be called when a connection broke or failed; a warning is logged once for each reason."""
        if reason != self._last_error:
            _LOG.warning("%s: %s; connecting again", self.address, reason)
        self._last_error = reason

    def store(self, payloads: Sequence[tuple[bytes, Mapping[str, str]]]) -> None:
        """Put messages, each with its cells for templates, into the spool; they are on disk when this returns."""
        elements = []
        for payload, cells in payloads:
            self._last_time = max(time.time_ns() // 1000, self._last_time + 1)
            message = ReceivedMessage(payload, self._last_time, self.address, (self._last_time,), cells)
            elements.extend(self._decoder.decode(message))
        try:
            self._spool.append(elements)
        except OSError as error:
            # Not a matter of the connection: what was received cannot be kept.
            reason = error.strerror or error
            raise SourceError(
                f"{self.address}: what was received cannot be written to {self._spool.folder}: {reason}; "
                "make room, or see to the right to write, and start again"
            ) from error
        self.on_arrival()


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

    @contextmanager
    def open_spool(self, folder: Path, signals: RunSignals, *, is_durable: bool) -> Iterator[SpoolSource]:
        chosen = (self.spool or folder).absolute()
        is_kept = is_durable or self.spool is not None
        spool = Spool(chosen, file_bytes=self.file_bytes, file_seconds=self.file_seconds, is_durable=is_kept)
        receiver = self.make_receiver(self.decoder, spool)
        receiver.on_failure = signals.stop
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
    address: str, decoder: Decoder, make: MakeReceiver, spool: str | Path | None, keep: float
) -> NetworkSource:
    """A received source, its spool and how many seconds that is kept checked."""
    folder = None if spool is None else check_path("spool", spool)
    return NetworkSource(address, decoder, make, folder, check_number("keep", keep))


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
                    base = checkpoint / "spool" / blake2b(stream.encode(), digest_size=8).hexdigest()
                spool = source.open_spool(base, signals, is_durable=checkpoint is not None)
                readable[stream] = stack.enter_context(spool)
            else:
                readable[stream] = source
        yield readable


def check_readable_in_process(sources: Mapping[str, Source]) -> None:
    """Raise `SourceError` for a source that only Spark can read."""
    for stream, source in sources.items():
        if isinstance(source, RecordSource):
            raise SourceError(
                f"the stream {stream} is read by Spark: leave out in_process=True (--in-process), or use files"
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
