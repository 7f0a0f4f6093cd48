"""A disk and clocks with faults, for the file operations of one process on the files of one folder.

The calls by which Python changes files are counted, on the main thread, and each fault begins at a number, so the same
program meets the same fault at the same place. Reads are counted for themselves, by thread: a run reads ahead in a
thread of its own.

| fault        | what happens                                                                     |
|--------------|----------------------------------------------------------------------------------|
| kill-before  | SIGKILL, before the call                                                         |
| kill-after   | SIGKILL, after the call                                                          |
| torn         | half of the bytes of the next write arrive, then SIGKILL                         |
| full         | ENOSPC, for some calls; half of the bytes of a write arrive                      |
| broken       | EIO, for some calls                                                              |
| slow         | some calls take their time                                                       |
| clock        | the wall clock jumps, also back; clocks that never go back jump ahead            |
| interrupt    | SIGINT, as by Ctrl-C                                                             |
| unreadable   | EIO for some reads                                                               |
"""

from __future__ import annotations

import builtins
import errno
import io
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

KILLS = ("kill-before", "kill-after", "torn")
WRITE_FAULTS = (*KILLS, "full", "broken", "slow", "clock", "interrupt")
_REMOVING = ("unlink", "remove", "rmdir", "truncate", "ftruncate")
"""What works on a full disk, too."""
_LONGEST_PAUSE = 0.005
_READ_AHEAD = "headwater-read-ahead"
_real_open = builtins.open
_BY_PATH = ("mkdir", "rename", "replace", "unlink", "remove", "rmdir")
_BY_DESCRIPTOR = ("write", "fsync", "ftruncate")
_CLOCKS = ("time", "monotonic", "time_ns", "monotonic_ns")
_PATCHED: tuple[tuple[Any, tuple[str, ...]], ...] = (
    (os, (*_BY_PATH, *_BY_DESCRIPTOR, "open")),
    (builtins, ("open",)),
    (io, ("open",)),
    (time, _CLOCKS),
)


@dataclass(frozen=True)
class Fault:
    """What happens at which call, and for how many calls; `jump` is by how many seconds the clocks jump."""

    kind: str
    at: int
    lasts: int = 1
    jump: float = 0.0
    reads_ahead: bool = False
    """Whether the reads that fail are those of the thread that reads ahead."""

    def is_at(self, number: int) -> bool:
        return self.at <= number < self.at + self.lasts

    def is_write_to_tear(self, number: int, name: str) -> bool:
        """Whether a call is the first write from the fault on."""
        return self.kind == "torn" and name == "write" and number >= self.at


class FaultyDisk:
    """Counts the calls on files in `root`, and has the faults happen; `note` is told the kinds that did."""

    def __init__(
        self, root: Path, faults: Sequence[Fault], note: Callable[[str], None], *, counts_all_threads: bool = False
    ) -> None:
        self._root = f"{root}{os.sep}"
        self._faults = [one for one in faults if one.kind != "unreadable"]
        self._read_faults = [one for one in faults if one.kind == "unreadable"]
        self._note = note
        self._counts_all_threads = counts_all_threads
        self._calls = 0
        self._reads = {True: 0, False: 0}
        self._jumped = 0.0

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Put the faults between this process and its files for a while."""
        kept = [(owner, name, getattr(owner, name)) for owner, names in _PATCHED for name in names]
        self.install()
        try:
            yield
        finally:
            for owner, name, value in kept:
                setattr(owner, name, value)

    def install(self) -> None:
        """Put the faults between this process and its files, for the rest of its life."""
        for name in _BY_PATH:
            setattr(os, name, self._around(name, getattr(os, name), _path_of))
        for name in _BY_DESCRIPTOR:
            setattr(os, name, self._around(name, getattr(os, name), _path_of_descriptor))
        os.open = self._around("open", os.open, _path_if_written)
        builtins.open = io.open = self._open
        if any(one.kind == "clock" for one in self._faults):
            for name in _CLOCKS:
                setattr(time, name, self._shifted(name, getattr(time, name), 10**9 if name.endswith("_ns") else 1))

    def _shifted(self, name: str, clock: Callable[[], Any], scale: int) -> Callable[[], Any]:
        def now() -> Any:
            jumped = abs(self._jumped) if "monotonic" in name else self._jumped
            return clock() + type(clock())(jumped * scale)

        return now

    def _around(self, name: str, call: Callable[..., Any], find_path: Callable[..., str | None]) -> Callable[..., Any]:
        def faulty(*args: Any, **named: Any) -> Any:
            path = find_path(*args)
            if path is None or not path.startswith(self._root):
                return call(*args, **named)
            # The operating system names the file of calls that have its name.
            named_path = path if find_path is not _path_of_descriptor else None
            whole, half = (lambda: call(*args, **named)), (lambda: call(args[0], args[1][: len(args[1]) // 2]))
            return self.meet(name, whole, half, named_path)

        return faulty

    def meet(self, name: str, whole: Callable[[], Any], half: Callable[[], Any], path: str | None = None) -> Any:
        """Make a call; `half` writes half of the bytes, and errors name the `path`."""
        if self._counts_all_threads or threading.current_thread() is threading.main_thread():
            self._calls += 1
        if any(one.is_write_to_tear(self._calls, name) for one in self._faults):
            half()
            self._kill("torn")
        found = [one for one in self._faults if one.is_at(self._calls)]
        for fault in found:
            match fault.kind:
                case "kill-before":
                    self._kill(fault.kind)
                case "slow":
                    self._note(fault.kind)
                    time.sleep(_LONGEST_PAUSE)
                case "clock":
                    self._note(fault.kind)
                    self._jumped += fault.jump
                case "interrupt":
                    self._note(fault.kind)
                    os.kill(os.getpid(), signal.SIGINT)
                case "full" if name not in _REMOVING:
                    self._note(fault.kind)
                    if name == "write":
                        half()
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
                case "broken":
                    self._note(fault.kind)
                    raise OSError(errno.EIO, os.strerror(errno.EIO), path)
        result = whole()
        if any(fault.kind == "kill-after" for fault in found):
            self._kill("kill-after")
        return result

    def _kill(self, kind: str) -> None:
        self._note(kind)
        os.kill(os.getpid(), signal.SIGKILL)

    def _open(self, file: Any, mode: str = "r", buffering: int = -1, *args: Any, **named: Any) -> Any:
        path = _path_of(file)
        if path is None or not path.startswith(self._root) or "b" not in mode:
            return _real_open(file, mode, buffering, *args, **named)
        if mode == "rb":
            return io.BufferedReader(_ReadFile(path, self))
        raw = self.meet("open", lambda: _WrittenFile(path, mode.replace("b", ""), self), lambda: None)
        return raw if buffering == 0 else io.BufferedWriter(raw)

    def check_read(self) -> None:
        """Raise where a read has a fault."""
        is_ahead = threading.current_thread().name == _READ_AHEAD
        self._reads[is_ahead] += 1
        for fault in self._read_faults:
            if fault.reads_ahead == is_ahead and fault.is_at(self._reads[is_ahead]):
                self._note(fault.kind)
                raise OSError(errno.EIO, os.strerror(errno.EIO))


class _WrittenFile(io.FileIO):
    """A file whose writes meet the faults of the disk."""

    def __init__(self, path: str, mode: str, disk: FaultyDisk) -> None:
        super().__init__(path, mode)
        self._disk = disk

    def write(self, data: Any, /) -> int:
        view = memoryview(data).cast("B")
        whole, half = super().write, len(view) // 2
        written: int = self._disk.meet("write", lambda: whole(view), lambda: whole(view[:half]))
        return written


class _ReadFile(io.FileIO):
    """A file whose reads meet the faults of the disk."""

    def __init__(self, path: str, disk: FaultyDisk) -> None:
        super().__init__(path, "r")
        self._disk = disk

    def readinto(self, buffer: Any, /) -> int:
        self._disk.check_read()
        return super().readinto(buffer) or 0

    def readall(self) -> bytes:
        self._disk.check_read()
        return super().readall() or b""


def _path_of(path: Any, *_: Any) -> str | None:
    return None if isinstance(path, int) else os.path.abspath(os.fspath(path))


def _path_of_descriptor(descriptor: int, *_: Any) -> str | None:
    try:
        return os.readlink(f"/proc/self/fd/{descriptor}")
    except OSError:
        return None


def _path_if_written(path: Any, flags: int, *_: Any) -> str | None:
    return _path_of(path) if flags & (os.O_WRONLY | os.O_RDWR) else None
