"""The secret key of the hash of terms: who does not know it cannot make two terms that have one id.

A process has one key, because ids of one process are compared with each other. It is chosen when the first id is made:

1. the key of the first data set or checkpoint that the process opens (`adopt_key`), which keep their key beside the ids
2. the key in the file that `$HEADWATER_KEY_FILE` names
3. the key of the installation: `headwater/term-key` in the user's data folder, `$XDG_DATA_HOME` or `~/.local/share`,
   which is made when it is first needed
4. a random key, where that folder cannot be written

Processes of one installation have the same key, so that all of them can open its data sets and checkpoints. Workers
get the key of the process that sends them work. Whoever may read a data set or a checkpoint may know its key.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from headwater.errors import SettingError
from headwater.terms.durable_files import append_durably

KEY_BYTES = 32
KEY_FILE_SETTING = "HEADWATER_KEY_FILE"

ALL_HASH_BITS = (1 << 63) - 1

KEY_WORDS = (ctypes.c_uint64 * 5)(0, 0, 0, 0, ALL_HASH_BITS)
"""The key as compiled code reads it, zeros until it is chosen; then the bits of a hash that ids have."""
_chosen: bytes | None = None
_remembered: list[Callable[[], object]] = []


class ProcessKey:
    """The key of this process: a process that gets it with its work adopts it."""

    def __reduce__(self) -> tuple[Callable[[bytes, int], ProcessKey], tuple[bytes, int]]:
        return _adopt_from_sender, (term_key(), KEY_WORDS[4])


def _adopt_from_sender(key: bytes, hash_bits: int) -> ProcessKey:
    if not adopt_key(key):
        raise SettingError(other_key_message("what this worker has to do"))
    if KEY_WORDS[4] != hash_bits:
        use_hash_bits(hash_bits)
    return ProcessKey()


def use_hash_bits(bits: int = ALL_HASH_BITS) -> None:
    """Have ids keep only some bits of the hash. Tests make terms collide so; ids from before mean nothing then."""
    KEY_WORDS[4] = bits
    for forget in _remembered:
        forget()


def forget_with_hash(forget: Callable[[], object]) -> None:
    """Have `forget` called when hashes are made otherwise from then on: it empties what remembers ids or hashes."""
    _remembered.append(forget)


def term_key() -> bytes:
    """The key of this process."""
    return choose_key() if _chosen is None else _chosen


def choose_key() -> bytes:
    """Choose the key of this process, if it has none yet; compiled code may be called afterwards."""
    if _chosen is None:
        given = os.environ.get(KEY_FILE_SETTING)
        _use(_read_given(Path(given)) if given else _installation_key())
    assert _chosen is not None
    return _chosen


def adopt_key(key: bytes) -> bool:
    """Use the key of some ids in this process; False where it has another one already (`other_key_message`)."""
    if _chosen is None and len(key) == KEY_BYTES:
        _use(key)
    return key == _chosen


def other_key_message(owner: str) -> str:
    """What to do about ids that were made with another key; `owner` names what has them."""
    return (
        f"{owner} was made with another key of term ids than this process uses: open it before anything else in a "
        f"process of its own, or name a file with its key in ${KEY_FILE_SETTING}, or make it again here"
    )


def _use(key: bytes) -> None:
    global _chosen
    if len(key) != KEY_BYTES:
        raise SettingError(f"a key of term ids has {KEY_BYTES} bytes, not {len(key)}")
    KEY_WORDS[:4] = [int.from_bytes(key[place : place + 8], "little") for place in range(0, KEY_BYTES, 8)]
    _chosen = key


def _read_given(path: Path) -> bytes:
    try:
        return bytes.fromhex(path.read_text("ascii"))
    except (OSError, ValueError) as error:
        raise SettingError(
            f"${KEY_FILE_SETTING} names {path}, which has no key: it must hold {2 * KEY_BYTES} hexadecimal digits "
            f"({error})"
        ) from None


def _installation_key() -> bytes:
    """The key of the installation, which is made if there is none; a random one where it cannot be kept."""
    random = os.urandom(KEY_BYTES)
    with suppress(OSError, RuntimeError, ValueError):
        folder = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "headwater"
        path = folder / "term-key"
        if not path.exists():
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            _place_key(path, random)
        key = bytes.fromhex(path.read_text("ascii"))
        if len(key) == KEY_BYTES:
            return key
    return random


def _place_key(path: Path, key: bytes) -> None:
    """Make the file of a key, whole or not at all; if another process is faster, its key stays."""
    unfinished = path.with_name(f".{path.name}.{os.urandom(8).hex()}")
    descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        append_durably(descriptor, key.hex().encode() + b"\n", path)
        with suppress(FileExistsError):
            os.link(unfinished, path)
    finally:
        os.close(descriptor)
        unfinished.unlink()
