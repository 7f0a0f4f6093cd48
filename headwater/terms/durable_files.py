"""Files that are whole or not there, what survives a power failure, and locks between processes.

A file is written under a temporary name beside its own, forced to disk and renamed: whoever opens it sees the content
before or the content after, never a part. Temporary names begin with a dot, so that readers of folders pass over them.
The temporary file is removed when writing fails; if the process is killed, it stays until the next attempt overwrites
it.

The order on disk is not the order of the calls. What must be there before something else is forced to disk before it:

    sync_tree(columns)            the content and the names of new files
    replace_file(manifest, …)     the content of the manifest, then its name
    remove_files(old columns)     what nobody reads any more

No other module forces anything to disk, renames or locks, so this is the one place where it can be done wrongly
(`tests/security/test_power_failures.py` replays each file operation with unsynced writes lost, torn and reordered).
"""

from __future__ import annotations

import fcntl
import os
import shutil
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from enum import Enum
from pathlib import Path
from typing import BinaryIO

_LOCK_POLL_SECONDS = 0.002


class Sync(Enum):
    """What is forced to disk before a replaced file counts. All levels are safe when only the process dies."""

    NOTHING = "nothing"
    """After a power failure the file may be empty: for what is made again, or belongs to this process alone."""
    CONTENT_AND_NAME = "content and name"
    """After a power failure the file has the content after."""


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """A context in which errors of the operating system name a file: calls that have a descriptor do not say which."""
    try:
        yield
    except OSError as error:
        error.filename = error.filename or str(path)
        raise


@contextmanager
def unfinished_file(path: Path, *, is_shared: bool = False) -> Iterator[Path]:
    """A temporary path that is renamed to `path` when the block ends, and removed when it raises.

    With `is_shared` several processes may write the same file at once: each attempt has a temporary name of its own.
    """
    middle = f".{uuid.uuid4().hex}" if is_shared else ""
    unfinished = path.with_name(f".{path.name}{middle}.part")
    try:
        with _naming(path):
            yield unfinished
            os.replace(unfinished, path)
    except BaseException:
        with suppress(OSError):
            unfinished.unlink()
        raise


@contextmanager
def replacing_file(path: Path, *, sync: Sync = Sync.CONTENT_AND_NAME, is_shared: bool = False) -> Iterator[BinaryIO]:
    """A stream whose bytes become the content of `path` when the block ends; `path` stays as it is when it raises."""
    with unfinished_file(path, is_shared=is_shared) as unfinished, open(unfinished, "wb") as stream:
        yield stream
        stream.flush()
        if sync is not Sync.NOTHING:
            os.fsync(stream.fileno())
    if sync is Sync.CONTENT_AND_NAME:
        sync_folder(path.parent)


def replace_file(path: Path, data: bytes, *, sync: Sync = Sync.CONTENT_AND_NAME, is_shared: bool = False) -> None:
    """Give a file a new content, all of it or none."""
    with replacing_file(path, sync=sync, is_shared=is_shared) as stream:
        stream.write(data)


def append_durably(descriptor: int, data: bytes, path: Path, *, is_forced: bool = True) -> None:
    """Append bytes to an open file and force them to disk, unless that is not needed; errors name the `path`."""
    with _naming(path):
        _write_all(descriptor, data)
        if is_forced:
            os.fsync(descriptor)


def _write_all(descriptor: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def write_unfinished(path: Path, data: bytes) -> None:
    """Write a new file and force its content to disk; `place_files` gives it its name later."""
    with _naming(path), open(path, "xb") as stream:
        stream.write(data)
        stream.flush()
        os.fsync(stream.fileno())


def place_files(places: Mapping[Path, Path]) -> None:
    """Rename files that are complete and on disk to the names by which others know them."""
    for unfinished, path in places.items():
        with _naming(unfinished):
            os.replace(unfinished, path)
    for folder in dict.fromkeys(path.parent for path in places.values()):
        sync_folder(folder)


def write_at_end(path: Path, data: bytes, end: int, *, sync: Sync = Sync.CONTENT_AND_NAME) -> None:
    """Write bytes behind the first `end` bytes of a log, in place of what a writer left there that did not finish.

    The log is as it was before where not all can be written. Where it was, and cannot be forced to disk, it stays:
    others may have read it, and nobody knows whether it survives.
    """
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT, 0o666)
    with _naming(path), _closing(descriptor):
        if os.fstat(descriptor).st_size != end:
            # Forced to disk first: old and new bytes must not mix.
            os.ftruncate(descriptor, end)
            if sync is not Sync.NOTHING:
                os.fsync(descriptor)
        os.lseek(descriptor, end, os.SEEK_SET)
        try:
            _write_all(descriptor, data)
        except BaseException:
            with suppress(OSError):
                os.ftruncate(descriptor, end)
            raise
        if sync is not Sync.NOTHING:
            os.fsync(descriptor)
            if not end:
                sync_folder(path.parent)


@contextmanager
def _closing(descriptor: int) -> Iterator[None]:
    try:
        yield
    finally:
        os.close(descriptor)


def is_written_line(line: bytes) -> bool:
    """Whether a line of a log was written to its end.

    It has its line feed then, and no zero byte: those stand where a power failure has left a hole, and JSON has none.
    """
    return line.endswith(b"\n") and b"\0" not in line


def sync_folder(folder: Path) -> None:
    """Force the names in a folder to disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    with _naming(folder), _closing(descriptor):
        os.fsync(descriptor)


def sync_tree(folder: Path) -> None:
    """Force a new folder to disk: its files, their names, and its own name."""
    for parent, _, names in os.walk(folder):
        for name in names:
            sync_folder(Path(parent) / name)
        sync_folder(Path(parent))
    sync_folder(folder.parent)


def create_folder(folder: Path, *, mode: int = 0o777) -> None:
    """Make a folder, and those above it that are missing, with names that survive; nothing happens where it is there.

    `mode` has its permissions; those above it get the usual ones.
    """
    if folder.is_dir():
        return
    create_folder(folder.parent)
    try:
        os.mkdir(folder, mode)
    except FileExistsError:
        # Another process was faster, or it is no folder.
        if not folder.is_dir():
            raise
    sync_folder(folder.parent)


def remove_files(*paths: Path) -> None:
    """Remove files, and folders with what is in them, so that they stay removed; those that are missing are passed."""
    for path in paths:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
    for parent in dict.fromkeys(path.parent for path in paths):
        if parent.is_dir():
            sync_folder(parent)


def place_folder(unfinished: Path, folder: Path) -> None:
    """Rename a complete folder to the name by which others know it; if another process was faster, its folder stays.

    What is in it must have been forced to disk (`sync_tree`) where it is to survive a power failure.
    """
    try:
        os.rename(unfinished, folder)
        sync_folder(folder.parent)
    except OSError:
        if not folder.is_dir():
            raise


def lock_file(path: Path, patience: float = 0.0) -> int:
    """Take the exclusive lock on a file, and give the descriptor that holds it until it is closed or the process ends.

    Waits up to `patience` seconds, then raises `BlockingIOError`: another process, or another descriptor, has the lock.
    """
    end = time.monotonic() + patience
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return descriptor
        except OSError as error:
            if time.monotonic() >= end:
                os.close(descriptor)
                raise BlockingIOError(error.errno, error.strerror, str(path)) from None
        time.sleep(_LOCK_POLL_SECONDS)
