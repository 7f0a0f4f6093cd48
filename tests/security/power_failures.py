"""A recorder of file operations, and the disks that a power failure in the middle of them can leave.

`Recorder` compares a folder before and after each call that can change it, so it sees what compiled code writes, too.
What it records is replayed on a model of a disk on which only `fsync` gives an order, as ALICE and CrashMonkey do it:

- the content of a file is safe when the file was forced to disk; before, all of what was written since may be lost, be
  there in part, or be there as zeros,
- a name in a folder is safe when the folder was forced to disk; before, each making, renaming and removing of a name
  may have happened on disk or not, whatever the order of the calls,
- a rename happens as a whole.

`crashes` gives for each prefix of the operations the disks that can be left: everything unsafe lost, nothing of it,
names without contents, contents without names, each unsafe operation alone, all but it, and torn writes.
"""

from __future__ import annotations

import builtins
import io
import os
import random
import stat
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

Tree = Mapping[str, bytes | None]
"""The files of a disk by their paths, and the folders, which have no content."""
Entry = tuple[int, str]
"""A folder and a name in it."""
ROOT = 0
_CALLS = (
    *("open", "write", "truncate", "ftruncate", "fsync", "fdatasync"),
    *("mkdir", "rmdir", "rename", "replace", "unlink", "remove", "link", "symlink"),
)


@dataclass(frozen=True)
class Write:
    """A file has another content."""

    node: int
    before: bytes
    after: bytes

    def torn(self) -> Iterator[bytes]:
        """The contents of which only a part arrived."""
        kept = self.before if self.after.startswith(self.before) else b""
        new = self.after[len(kept) :]
        half = len(new) // 2
        yield kept + new[:half]
        yield kept + bytes(len(new))
        yield kept + bytes(half) + new[half:]


@dataclass(frozen=True)
class Change:
    """Names were made, renamed or removed: in one folder, or in two."""

    entries: tuple[tuple[Entry, int | None], ...]

    @property
    def folders(self) -> set[int]:
        return {folder for (folder, _), _ in self.entries}


@dataclass(frozen=True)
class Sync:
    """A file or a folder was forced to disk."""

    node: int


@dataclass(frozen=True)
class Mark:
    """Somebody was told that something is done."""

    label: str


Operation = Write | Change | Sync | Mark


@dataclass
class _Snapshot:
    entries: dict[Entry, int] = field(default_factory=dict)
    contents: dict[int, bytes] = field(default_factory=dict)
    nodes: dict[tuple[int, int], int] = field(default_factory=dict)


class Recorder:
    """Records the operations on what is in a folder."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.operations: list[Operation] = []
        self._lock = threading.RLock()
        self._is_busy = False
        self._count = ROOT
        self._last = _Snapshot()

    def mark(self, label: str) -> None:
        self._compare()
        self.operations.append(Mark(label))

    @contextmanager
    def recording(self) -> Iterator[Recorder]:
        self._last = self._scan()
        with ExitStack() as stack:
            for name in _CALLS:
                stack.enter_context(mock.patch.object(os, name, self._watched(name, getattr(os, name))))
            opened = self._watched("open", builtins.open)
            stack.enter_context(mock.patch.object(builtins, "open", opened))
            stack.enter_context(mock.patch.object(io, "open", opened))
            yield self
        self._compare()

    def _watched(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def watched(*args: Any, **named: Any) -> Any:
            with self._lock:
                if self._is_busy:
                    return call(*args, **named)
                self._compare()
                if name in ("fsync", "fdatasync"):
                    self._note_sync(args[0])
                result = call(*args, **named)
                self._compare()
                return result

        return watched

    def _note_sync(self, descriptor: int) -> None:
        status = os.fstat(descriptor)
        node = self._last.nodes.get((status.st_dev, status.st_ino))
        if node is not None:
            self.operations.append(Sync(node))

    def _compare(self) -> None:
        with self._lock:
            self._is_busy = True
            try:
                before, now = self._last, self._scan()
            finally:
                self._is_busy = False
            self._last = now
            changed = {
                one for one in {*before.entries, *now.entries} if before.entries.get(one) != now.entries.get(one)
            }
            moved: dict[int, list[Entry]] = {}
            for entry in sorted(changed):
                node = now.entries.get(entry, before.entries.get(entry))
                assert node is not None
                moved.setdefault(node, []).append(entry)
            for node, entries in moved.items():
                # A new file is written, if at all, after it was made; a rename is one operation.
                self.operations.append(Change(tuple((entry, now.entries.get(entry)) for entry in entries)))
                assert len(entries) <= 2, "more than one rename at once"
                del node
            for node, content in now.contents.items():
                if before.contents.get(node, b"") != content:
                    self.operations.append(Write(node, before.contents.get(node, b""), content))

    def _scan(self) -> _Snapshot:
        found, known = _Snapshot(), self._last.nodes
        status = os.stat(self.root)
        found.nodes[status.st_dev, status.st_ino] = ROOT
        waiting = [(self.root, ROOT)]
        while waiting:
            folder, node = waiting.pop()
            for name in sorted(os.listdir(folder)):
                path = folder / name
                status = os.lstat(path)
                key = status.st_dev, status.st_ino
                if key not in found.nodes:
                    if key not in known:
                        self._count += 1
                    found.nodes[key] = known.get(key, self._count)
                own = found.nodes[key]
                found.entries[node, name] = own
                if stat.S_ISDIR(status.st_mode):
                    waiting.append((path, own))
                else:
                    with open(path, "rb") as stream:
                        found.contents[own] = stream.read()
        return found


@dataclass
class Crash:
    """A disk after a power failure: after so many operations, with what marks, and what is on it."""

    place: int
    marks: tuple[str, ...]
    tree: Tree

    def write(self, folder: Path) -> Path:
        """Make the disk in a folder that is empty or missing."""
        folder.mkdir(parents=True, exist_ok=True)
        for path, content in sorted(self.tree.items()):
            if content is None:
                (folder / path).mkdir()
            else:
                (folder / path).write_bytes(content)
        return folder


@dataclass
class _Disk:
    """What is safe, and what is not yet, in the order of the calls."""

    entries: dict[Entry, int] = field(default_factory=dict)
    contents: dict[int, bytes] = field(default_factory=dict)
    files: set[int] = field(default_factory=set)
    unsafe: list[Write | Change] = field(default_factory=list)

    def sync(self, node: int) -> None:
        kept: list[Write | Change] = []
        for one in self.unsafe:
            if isinstance(one, Write) and one.node == node:
                self.contents[node] = one.after
            elif isinstance(one, Change) and node in one.folders:
                _apply(self.entries, one)
            else:
                kept.append(one)
        self.unsafe = kept

    def tree(self, happened: list[Write | Change], torn: Mapping[int, bytes]) -> dict[str, bytes | None]:
        """The files and folders, where some of what is not safe has happened; `torn` has contents by node."""
        entries, contents = dict(self.entries), dict(self.contents)
        for one in happened:
            if isinstance(one, Change):
                _apply(entries, one)
            else:
                contents[one.node] = one.after
        contents |= torn
        found: dict[str, bytes | None] = {}
        waiting = [(ROOT, "")]
        while waiting:
            folder, path = waiting.pop()
            for (parent, name), node in entries.items():
                if parent == folder:
                    found[path + name] = contents.get(node, b"") if node in self.files else None
                    if node not in self.files:
                        waiting.append((node, f"{path}{name}/"))
        return found


def _apply(entries: dict[Entry, int], change: Change) -> None:
    for entry, node in change.entries:
        if node is None:
            entries.pop(entry, None)
        else:
            entries[entry] = node


def crashes(recorder: Recorder, subsets: int = 0, seed: int = 0) -> Iterator[Crash]:
    """Every different disk that a power failure can leave after each operation; `subsets` are more, by chance."""
    generator = random.Random(seed)
    disk = _Disk(files={one.node for one in recorder.operations if isinstance(one, Write)})
    # A file that stays empty is never written; a folder has entries or was forced to disk after its parent.
    disk.files |= _empty_files(recorder)
    marks: tuple[str, ...] = ()
    seen: set[object] = set()
    for place, operation in enumerate(recorder.operations):
        match operation:
            case Sync(node):
                disk.sync(node)
            case Mark(label):
                marks = (*marks, label)
            case _:
                disk.unsafe.append(operation)
        for tree in _variants(disk, generator, subsets):
            key = marks, frozenset(tree.items())
            if key not in seen:
                seen.add(key)
                yield Crash(place, marks, tree)


def _empty_files(recorder: Recorder) -> set[int]:
    last = {node for one in recorder.operations if isinstance(one, Change) for _, node in one.entries}
    folders = {folder for one in recorder.operations if isinstance(one, Change) for (folder, _), _ in one.entries}
    written = {one.node for one in recorder.operations if isinstance(one, Write)}
    return {node for node in last if node is not None and node not in folders and node not in written}


def _variants(disk: _Disk, generator: random.Random, subsets: int) -> Iterator[dict[str, bytes | None]]:
    unsafe = disk.unsafe
    yield disk.tree([], {})
    yield disk.tree(unsafe, {})
    yield disk.tree([one for one in unsafe if isinstance(one, Change)], {})
    yield disk.tree([one for one in unsafe if isinstance(one, Write)], {})
    for index, one in enumerate(unsafe):
        yield disk.tree([one], {})
        yield disk.tree(unsafe[:index] + unsafe[index + 1 :], {})
        if isinstance(one, Write):
            for content in one.torn():
                yield disk.tree(unsafe[: index + 1], {one.node: content})
    for _ in range(subsets if len(unsafe) > 2 else 0):
        yield disk.tree([one for one in unsafe if generator.random() < 0.5], {})
