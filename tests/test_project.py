"""Holds the set-up: Java and Python are found or asked for, versions are pinned, the tree stays clean.

The scripts run against invented `java`, `python3` and `apt-get` executables on a PATH that has nothing else
but the few system commands they need, so nothing is ever installed here.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.test_layering import imported_modules

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PROJECT = Path(__file__).resolve().parent.parent
SYSTEM_COMMANDS = ("bash", "cat", "dirname", "env", "head", "ln", "readlink", "sed")
IMPORT_NAMES = {
    "grpcio": "grpc",
    "paho_mqtt": "paho",
    "protobuf": "google",
    "pytest_timeout": "pytest",
    "sparqlwrapper": "SPARQLWrapper",
}

OPENJDK_17 = 'openjdk version "17.0.15" 2025-04-15\nOpenJDK Runtime Environment (build 17.0.15+6)'
ORACLE_8 = 'java version "1.8.0_392"\nJava(TM) SE Runtime Environment (build 1.8.0_392-b08)'
EARLY_21 = 'openjdk version "21-ea" 2023-09-19'
NOISY_17 = "Picked up JAVA_TOOL_OPTIONS: -Dname=version\n" + OPENJDK_17


class Machine:
    """An invented machine: a PATH, a folder of Javas, and a record of what was asked of apt-get."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "bin").mkdir(parents=True)
        (root / "jvm").mkdir()
        for command in SYSTEM_COMMANDS:
            found = shutil.which(command)
            assert found, f"this test needs the command {command}"
            (root / "bin" / command).symlink_to(found)
        self.executable("bin/id", "echo 0")

    def executable(self, path: str, body: str) -> Path:
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(f"#!/bin/bash\n{body}\n")
        target.chmod(0o755)
        return target

    def java(self, path: str, version: str, home: str = "") -> str:
        """Puts a Java at a path that ends in bin/java; returns its home."""
        setting = f"    java.home = {home}\n" if home else ""
        return str(self.executable(path, f"cat >&2 <<'END'\n{setting}{version}\nEND").parent.parent)

    def apt_get(self, offers: str = "nothing", effect: str = "true") -> None:
        """An apt-get that has one package, and what installing that changes."""
        self.executable(
            "bin/apt-get",
            f'echo "$*" >> "{self.root}/apt.log"\n'
            f'case "$*" in *update*) exit 0;; *" {offers}") {effect}; exit 0;; esac\n'
            'echo "E: Unable to locate package" >&2; exit 100',
        )

    def installs(self) -> list[str]:
        """The packages that apt-get was asked to install, in order."""
        log = self.root / "apt.log"
        lines = log.read_text().splitlines() if log.exists() else []
        return [line.split()[-1] for line in lines if " install " in line]

    def run(self, script: str, **environment: str) -> subprocess.CompletedProcess[str]:
        variables = {"PATH": str(self.root / "bin"), "HEADWATER_JVM_FOLDER": str(self.root / "jvm")}
        command = [str(PROJECT / "scripts" / script)]
        return subprocess.run(command, env={**variables, **environment}, capture_output=True, text=True, timeout=60)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path / "machine")


@pytest.mark.parametrize("version", [OPENJDK_17, EARLY_21, NOISY_17])
def test_a_java_on_the_path_that_is_new_enough_is_used(machine: Machine, version: str) -> None:
    machine.java("bin/java", version, home="/opt/some java")
    machine.apt_get()
    run = machine.run("ensure-java")
    assert (run.returncode, run.stdout, run.stderr) == (0, "/opt/some java\n", "")
    assert machine.installs() == []


def test_java_home_comes_before_the_path(machine: Machine) -> None:
    home = machine.java("own/bin/java", EARLY_21)
    machine.java("bin/java", OPENJDK_17, home="/opt/other")
    assert machine.run("ensure-java", JAVA_HOME=home).stdout == f"{home}\n"


@pytest.mark.parametrize("home_of_old", ["old", "absent"])
def test_a_java_home_that_does_not_serve_gives_way_to_the_path(machine: Machine, home_of_old: str) -> None:
    machine.java("old/bin/java", ORACLE_8)
    machine.java("bin/java", OPENJDK_17, home="/opt/other")
    run = machine.run("ensure-java", JAVA_HOME=str(machine.root / home_of_old))
    assert (run.returncode, run.stdout) == (0, "/opt/other\n")


def test_a_newer_java_beside_the_default_one_is_found(machine: Machine) -> None:
    machine.java("bin/java", ORACLE_8)
    home = machine.java("jvm/java-17/bin/java", OPENJDK_17)
    assert machine.run("ensure-java").stdout == f"{home}\n"


@pytest.mark.parametrize("package", ["openjdk-17-jre-headless", "openjdk-21-jre-headless"])
def test_java_is_installed_where_root_may(machine: Machine, package: str) -> None:
    machine.java("bin/java", ORACLE_8)
    machine.java("offered/bin/java", EARLY_21, home="/installed")
    machine.apt_get(package, effect=f"ln -s '{machine.root}/offered' '{machine.root}/jvm/new'")
    run = machine.run("ensure-java")
    assert (run.returncode, run.stdout) == (0, "/installed\n"), run.stderr
    assert machine.installs()[-1] == package


def test_java_is_installed_with_sudo_that_asks_no_password(machine: Machine) -> None:
    machine.executable("bin/id", "echo 1000")
    machine.executable("bin/sudo", 'shift; [ "$1" = true ] || exec "$@"')
    machine.java("offered/bin/java", OPENJDK_17, home="/installed")
    effect = f"ln -s '{machine.root}/offered' '{machine.root}/jvm/new'"
    machine.apt_get("openjdk-17-jre-headless", effect)
    assert machine.run("ensure-java").stdout == "/installed\n"


def asks_for_java(run: subprocess.CompletedProcess[str]) -> bool:
    return (run.returncode, run.stdout) == (
        2,
        "",
    ) and "sudo apt-get install openjdk-17-jre-headless" in run.stderr


def test_an_ordinary_user_is_told_the_command(machine: Machine) -> None:
    machine.executable("bin/id", "echo 1000")
    machine.executable("bin/sudo", "exit 1")
    machine.java("bin/java", ORACLE_8)
    machine.apt_get("openjdk-17-jre-headless")
    run = machine.run("ensure-java")
    assert asks_for_java(run)
    assert "which is Java 8" in run.stderr
    assert machine.installs() == []


def test_nothing_is_installed_against_the_wish(machine: Machine) -> None:
    machine.apt_get("openjdk-17-jre-headless")
    assert asks_for_java(machine.run("ensure-java", HEADWATER_NO_INSTALL="1"))
    assert machine.installs() == []


def test_a_system_without_apt_is_told_what_is_needed(machine: Machine) -> None:
    machine.executable("bin/java", "exit 1")
    run = machine.run("ensure-java")
    assert asks_for_java(run)
    assert "which does not run" in run.stderr


def test_a_failed_installation_shows_the_words_of_apt(machine: Machine) -> None:
    machine.apt_get()
    run = machine.run("ensure-java")
    assert asks_for_java(run)
    assert "Unable to locate package" in run.stderr
    assert machine.installs() == ["openjdk-17-jre-headless", "openjdk-21-jre-headless"]


OLD_PYTHON = 'case "$*" in *version_info*) exit 1;; esac'
WHOLE_PYTHON = "exit 0"


def python_without_venv(marker: Path) -> str:
    """A Debian python3.11 that lacks python3.11-venv until a file appears."""
    return f'case "$*" in *ensurepip*) [ -e "{marker}" ];; *print*) echo 3.11;; esac'


def test_python3_is_used_when_it_is_new_enough(machine: Machine) -> None:
    python = machine.executable("bin/python3", WHOLE_PYTHON)
    machine.executable("bin/python3.11", WHOLE_PYTHON)
    assert machine.run("ensure-python").stdout == f"{python}\n"


def test_python3_11_is_found_when_python3_is_older(machine: Machine) -> None:
    machine.executable("bin/python3", OLD_PYTHON)
    python = machine.executable("bin/python3.11", WHOLE_PYTHON)
    assert machine.run("ensure-python").stdout == f"{python}\n"


def test_without_a_new_python_the_command_is_told(machine: Machine) -> None:
    machine.executable("bin/python3", OLD_PYTHON)
    run = machine.run("ensure-python")
    assert (run.returncode, run.stdout) == (2, "")
    assert "sudo apt-get install python3.11 python3.11-venv" in run.stderr


def test_the_venv_package_is_installed_where_root_may(machine: Machine) -> None:
    marker = machine.root / "venv"
    python = machine.executable("bin/python3", python_without_venv(marker))
    machine.apt_get("python3.11-venv", effect=f"echo > '{marker}'")
    run = machine.run("ensure-python")
    assert (run.returncode, run.stdout) == (0, f"{python}\n"), run.stderr


def test_without_the_venv_package_the_command_is_told(machine: Machine) -> None:
    machine.executable("bin/python3", python_without_venv(machine.root / "never"))
    run = machine.run("ensure-python")
    assert run.returncode == 2
    assert "sudo apt-get install python3.11-venv" in run.stderr


def make(folder: Path, *arguments: str) -> str:
    """Runs make as from a terminal: not as a part of the make that may be running these tests."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("MAKE", "MFLAGS"))}
    run = subprocess.run(["make", *arguments], cwd=folder, env=environment, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return run.stdout


def test_help_is_the_default_and_lists_every_target() -> None:
    listed = make(PROJECT)
    for target in ("setup", "demo", "test", "lint", "docs", "bench", "soak", "clean", "help"):
        assert re.search(rf"make {target}\s+\S", listed), target


def test_set_up_runs_again_only_when_its_inputs_changed(tmp_path: Path) -> None:
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy(PROJECT / name, tmp_path / name)
    (tmp_path / "scripts").mkdir()
    scripts = {
        "setup": "mkdir -p .venv/bin; ln -sf /bin/true .venv/bin/python; echo installing",
        "ensure-java": "echo /some/java",
    }
    for name, body in scripts.items():
        (tmp_path / "scripts" / name).write_text(f"#!/bin/bash\n{body}\n")
        (tmp_path / "scripts" / name).chmod(0o755)
    assert "installing" in make(tmp_path, "setup")
    assert "installing" not in make(tmp_path, "setup")
    stamp = tmp_path / ".venv" / ".set-up"
    later = stamp.stat().st_mtime + 10
    os.utime(tmp_path / "constraints.txt", (later, later))
    assert "installing" in make(tmp_path, "setup")


def test_ci_runs_make_test() -> None:
    script = PROJECT / ".ci" / "run"
    assert os.access(script, os.X_OK)
    assert "make test" in script.read_text()


def normalised(name: str) -> str:
    return re.sub(r"[-_.]+", "_", name).lower()


def packages_of(lines: list[str], extras: dict[str, list[str]]) -> set[str]:
    """The names of required packages; an extra of the project itself stands for what is in it."""
    names: set[str] = set()
    for line in lines:
        if own := re.fullmatch(r"headwater\[(.+)\]", line):
            names |= packages_of([one for extra in own[1].split(",") for one in extras[extra]], extras)
        else:
            names.add(normalised(re.split(r"[<>=!~\[; ]", line, maxsplit=1)[0]))
    return names


def requirements(*extras: str) -> set[str]:
    """The names of the packages that pyproject.toml asks for, with those of some extras."""
    project: dict[str, Any] = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
    known = project["optional-dependencies"]
    return packages_of(project["dependencies"] + [line for extra in extras for line in known[extra]], known)


def test_every_requirement_has_one_exact_version() -> None:
    lines = (PROJECT / "constraints.txt").read_text().splitlines()
    pins = [line for line in lines if not line.startswith("#")]
    assert [pin for pin in pins if not re.fullmatch(r"[\w.-]+==[\w.!+]+", pin)] == []
    names = [normalised(pin.split("==")[0]) for pin in pins]
    assert len(names) == len(set(names))
    assert requirements("dev", "all", "bench") - set(names) == set()


@pytest.mark.parametrize(("folder", "extra"), [("headwater", "all"), ("tests", "dev")])
def test_every_package_that_is_imported_is_a_requirement(folder: str, extra: str) -> None:
    known = {IMPORT_NAMES.get(name, name) for name in requirements(extra)}
    known |= {"headwater", "tests", "benchmarks", *sys.stdlib_module_names}
    missing = {
        f"{path.relative_to(PROJECT)}: {name}"
        for path in (PROJECT / folder).rglob("*.py")
        for name in imported_modules(path.read_text("utf-8"), ".".join(path.relative_to(PROJECT).parts)[:-3])
        if name.split(".")[0] not in known
    }
    assert not missing


def test_the_repository_holds_text_only() -> None:
    listing = subprocess.run(["git", "ls-files", "-z"], cwd=PROJECT, capture_output=True)
    if listing.returncode != 0:
        pytest.skip("not a git checkout: there is no list of tracked files to look at")
    tracked = [PROJECT / os.fsdecode(name) for name in listing.stdout.split(b"\0") if name]
    assert [path for path in tracked if path.is_file() and b"\0" in path.read_bytes()] == []


def test_the_session_runs_python_workers_with_this_interpreter(spark: SparkSession) -> None:
    def executable(batches: Any) -> Any:
        for batch in batches:
            yield batch.assign(path=sys.executable)

    rows = spark.range(4).mapInPandas(executable, "id long, path string").collect()
    assert {(row.id, row.path) for row in rows} == {(number, sys.executable) for number in range(4)}
