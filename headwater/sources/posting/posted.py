"""A stream that comes in bodies, whole documents one after the other, each on disk when `post` returns.

    source = PostedSource(folder, decoder)
    with source:
        engine.stream("gates", source)
        receipt = source.post(body, key="4711")        good, late, ahead and bad elements

The spool is there whether a run reads the stream or not. A body of timed N-Quads is checked by the compiled scanner and
written as the bytes that it is; others become elements first. Before each body a line of its own, which readers take
for a comment, says how long it is and what was counted:

    #post LENGTH TIME HIGHEST GOOD LATE AHEAD BAD TRIPLES KEY CHECKSUM

So a body that is sent again under the same key is not taken twice, also after a restart. Where a writer was killed in
the midst of a body, only the rest of it is written when it comes again.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path

import numpy as np

from headwater.errors import HeadwaterError, StateError
from headwater.sources.offsets import StreamOffset
from headwater.sources.payloads import Decoder
from headwater.sources.posting.body_decoding import DecodedBody, decode_body
from headwater.sources.receivers import MARK_SECONDS, ReceivedSource, RunSignals
from headwater.sources.source import SourceError
from headwater.sources.spool import KEEP_SECONDS, Spool, SpoolSource, read_mark
from headwater.terms.durable_files import remove_files
from headwater.windows.time_jumps import NO_JUMP, Jump, find_jumps

_HEAD = b"#post "
_LONGEST_HEAD = 400
_NONE = "-"
_BULK_BYTES = 256 << 10
"""A body that is larger waits for the next trigger of the run: several of them are one batch, which is saved once."""
MOST_UNREAD = 256 << 20
"""So many bytes may wait to be evaluated; without a reader, so many are kept."""


class StreamBusy(HeadwaterError, RuntimeError):
    """More waits to be evaluated than may: send it again later."""


class KeyReused(HeadwaterError, ValueError):
    """A key that came before, with another body."""


@dataclass(frozen=True, slots=True)
class PostReceipt:
    """What was counted of a body: elements that are good, late, ahead or bad, and triples of those that are not bad.

    Late and ahead are judged by the elements that came before; what a query does with them is the same, unless a clock
    closed its windows earlier. `is_repeated` says that the body came before.
    """

    good: int = 0
    late: int = 0
    ahead: int = 0
    bad: int = 0
    triples: int = 0
    is_repeated: bool = False


@dataclass(frozen=True, slots=True)
class _Post:
    """One line before a body."""

    length: int
    time: int
    highest: int | None
    receipt: PostReceipt
    key: str
    checksum: str

    def to_line(self) -> bytes:
        r = self.receipt
        highest = _NONE if self.highest is None else str(self.highest)
        counts = f"{r.good} {r.late} {r.ahead} {r.bad} {r.triples}"
        return _HEAD + f"{self.length} {self.time} {highest} {counts} {self.key} {self.checksum}\n".encode()

    @classmethod
    def parse(cls, line: bytes) -> _Post | None:
        parts = line.decode("ascii", "replace").split()
        if len(parts) != 11 or not line.startswith(_HEAD) or not line.endswith(b"\n"):
            return None
        length, moment, highest, *counts = parts[1:9]
        with suppress(ValueError):
            good, late, ahead, bad, triples = map(int, counts)
            receipt = PostReceipt(good, late, ahead, bad, triples)
            mark = None if highest == _NONE else int(highest)
            return cls(int(length), int(moment), mark, receipt, parts[9], parts[10])
        return None


def _digest(data: bytes) -> str:
    return blake2b(data, digest_size=16).hexdigest()


class PostedSource(ReceivedSource):
    """A stream whose elements come in bodies. All methods may be called from any thread.

    `delay` and `max_ahead` are those of the engine, in microseconds: by them late elements are counted.
    """

    def __init__(
        self,
        folder: Path,
        decoder: Decoder | None = None,
        *,
        delay: int = 0,
        max_ahead: int | None = None,
        keep_seconds: float = KEEP_SECONDS,
        most_unread: int = MOST_UNREAD,
    ) -> None:
        self.address = "push"
        self.folder = folder
        self._decoder = decoder
        self._delay, self._max_ahead = delay, max_ahead
        self._keep_seconds, self._most_unread = keep_seconds, most_unread
        self._storing = threading.Lock()
        self._closing = threading.Event()
        self._marking = threading.Thread(target=self._mark_until_closed, name="headwater-posts", daemon=True)
        self._spool: Spool | None = None
        self._wake: Callable[[], None] = lambda: None
        self._readers = 0
        self._read: dict[str, int] = {}
        self._last_time = 0
        self._highest: int | None = None
        self._jump: Jump = NO_JUMP
        self._stamps: bool | None = None
        self._posts: dict[str, _Post] = {}
        self._partial: dict[str, tuple[_Post, int]] = {}

    def __enter__(self) -> PostedSource:
        """Open the spool, and take up what is known of the bodies in it."""
        with self._storing:
            self._spool = Spool(self.folder)
            marked = read_mark(self.folder)
            self._last_time = 0 if marked is None else marked - 1
            files = self._files()
            self._stamps = True if marked is not None else (False if files else None)
            for path in files:
                self._take_up(path)
        self._marking.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        self._marking.join()
        with self._storing:
            if self._spool is not None:
                self._spool.close()
                self._spool = None

    def remove(self) -> None:
        """Close the source, and remove what was kept of the stream."""
        self.__exit__()
        remove_files(self.folder)

    def _files(self) -> list[Path]:
        return sorted(self.folder.glob("*.tnq"))

    def _take_up(self, path: Path) -> None:
        """Read the lines before the bodies of a file."""
        size, offset = path.stat().st_size, 0
        with open(path, "rb") as stream:
            while offset < size:
                stream.seek(offset)
                head = stream.readline(_LONGEST_HEAD)
                post = _Post.parse(head)
                if post is None:
                    return
                offset += len(head) + post.length
                if post.highest is not None:
                    self._highest = max(post.highest, self._highest or post.highest)
                self._remember(post, size - offset)

    def _remember(self, post: _Post, beyond: int) -> None:
        """Note what was counted of a body; `beyond` is below zero where it lacks so many bytes."""
        if post.key == _NONE:
            return
        known = self._partial.pop(post.key, None)
        # The rest of a body has the counts of all of it.
        done = 0 if known is None else known[1]
        if beyond < 0:
            self._partial[post.key] = post, done + post.length + beyond
        else:
            self._posts[post.key] = post

    def post(self, body: bytes, *, format: str = "tnq", key: str | None = None, at: int | None = None) -> PostReceipt:
        """Take a body; what it counts is on disk when this returns.

        `format` is one of `payloads.PayloadFormat`. `at` is the time of elements that do not say theirs; without it,
        they have that of their arrival. A `StreamBusy` where too much waits, a `KeyReused` where the key came before
        with another body; then nothing was taken.
        """
        name = _NONE if key is None else _digest(key.encode("utf-8", "surrogatepass"))
        checksum = _NONE if key is None else _digest(body)
        with self._storing:
            spool = self._spool
            if spool is None:
                raise StateError("this stream is closed")
            if (known := self._posts.get(name)) is not None:
                self._check_same(known, checksum)
                return replace(known.receipt, is_repeated=True)
            partial = self._partial.get(name)
            if partial is not None:
                self._check_same(partial[0], checksum)
            self._make_room(len(body))
            arrived = self._arrival() if partial is None else partial[0].time
            decoded = decode_body(body, format, self._decoder, arrived if at is None else at)
            receipt = self._count(decoded) if partial is None else partial[0].receipt
            done = 0 if partial is None else partial[1]
            post = _Post(len(decoded.lines) - done, arrived, self._highest, receipt, name, checksum)
            self._write(spool, post, decoded.lines[done:], done)
            self._posts[name] = post
            self._posts.pop(_NONE, None)
            self._partial.pop(name, None)
            keeps = decoded.keeps_time and at is None
            self._stamps = keeps and self._stamps is not False
            self._mark(spool)
        if len(body) < _BULK_BYTES:
            self._wake()
        return receipt

    def _check_same(self, post: _Post, checksum: str) -> None:
        if post.checksum != checksum:
            raise KeyReused("this Idempotency-Key came before with another body: use a new key for each body")

    def _write(self, spool: Spool, post: _Post, lines: bytes, done: int) -> None:
        try:
            spool.append_bytes(post.to_line() + lines)
        except OSError as error:
            name, begin = spool.current
            spool.abandon_file()
            with suppress(OSError):
                written = os.path.getsize(name) - begin - len(post.to_line())
                if written > 0 and post.key != _NONE:
                    self._partial[post.key] = post, done + written
            reason = error.strerror or error
            raise SourceError(f"the body cannot be written ({reason}): make room, and send it again") from error

    def _make_room(self, size: int) -> None:
        """Refuse a body where too much waits; where nobody reads, the oldest files go that are complete."""
        paths = self._files()
        sizes = {str(path): path.stat().st_size for path in paths}
        unread = sum(max(0, one - self._read.get(name, 0)) for name, one in sizes.items())
        if unread + size <= self._most_unread or not unread:
            return
        if self._readers:
            raise StreamBusy(
                f"{unread:,} bytes of this stream wait to be evaluated: send the body again later, or more slowly"
            )
        for path in paths[:-1]:
            remove_files(path)
            unread -= sizes[str(path)]
            if unread + size <= self._most_unread:
                return

    @property
    def unread_bytes(self) -> int:
        """How many bytes wait to be evaluated."""
        with suppress(OSError):
            return sum(max(0, path.stat().st_size - self._read.get(str(path), 0)) for path in self._files())
        return 0

    def _count(self, decoded: DecodedBody) -> PostReceipt:
        times, sizes = decoded.times, decoded.sizes
        if not len(times):
            return PostReceipt(bad=decoded.bad)
        is_ahead = np.zeros(len(times), dtype=np.bool_)
        if self._max_ahead is not None:
            is_ahead, self._jump = find_jumps(times, self._highest, self._max_ahead, self._jump)
        kept = times[~is_ahead]
        late = 0
        if len(kept):
            highest = np.maximum.accumulate(kept)
            before = highest if self._highest is None else np.maximum(highest, self._highest)
            late = int((kept < before - self._delay).sum())
            self._highest = int(before[-1])
        return PostReceipt(len(kept) - late, late, int(is_ahead.sum()), decoded.bad, int(sizes.sum()))

    def _arrival(self) -> int:
        self._last_time = max(time.time_ns() // 1000, self._last_time + 1)
        return self._last_time

    def _mark(self, spool: Spool) -> None:
        """Write what has settled: later elements are stamped with this instant at the earliest."""
        if self._stamps is None:
            return
        # A mark that cannot be written holds nothing up for ever: bodies are written to the same disk.
        with suppress(OSError):
            if self._stamps:
                self._last_time = max(time.time_ns() // 1000, self._last_time + 1) - 1
                spool.mark_settled(self._last_time + 1)
            else:
                spool.mark_settled(None)

    def _mark_until_closed(self) -> None:
        while not self._closing.wait(MARK_SECONDS):
            with self._storing:
                if self._spool is not None and self._stamps:
                    self._mark(self._spool)

    @contextmanager
    def open_spool(self, folder: Path, signals: RunSignals, *, is_durable: bool) -> Iterator[SpoolSource]:
        """Let a run read the spool; it is that of the source, in its own folder."""
        with self._storing:
            self._wake = signals.wake
            self._readers += 1
        try:
            yield SpoolSource(str(self.folder), self._keep_seconds)
        finally:
            with self._storing:
                self._readers -= 1
                if not self._readers:
                    self._wake = lambda: None

    def note_read(self, offset: StreamOffset) -> None:
        self._read = {item.name: item.end for item in offset.items}
