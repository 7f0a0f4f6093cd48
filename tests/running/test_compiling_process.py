"""At the first use a second process compiles the kernel: once, where it helps, and never two at a time."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headwater.kernel import precompile
from headwater.running import compiling_process
from headwater.running.compiling_process import has_kernel_code, start_compiling_process
from headwater.terms.durable_files import lock_file


@pytest.fixture
def begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[dict[str, Any]]]:
    """What processes are begun, with nothing compiled."""
    found: list[dict[str, Any]] = []

    class Process:
        def __init__(self, command: list[str], **how: Any) -> None:
            found.append({"command": command, **how})

    monkeypatch.setattr(compiling_process, "kernel_code", lambda: tmp_path)
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    monkeypatch.setattr(subprocess, "Popen", Process)
    monkeypatch.setattr("atexit.register", lambda *_: None)
    start_compiling_process.cache_clear()
    yield found
    start_compiling_process.cache_clear()


def test_one_process_compiles_beside_the_run(begun: list[dict[str, Any]]) -> None:
    assert not has_kernel_code()
    assert start_compiling_process() is start_compiling_process() is not None
    (one,) = begun
    assert one["command"][1:] == ["-m", "headwater.kernel.precompile", "--kernel-only"]
    assert one["stdin"] == one["stdout"] == one["stderr"] == subprocess.DEVNULL


def test_no_process_is_begun_where_it_helps_nobody(
    begun: list[dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(os, "cpu_count", lambda: 1)
        assert start_compiling_process() is None
    start_compiling_process.cache_clear()
    for number in range(20):
        (tmp_path / f"{number}.nbc").touch()
    assert start_compiling_process() is None
    start_compiling_process.cache_clear()
    monkeypatch.setattr(compiling_process, "kernel_code", lambda: None)
    assert start_compiling_process() is None
    assert not begun


@pytest.mark.parametrize(("options", "expected"), [((), ["scanner", "kernel"]), (("--kernel-only",), ["kernel"])])
def test_one_process_at_a_time_compiles(
    options: tuple[str, ...], expected: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    monkeypatch.setattr(precompile, "kernel_code", lambda: tmp_path)
    scanner = "headwater.terms.scanning.precompile_scanner.precompile_scanner"
    monkeypatch.setattr(scanner, lambda: done.append("scanner"))
    monkeypatch.setattr(precompile, "precompile_kernel", lambda: done.append("kernel"))
    lock = lock_file(tmp_path / "compiling.lock")
    precompile.main(options)
    assert not done
    os.close(lock)
    precompile.main(options)
    assert done == expected
