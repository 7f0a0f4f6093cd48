"""Data that is refreshed from files survives faults: they are reported, tried again, and over when they are over."""

from __future__ import annotations

import errno
import logging
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import headwater as hw
from headwater.datasets import change_log
from headwater.engine import watched_data
from headwater.engine.watched_data import refresh_in_background
from headwater.terms.durable_files import write_at_end


def fill_the_disk(monkeypatch: pytest.MonkeyPatch, faults: int) -> Callable[[], int]:
    """Have so many changes of data sets fail; gives how many were tried."""
    tried: list[object] = []

    def write(path: Path, data: bytes, end: int, **options: Any) -> None:
        tried.append(path)
        if len(tried) <= faults:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        write_at_end(path, data, end, **options)

    monkeypatch.setattr(change_log, "write_at_end", write)
    return lambda: len(tried)


def watched(path: Path) -> tuple[hw.DataSet, watched_data.RefreshedDataSet]:
    engine = hw.Engine(in_process=True)
    engine.dataset(path, refresh=0.01)
    ((scratch, one),) = engine._data._refreshed
    # The folder of the data goes with the engine.
    one.scratch = scratch  # type: ignore[attr-defined]
    return hw.DataSet.open(one.data.folder), one


def statements(data: hw.DataSet) -> list[str]:
    data.advance()
    return sorted(str(quad.object) for quad in data.quads())


def wait_for(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.01)


def test_the_thread_survives_a_full_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "data.nt"
    path.write_text("<http://ex/s> <http://ex/p> <http://ex/a> .\n")
    data, one = watched(path)
    tried = fill_the_disk(monkeypatch, faults=3)
    with caplog.at_level(logging.WARNING), refresh_in_background([one]):
        path.write_text("<http://ex/s> <http://ex/p> <http://ex/b> .\n")
        # The file does not change again: what could not be written must not be forgotten.
        wait_for(lambda: statements(data) == ["<http://ex/b>"])
        wait_for(lambda: not one.is_failing)
        path.write_text("<http://ex/s> <http://ex/p> <http://ex/c> .\n" * 2)
        wait_for(lambda: statements(data) == ["<http://ex/c>"])
    assert tried() >= 5
    reports = [message for message in caplog.messages if "No space left" in message]
    assert len(reports) == 2
    assert "stays as it was" in reports[0] and "refreshed again" in reports[1]
    assert not any(thread.name == "headwater-refresh" for thread in threading.enumerate())


def test_any_error_is_reported_and_none_ends_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "data.nt"
    path.write_text("<http://ex/s> <http://ex/p> <http://ex/a> .\n")
    _, one = watched(path)
    for fault in (MemoryError(), RuntimeError("of a library"), hw.DataSetError("another process loads")):
        with monkeypatch.context() as patch:

            def read(error: Exception = fault) -> None:
                raise error

            patch.setattr(one.source, "read", read)
            assert not one.refresh()
            assert one.is_failing
            assert (str(fault) or "MemoryError") in caplog.messages[-1]
    assert not one.refresh()
    assert not one.is_failing


def test_a_version_that_cannot_be_read_is_a_data_set_error(tmp_path: Path) -> None:
    from headwater.datasets.loading.bulk_load import load
    from headwater.datasets.version_watch import VersionWatch

    (tmp_path / "a.nt").write_text("<http://ex/s> <http://ex/p> <http://ex/a> .\n")
    load(tmp_path / "set", [tmp_path / "a.nt"])
    watch = VersionWatch(tmp_path / "set")
    assert watch.newest_version() == 1
    next((tmp_path / "set").glob("changes-*.log")).write_text("no line of ours\n")
    with pytest.raises(hw.DataSetError, match="does not begin with its version"):
        watch.newest_version()
