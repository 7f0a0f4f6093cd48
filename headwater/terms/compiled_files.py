"""The files of compiled code: one for each function, version of the sources, and types of the arguments.

numba's own cache numbers the files of a function and keeps the numbers in an index. Two processes that compile the
function for other types at the same time can take the same number: then a later process finds the code of the wrong
types, and fails where these cannot be converted. Here the name of a file follows from what is in it, so processes that
write at the same time write other files, or the same.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import uuid
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numba
from numba.core import serialize

_DIGEST_BYTES = 16
_dumps: Any = serialize.dumps
_UNREADABLE = (OSError, EOFError, pickle.UnpicklingError, ValueError, LookupError, AttributeError, ImportError)


class CompiledFiles:
    """The files of one function in a folder; `stamp` is the version of the sources."""

    def __init__(self, folder: Path, name: str, stamp: object) -> None:
        self._folder = folder
        self._name = name
        self._version = _digest(repr((numba.__version__, stamp)).encode()).hex()

    def load(self, key: Any) -> Any:
        """What was saved under a key; None where nothing was, or where it is damaged."""
        with suppress(*_UNREADABLE):
            content = self._path(key).read_bytes()
            digest, data = content[:_DIGEST_BYTES], content[_DIGEST_BYTES:]
            if digest == _digest(data):
                found_key, found = pickle.loads(data)
                return found if found_key == key else None
        return None

    def save(self, key: Any, data: Any) -> None:
        """Save something under a key; where the disk does not take it, nothing is kept."""
        content = _dumps((key, data))
        path = self._path(key)
        unfinished = path.with_name(f"{path.name}.tmp.{uuid.uuid4().hex[:16]}")
        try:
            unfinished.write_bytes(_digest(content) + content)
            os.replace(unfinished, path)
        except OSError:
            with suppress(OSError):
                unfinished.unlink()
        self._remove_other_versions()

    def flush(self) -> None:
        """Remove the files of the function."""
        for path in self._files():
            with suppress(OSError):
                path.unlink()

    def _path(self, key: Any) -> Path:
        signature, *rest = key
        digest = _digest(repr((str(signature), rest)).encode()).hex()
        return self._folder / f"{self._name}.{self._version}.{digest}.nbc"

    def _files(self) -> Iterator[Path]:
        """The files of the function, without those that are being written."""
        with suppress(OSError):
            for path in self._folder.iterdir():
                if path.name.startswith(f"{self._name}.") and path.suffix in (".nbc", ".nbi"):
                    yield path

    def _remove_other_versions(self) -> None:
        for path in self._files():
            if not path.name.startswith(f"{self._name}.{self._version}."):
                with suppress(OSError):
                    path.unlink()


def _digest(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=_DIGEST_BYTES).digest()
