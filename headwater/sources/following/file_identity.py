"""By what a followed file is recognised, whatever its name is now: its inode, how far it was read, and hashes of that.

A log is rotated in one of two ways, and in both the file under its name is another one afterwards:

    rename           cars.tnq → cars.tnq.1, a new cars.tnq begins         the inode has moved
    copy-truncate    cars.tnq is copied to cars.tnq.1 and cut to nothing  the content has moved, the inode has not

So neither name nor inode nor size says whether the bytes that were read are still before the place at which reading
goes on. Hashes of the first bytes and of those before that place do. A file that became shorter and begins as before
was cut; then hashes of some shorter beginnings are compared.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator
from enum import Enum
from hashlib import blake2b
from typing import IO

from headwater.sources.read_faults import report_read_faults

_HASHED_BYTES = 4096
"""So many bytes at the beginning, and before the place up to which a file was read, are hashed."""
_STEPS = (*range(64, 1024 + 1, 64), _HASHED_BYTES)
"""Of beginnings of these lengths there is a hash each, of six hexadecimal digits."""
_STEP_DIGITS = 6


class Recognition(Enum):
    """What a file is, compared with one that was read up to some byte."""

    SAME = "the same bytes up to there"
    CUT = "a beginning of them, and shorter"
    OTHER = "another file"


def identify(path: str, end: int, inode: int | None = None) -> str:
    """A text that identifies a file that was read up to a byte.

    Empty where it is missing, has become shorter or, with `inode`, is another file meanwhile.
    """
    try:
        with report_read_faults(path), open(path, "rb") as stream:
            status = os.fstat(stream.fileno())
            if status.st_size < end or inode not in (None, status.st_ino):
                return ""
            return f"{end}:{status.st_ino}:{_digest(stream, end)}:{''.join(_steps(stream, end))}"
    except OSError:
        return ""


def recognise(path: str, identity: str) -> Recognition:
    """What the file at a path is, compared with one that has an identity."""
    end, _, digest, steps = _parts_of(identity)
    try:
        with report_read_faults(path), open(path, "rb") as stream:
            size = os.fstat(stream.fileno()).st_size
            if size >= end:
                return Recognition.SAME if _digest(stream, end) == digest else Recognition.OTHER
            found = "".join(_steps(stream, size))
            return Recognition.CUT if found and steps.startswith(found) else Recognition.OTHER
    except OSError:
        return Recognition.OTHER


def find_file(path: str, identity: str) -> str | None:
    """Where a file is that used to be at a path: there, or beside it under another name; None where it is gone."""
    if not identity or recognise(path, identity) is Recognition.SAME:
        return path
    _, inode, _, _ = _parts_of(identity)
    beside = sorted(files_beside(path), key=lambda one: one.inode() != inode)
    return next((one.path for one in beside if recognise(one.path, identity) is Recognition.SAME), None)


def files_beside(path: str) -> list[os.DirEntry[str]]:
    """The files in the folder of a path."""
    try:
        with report_read_faults(path), os.scandir(os.path.dirname(path) or ".") as entries:
            return [entry for entry in entries if entry.is_file()]
    except OSError:
        return []


def inode_of(identity: str) -> int:
    return _parts_of(identity)[1]


def end_of(identity: str) -> int:
    """Up to where the file was read."""
    return _parts_of(identity)[0]


def beginning_of(identity: str) -> str:
    """The hash of the first bytes; empty where there were too few. What differs in it is another file."""
    return _parts_of(identity)[3][:_STEP_DIGITS]


def _parts_of(identity: str) -> tuple[int, int, str, str]:
    end, inode, digest, steps = identity.split(":")
    return int(end), int(inode), digest, steps


def _digest(stream: IO[bytes], end: int) -> str:
    stream.seek(0)
    found = blake2b(stream.read(min(end, _HASHED_BYTES)), digest_size=8)
    stream.seek(max(0, end - _HASHED_BYTES))
    found.update(stream.read(min(end, _HASHED_BYTES)))
    return found.hexdigest()


def _steps(stream: IO[bytes], size: int) -> Iterator[str]:
    """The hashes of the beginnings that are not longer than a size."""
    stream.seek(0)
    data, begin, crc = stream.read(_HASHED_BYTES), 0, 0
    for step in _STEPS:
        if step > size:
            return
        crc, begin = zlib.crc32(data[begin:step], crc), step
        yield f"{crc & 0xFFFFFF:0{_STEP_DIGITS}x}"
