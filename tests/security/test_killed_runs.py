"""A run in process that is killed and goes on from its checkpoint loses no answer, doubles none and takes none back."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import headwater as hw
from tests.security import killed_runs
from tests.spark.stories import PROJECT, comparable


def run_to_the_end(folder: Path, *options: str) -> None:
    """Kill a run at each point, and let the last one come to its end."""
    command = [sys.executable, "-m", "tests.security.killed_runs", str(folder), *options]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr[-3000:]


def answers_in(folder: Path) -> dict[str, Any]:
    """The answers in all files by query and tick; no tick stands in two of them."""
    found: dict[str, Any] = {}
    for path in folder.rglob("*.jsonl"):
        for line in path.read_text().splitlines():
            key, content = comparable(json.loads(line), path.parent.name)
            assert key not in found, f"{key} stands in two files"
            found[key] = content
    return found


def files_in(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*.jsonl")}


@pytest.mark.parametrize("options", [(), ("data",)])
def test_runs_that_are_killed_deliver_each_answer_once(tmp_path: Path, options: tuple[str, ...]) -> None:
    run_to_the_end(tmp_path, *options)
    out = answers_in(tmp_path / "out")
    expected = killed_runs.engine_of(tmp_path, has_data=bool(options), checkpoint=None)
    expected.run(sinks=[hw.FileSink(tmp_path / "expected")])
    wanted = answers_in(tmp_path / "expected")
    assert len(wanted) > 40
    assert out.keys() == wanted.keys()
    # What the data changes is another matter: the query that reads it saw another version in each run.
    assert {key: one for key, one in out.items() if not key.startswith("floors")} == {
        key: one for key, one in wanted.items() if not key.startswith("floors")
    }
    seen = sorted(tmp_path.glob("seen-*"))
    assert len(seen) >= 3
    for before in seen:
        # Whoever has read a file has read the truth, also where its batch was delivered again over other data.
        assert files_in(before).items() <= files_in(tmp_path / "out").items(), before.name
