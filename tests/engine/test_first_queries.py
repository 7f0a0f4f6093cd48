"""At the first use a second process compiles beside the run: once, where it helps, and never two at a time."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headwater.engine import first_queries
from headwater.engine.engine import Engine
from headwater.running import compiling_process
from headwater.running.compiling_process import IN_COMPILING_PROCESS, has_evaluation_code, start_compiling_process
from headwater.terms.durable_files import lock_file


@pytest.fixture
def begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[dict[str, Any]]]:
    """What processes are begun, with nothing compiled."""
    found: list[dict[str, Any]] = []

    class Process:
        def __init__(self, command: list[str], **how: Any) -> None:
            found.append({"command": command, **how})

    monkeypatch.setattr(compiling_process, "evaluation_code", lambda: tmp_path)
    monkeypatch.setattr(first_queries, "evaluation_code", lambda: tmp_path)
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    monkeypatch.setattr(subprocess, "Popen", Process)
    monkeypatch.setattr("atexit.register", lambda *_: None)
    start_compiling_process.cache_clear()
    yield found
    start_compiling_process.cache_clear()


def test_one_process_compiles_beside(begun: list[dict[str, Any]]) -> None:
    assert not has_evaluation_code()
    assert start_compiling_process() is start_compiling_process() is not None
    (one,) = begun
    assert one["env"][IN_COMPILING_PROCESS] and one["stdin"] == one["stdout"] == one["stderr"] == subprocess.DEVNULL


def test_no_process_is_begun_where_it_helps_nobody(
    begun: list[dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setenv(IN_COMPILING_PROCESS, "1")
        assert start_compiling_process() is None
    start_compiling_process.cache_clear()
    with monkeypatch.context() as patch:
        patch.setattr(os, "cpu_count", lambda: 1)
        assert start_compiling_process() is None
    start_compiling_process.cache_clear()
    for number in range(20):
        (tmp_path / f"{number}.nbc").touch()
    assert start_compiling_process() is None
    start_compiling_process.cache_clear()
    monkeypatch.setattr(compiling_process, "evaluation_code", lambda: None)
    assert start_compiling_process() is None
    assert not begun


def test_the_second_process_evaluates_queries_and_not_where_another_one_does(
    begun: list[dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows: list[int] = []
    run = Engine.run

    def count(self: Engine, **_: Any) -> None:
        rows.append(sum(len(answer.rows) for query in self.queries for answer in _answers(self, query, run)))

    monkeypatch.setattr(Engine, "run", count)
    lock = lock_file(tmp_path / "compiling.lock")
    first_queries.main()
    assert not rows
    os.close(lock)
    first_queries.main()
    assert len(rows) == 6 and all(rows)


def _answers(engine: Engine, query: Any, run: Any) -> list[Any]:
    found: list[Any] = []
    run(engine, on_answer=found.append)
    return found
