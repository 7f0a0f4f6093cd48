"""What numba compiled is forgotten when the sources are other ones."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from headwater.terms.compiled_code import FOLDERS, forget_stale_code


@pytest.fixture
def package(tmp_path: Path) -> Path:
    for folder in FOLDERS:
        (tmp_path / folder / "__pycache__").mkdir(parents=True, exist_ok=True)
        (tmp_path / folder / "some.py").write_text("one")
    forget_stale_code(tmp_path)
    for folder in FOLDERS:
        for kind in ("nbi", "1.nbc", "pyc"):
            (tmp_path / folder / "__pycache__" / f"some.function-1.py311.{kind}").touch()
    return tmp_path


def compiled(package: Path) -> int:
    return len([*package.rglob("*.nbi"), *package.rglob("*.nbc")])


def test_what_is_fresh_stays(package: Path) -> None:
    forget_stale_code(package)
    assert compiled(package) == 2 * len(FOLDERS)


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_change_in_any_folder_counts_for_all(package: Path, folder: str) -> None:
    (package / folder / "some.py").write_text("another")
    forget_stale_code(package)
    assert compiled(package) == 0 and len([*package.rglob("*.pyc")]) == len(FOLDERS)


def test_a_later_time_is_a_change_and_so_is_a_new_file(package: Path) -> None:
    os.utime(package / "kernel" / "some.py", ns=(1, 1))
    forget_stale_code(package)
    assert compiled(package) == 0
    (package / "kernel" / "__pycache__" / "some.nbi").touch()
    (package / "kernel" / "more.py").touch()
    forget_stale_code(package)
    assert compiled(package) == 0


def test_code_that_nobody_knows_the_sources_of_is_stale(package: Path) -> None:
    (package / FOLDERS[0] / "__pycache__" / "compiled-from").unlink()
    forget_stale_code(package)
    assert compiled(package) == 0


def test_folders_that_cannot_be_written_are_left_alone(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError

    monkeypatch.setattr(Path, "unlink", refuse)
    (package / "kernel" / "some.py").write_text("another")
    forget_stale_code(package)
    assert compiled(package) == 2 * len(FOLDERS)
