"""Files that are replaced are whole or as they were, whatever fails on the way; locks keep others out."""

from __future__ import annotations

import ast
import errno
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

import headwater
from headwater.terms.durable_files import (
    Sync,
    append_durably,
    create_folder,
    lock_file,
    place_folder,
    replace_file,
    replacing_file,
    sync_folder,
    unfinished_file,
    write_at_end,
)

PACKAGE = Path(headwater.__file__).parent


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Whether a file or a folder was forced to disk, in the order of the calls."""
    calls: list[str] = []
    fsync = os.fsync

    def note(descriptor: int) -> None:
        calls.append("folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file")
        fsync(descriptor)

    monkeypatch.setattr("headwater.terms.durable_files.os.fsync", note)
    return calls


@pytest.mark.parametrize("is_shared", [False, True])
def test_a_file_is_replaced_as_a_whole(tmp_path: Path, is_shared: bool) -> None:
    path = tmp_path / "state"
    for content in (b"before", b"", b"after" * 100_000):
        replace_file(path, content, is_shared=is_shared)
        assert path.read_bytes() == content
        assert names(tmp_path) == ["state"]


@pytest.mark.parametrize(("sync", "calls"), [(Sync.NOTHING, []), (Sync.CONTENT_AND_NAME, ["file", "folder"])])
def test_as_much_is_forced_to_disk_as_is_wanted(
    tmp_path: Path, synced: list[str], sync: Sync, calls: list[str]
) -> None:
    replace_file(tmp_path / "state", b"content", sync=sync)
    assert synced == calls


def test_the_content_is_on_disk_before_it_has_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "state"
    seen: list[tuple[bool, bytes]] = []

    def look(descriptor: int) -> None:
        if not stat.S_ISDIR(os.fstat(descriptor).st_mode):
            seen.append((path.exists(), (tmp_path / ".state.part").read_bytes()))

    monkeypatch.setattr("headwater.terms.durable_files.os.fsync", look)
    replace_file(path, b"content")
    assert seen == [(False, b"content")]


@pytest.mark.parametrize("failure", [ValueError, KeyboardInterrupt])
@pytest.mark.parametrize("is_shared", [False, True])
def test_an_exception_in_the_middle_leaves_the_file_as_it_was(
    tmp_path: Path, failure: type[BaseException], is_shared: bool
) -> None:
    path = tmp_path / "state"
    path.write_bytes(b"before")
    with pytest.raises(failure), replacing_file(path, is_shared=is_shared) as stream:
        stream.write(b"half")
        stream.flush()
        assert path.read_bytes() == b"before"
        raise failure
    assert path.read_bytes() == b"before"
    assert names(tmp_path) == ["state"]


def test_what_a_killed_process_left_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / ".state.part").write_bytes(b"a long content that was never finished")
    replace_file(tmp_path / "state", b"short")
    assert (tmp_path / "state").read_bytes() == b"short"
    assert names(tmp_path) == ["state"]


def test_writers_of_a_shared_file_do_not_meet(tmp_path: Path) -> None:
    path = tmp_path / "state"
    with replacing_file(path, is_shared=True) as one:
        one.write(b"one")
        with replacing_file(path, is_shared=True) as other:
            other.write(b"other")
        assert path.read_bytes() == b"other"
    assert path.read_bytes() == b"one"
    assert names(tmp_path) == ["state"]


def test_the_permissions_are_those_of_any_new_file(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        replace_file(tmp_path / "state", b"content")
        os.close(lock_file(tmp_path / "lock"))
    finally:
        os.umask(before)
    assert [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("state", "lock")] == [0o640, 0o640]


def test_a_full_disk_is_reported_with_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_room(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    path = tmp_path / "state"
    path.write_bytes(b"before")
    monkeypatch.setattr("headwater.terms.durable_files.os.fsync", no_room)
    with pytest.raises(OSError, match=r"No space left on device.*state") as caught:
        replace_file(path, b"after")
    assert (caught.value.errno, caught.value.filename) == (errno.ENOSPC, str(path))
    assert path.read_bytes() == b"before"
    assert names(tmp_path) == ["state"]


@pytest.mark.parametrize(
    ("named", "call"),
    [
        ("log", lambda path: write_at_end(path, b"line\n", 0)),
        ("log", lambda path: append_durably(os.open(path, os.O_WRONLY | os.O_CREAT), b"line\n", path)),
        ("", lambda path: sync_folder(path.parent)),
        ("new", lambda path: create_folder(path.parent / "new" / "folder")),
    ],
    ids=["write_at_end", "append_durably", "sync_folder", "create_folder"],
)
def test_calls_with_a_descriptor_name_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: str, call: Callable[[Path], None]
) -> None:
    (tmp_path / "new").mkdir()

    def no_room(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("headwater.terms.durable_files.os.fsync", no_room)
    with pytest.raises(OSError, match="No space left") as caught:
        call(tmp_path / "log")
    assert caught.value.filename == str(tmp_path / named)


def test_a_missing_folder_is_reported_as_such(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="nowhere"):
        replace_file(tmp_path / "nowhere" / "state", b"content")


def test_a_file_that_another_program_writes_gets_its_name_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / "archive"
    with unfinished_file(path) as unfinished:
        unfinished.write_bytes(b"content")
        assert not path.exists()
    assert path.read_bytes() == b"content"
    with pytest.raises(FileNotFoundError), unfinished_file(path):
        pass
    assert path.read_bytes() == b"content"


def test_appended_bytes_are_forced_to_disk(tmp_path: Path, synced: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write
    monkeypatch.setattr("headwater.terms.durable_files.os.write", lambda to, data: write(to, data[:3]))
    descriptor = os.open(tmp_path / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    append_durably(descriptor, b"one, ", tmp_path / "log")
    append_durably(descriptor, b"and another", tmp_path / "log")
    os.close(descriptor)
    assert (tmp_path / "log").read_bytes() == b"one, and another"
    assert synced == ["file", "file"]
    sync_folder(tmp_path)
    assert synced[2:] == ["folder"]


def test_the_first_folder_with_a_name_stays(tmp_path: Path) -> None:
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "content").write_text(name)
    place_folder(tmp_path / "one", tmp_path / "placed")
    place_folder(tmp_path / "other", tmp_path / "placed")
    assert (tmp_path / "placed" / "content").read_text() == "one"
    with pytest.raises(OSError, match="nowhere"):
        place_folder(tmp_path / "other", tmp_path / "nowhere" / "placed")


def test_a_lock_is_held_until_it_is_closed(tmp_path: Path) -> None:
    first = lock_file(tmp_path / "lock")
    for patience in (0.0, 0.01):
        with pytest.raises(BlockingIOError, match="lock"):
            lock_file(tmp_path / "lock", patience)
    os.close(first)
    os.close(lock_file(tmp_path / "lock"))


def test_only_this_module_forces_to_disk_renames_and_locks() -> None:
    calls = {"os.fsync", "os.replace", "os.rename", "fcntl.flock", "fcntl.lockf"}
    for path in PACKAGE.rglob("*.py"):
        used = {ast.unparse(node) for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Attribute)}
        assert path.name == "durable_files.py" or not used & calls, path
