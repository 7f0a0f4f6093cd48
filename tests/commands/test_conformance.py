"""`headwater conformance` hands the suite, the folder and stdout on, and ends as the suite does."""

from __future__ import annotations

from pathlib import Path
from typing import TextIO

import pytest

from headwater.commands import conformance_command
from tests.commands.running import headwater


@pytest.mark.parametrize("code", [0, 1])
def test_the_suite_is_run_on_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    def run(suite: str, folder: Path, out: TextIO) -> int:
        out.write(f"{suite} in {folder.name}: 3 passed, {code} failed\n")
        return code

    monkeypatch.setattr(conformance_command, "run_suite", run)
    result = headwater("conformance", "w3c", tmp_path)
    assert (result.exit_code, result.stdout) == (code, f"w3c in {tmp_path.name}: 3 passed, {code} failed\n")


def test_an_unknown_suite_and_a_missing_folder_are_wrong_usage(tmp_path: Path) -> None:
    assert headwater("conformance", "w4c", tmp_path).exit_code == 2
    assert headwater("conformance", "w3c", tmp_path / "missing").exit_code == 2
