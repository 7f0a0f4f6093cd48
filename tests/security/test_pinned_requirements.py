"""What an installation brings along is pinned by version and checksum, and the files name no host."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.test_project import normalised, requirements

PROJECT = Path(__file__).resolve().parents[2]
FILES = sorted((PROJECT / "requirements").glob("*.txt"))


def pins(path: Path) -> dict[str, tuple[str, list[str]]]:
    """Version and checksums by package."""
    text = path.read_text("utf-8").replace("\\\n", " ")
    found = {}
    for line in (line for line in text.splitlines() if line and not line.startswith("#")):
        pin, *hashes = line.split()
        name, version = pin.split("==")
        found[normalised(name)] = version, hashes
    return found


def test_there_is_a_file_for_installations_and_one_for_the_tools_of_a_release() -> None:
    assert [path.stem for path in FILES] == ["release-tools", "runtime"]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_package_has_checksums_and_no_file_names_a_host(path: Path) -> None:
    assert all(hashes for _, hashes in pins(path).values())
    for _, hashes in pins(path).values():
        assert all(re.fullmatch(r"--hash=sha256:[0-9a-f]{64}", one) for one in hashes)
    assert not re.search(r"://|^-|@ ", path.read_text("utf-8"), re.MULTILINE)


def test_all_that_the_project_needs_is_pinned() -> None:
    assert requirements("all") - set(pins(PROJECT / "requirements" / "runtime.txt")) == set()


def test_compiled_packages_have_a_file_for_each_platform() -> None:
    found = pins(PROJECT / "requirements" / "runtime.txt")
    for name in ("numpy", "pyarrow", "pyoxigraph", "numba"):
        assert len(found[name][1]) >= 2, name


def test_the_versions_are_those_of_the_constraints(tmp_path: Path) -> None:
    command = [sys.executable, "scripts/pin_requirements.py", "--check"]
    assert subprocess.run(command, cwd=PROJECT, capture_output=True).returncode == 0
    for name in ("scripts", "requirements"):
        (tmp_path / name).mkdir()
    (tmp_path / "scripts" / "pin_requirements.py").write_text((PROJECT / "scripts" / "pin_requirements.py").read_text())
    (tmp_path / "requirements" / "runtime.txt").write_text("numpy==1.0 \\\n    --hash=sha256:0\n")
    (tmp_path / "constraints.txt").write_text("numpy==2.0\n")
    wrong = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert wrong.returncode == 1 and "numpy is 1.0, and 2.0 in constraints.txt" in wrong.stderr


def test_a_release_reports_licences_and_materials() -> None:
    script = (PROJECT / "scripts" / "release-check").read_text("utf-8")
    for part in ("--require-hashes", "pip-licenses", "cyclonedx-py", "jar_checksums"):
        assert part in script
    assert "GPL" not in re.findall(r'licences="(.*)"', script)[0] and '--fail-on="GPL"' in script
    assert "release-check" in (PROJECT / "Makefile").read_text("utf-8")
