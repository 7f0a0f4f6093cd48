"""Temporary folders go with their process, also where it is killed; nothing else is touched."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import headwater as hw
from headwater.terms.scratch_folders import ScratchFolder, sweep_scratch_folders

KILLED = """
import os
from headwater.terms.scratch_folders import ScratchFolder
folder = ScratchFolder("test")
(folder.path / "some").mkdir()
print(folder.path, flush=True)
os._exit(9)
"""
ENDED = KILLED.replace("os._exit(9)", "")
RAISING = KILLED.replace("os._exit(9)", "raise SystemExit(3)")


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return tmp_path


def folder_of(script: str) -> Path:
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert run.stdout, run.stderr
    return Path(run.stdout.strip())


def test_a_folder_of_a_killed_process_is_swept_and_those_of_others_are_not(temporary: Path) -> None:
    left = folder_of(KILLED)
    assert left.parent == temporary
    assert left.is_dir()
    (temporary / "headwater-of-another-program").mkdir()
    (temporary / "headwater-link").symlink_to(left)
    (temporary / "other").mkdir()
    (temporary / "other" / ".owner").touch()
    with ScratchFolder("mine") as mine:
        (mine / "file").touch()
        sweep_scratch_folders()
        assert mine.is_dir()
        assert not left.exists()
    assert not mine.exists()
    assert sorted(one.name for one in temporary.iterdir()) == [
        "headwater-link",
        "headwater-of-another-program",
        "other",
    ]


@pytest.mark.parametrize("script", [ENDED, RAISING])
def test_a_process_that_ends_leaves_nothing(script: str, temporary: Path) -> None:
    assert not folder_of(script).exists()
    assert list(temporary.iterdir()) == []


def test_the_next_process_sweeps_at_its_first_folder(temporary: Path) -> None:
    left = folder_of(KILLED)
    folder_of(ENDED)
    assert not left.exists()
    assert list(temporary.iterdir()) == []


def test_a_fork_does_not_remove_the_folder_of_its_parent() -> None:
    with ScratchFolder("forked") as path:
        scratch = ScratchFolder("other")
        child = os.fork()
        if child == 0:
            scratch.remove()
            os._exit(0)
        os.waitpid(child, 0)
        assert scratch.path.is_dir()
        scratch.remove()
        assert not scratch.path.exists()
        assert path.is_dir()


def test_each_run_sweeps_also_where_it_needs_no_folder(temporary: Path) -> None:
    for _ in range(2):
        left = folder_of(KILLED)
        engine = hw.Engine(in_process=True)
        engine.stream("s", hw.memory([]))
        engine.register("SELECT ?x FROM STREAM <s> [RANGE 2s STEP 1s] WHERE { ?x <urn:v> ?v }")
        engine.run()
        assert not left.exists()
