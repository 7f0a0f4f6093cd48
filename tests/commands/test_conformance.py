"""`headwater conformance` hands the suite, the folder and stdout on, and ends as the suite does."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import TextIO

import pytest

from tests.commands.running import headwater


@pytest.mark.parametrize("code", [0, 1])
def test_the_suite_is_run_on_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    def run(suite: str, folder: Path, out: TextIO) -> int:
        out.write(f"{suite} in {folder.name}: 3 passed, {code} failed\n")
        return code

    suites = ModuleType("headwater.conformance.suites")
    suites.run = run  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "headwater.conformance.suites", suites)
    monkeypatch.delitem(sys.modules, "headwater.commands.conformance_command", raising=False)
    result = headwater("conformance", "w3c", tmp_path)
    assert (result.exit_code, result.stdout) == (code, f"w3c in {tmp_path.name}: 3 passed, {code} failed\n")
    monkeypatch.delitem(sys.modules, "headwater.commands.conformance_command", raising=False)


def test_an_unknown_suite_and_a_missing_folder_are_wrong_usage(tmp_path: Path) -> None:
    assert headwater("conformance", "w4c", tmp_path).exit_code == 2
    assert headwater("conformance", "w3c", tmp_path / "missing").exit_code == 2
