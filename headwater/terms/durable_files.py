"""Files that are whole or not there, what survives a power failure, and locks between processes.

A file is written under a temporary name beside its own, forced to disk as far as the caller wants, and renamed: whoever
opens it sees the content before or the content after, never a part. Temporary names begin with a dot, so that readers
of folders pass over them. The temporary file is removed when writing fails; if the process is killed, it stays until
the next attempt overwrites it.
"""

from __future__ import annotations

import fcntl
import os
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from enum import Enum
from pathlib import Path
from typing import BinaryIO

_LOCK_POLL_SECONDS = 0.002


class Sync(Enum):
    """What is forced to disk before a replaced file counts. All levels are safe when only the process dies."""

    NOTHING = "nothing"
    """After a power failure the file may be empty."""
    CONTENT = "content"
    """After a power failure the file has the content before or the content after."""
    CONTENT_AND_NAME = "content and name"
    """After a power failure the file has the content after."""


@contextmanager
def unfinished_file(path: Path, *, is_shared: bool = False) -> Iterator[Path]:
    """A temporary path that is renamed to `path` when the block ends, and removed when it raises.

    With `is_shared` several processes may write the same file at once: each attempt has a temporary name of its own.
    """
    middle = f".{uuid.uuid4().hex}" if is_shared else ""
    unfinished = path.with_name(f".{path.name}{middle}.part")
    try:
        yield unfinished
        os.replace(unfinished, path)
    except BaseException as error:
        with suppress(OSError):
            unfinished.unlink()
        if isinstance(error, OSError) and error.filename is None:
            # Failed writes, as on a full disk, do not say which file it was.
            error.filename = str(path)
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


def append_durably(descriptor: int, data: bytes) -> None:
    """Append bytes to an open file and force them to disk."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]
    os.fsync(descriptor)


def sync_folder(folder: Path) -> None:
    """Force the names in a folder to disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def place_folder(unfinished: Path, folder: Path) -> None:
    """Rename a complete folder to the name by which others know it; if another process was faster, its folder stays."""
    try:
        os.rename(unfinished, folder)
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
