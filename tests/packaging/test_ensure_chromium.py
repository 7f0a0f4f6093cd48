"""A Chromium for the tests of the page is found, installed where that is allowed, or asked for."""

from __future__ import annotations

from pathlib import Path

from tests.test_project import Machine

SCRIPT = "ensure-chromium"


def test_the_one_on_the_path_is_taken(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    found = machine.executable("bin/chromium", "true")
    run = machine.run(SCRIPT)
    assert (run.returncode, run.stdout) == (0, f"{found}\n")


def test_the_one_that_is_named_goes_first(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.executable("bin/chromium", "true")
    named = machine.executable("elsewhere/browser", "true")
    assert machine.run(SCRIPT, HEADWATER_CHROMIUM=str(named)).stdout == f"{named}\n"


def test_the_package_of_debian_is_installed(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    target = tmp_path / "bin" / "chromium"
    machine.apt_get("chromium", f"ln -s {tmp_path / 'bin' / 'cat'} {target}")
    run = machine.run(SCRIPT)
    assert (run.returncode, run.stdout) == (0, f"{target}\n"), run.stderr
    assert machine.installs() == ["chromium"]


def test_where_nothing_may_be_installed_it_says_what_to_type(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.apt_get("chromium", "true")
    run = machine.run(SCRIPT, HEADWATER_NO_INSTALL="1")
    assert (run.returncode, run.stdout, machine.installs()) == (2, "", [])
    assert "sudo apt-get install chromium" in run.stderr
