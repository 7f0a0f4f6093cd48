"""One run at a time uses a checkpoint, and only its owner can look into it."""

from __future__ import annotations

import stat
import threading
from pathlib import Path

import pytest

import headwater as hw
from tests.engine.programs import SENSORS, SLIDING, sensor_lines, write


def engine_of(folder: Path, checkpoint: Path) -> hw.Engine:
    engine = hw.Engine(in_process=True, evaluator="reference", checkpoint=checkpoint)
    engine.stream(SENSORS, folder / "in.tnq")
    engine.register(SLIDING)
    return engine


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_second_run_on_a_checkpoint_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "in.tnq", sensor_lines(30))
    first = engine_of(tmp_path, tmp_path / "checkpoint")
    begun = threading.Event()
    thread = threading.Thread(target=lambda: first.run(follow=True, on_progress=lambda _: begun.set()))
    thread.start()
    answers: list[hw.Answer] = []
    try:
        assert begun.wait(30)
        with pytest.raises(hw.CheckpointError, match=r"another run uses the checkpoint .*: stop it, or give this run"):
            engine_of(tmp_path, tmp_path / "checkpoint").run(on_answer=answers.append)
    finally:
        first.stop()
        thread.join(30)
    assert not answers
    engine_of(tmp_path, tmp_path / "checkpoint").run(on_answer=answers.append)
    assert answers


def test_the_folder_is_for_its_owner_alone(tmp_path: Path) -> None:
    write(tmp_path / "in.tnq", sensor_lines(5))
    usual, shared, own = tmp_path / "usual", tmp_path / "shared", tmp_path / "own"
    for folder in (usual, shared, own):
        folder.mkdir()
        folder.chmod(0o755)
    (shared / "letter.txt").write_text("of somebody else")
    for folder in (usual / "checkpoint", shared, own):
        engine_of(tmp_path, folder).run()
    assert mode_of(usual / "checkpoint") == 0o700
    assert mode_of(own) == 0o700
    # Folders that hold other things as well stay as they are.
    assert mode_of(usual) == mode_of(shared) == 0o755
