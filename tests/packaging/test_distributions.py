"""The wheel and the source distribution: what is in them, and that the wheel works where it is installed.

Everything is built from a copy of the project, without a network. The wheel is installed into a virtual environment of
its own, which sees the packages of the running interpreter, but not the project, and whose folders are read-only. Root
may write to them all the same, unless it gives up that right, which it does here.
"""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import venv
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import headwater as hw

PROJECT = Path(__file__).resolve().parents[2]
PACKAGE = PROJECT / "headwater"
DOCUMENTS = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE")
BUILT_FROM = ("headwater", "tests", "docs", "examples", "pyproject.toml", "MANIFEST.in", *DOCUMENTS)
DROP_CAPABILITY = 24
WRITING_AGAINST_PERMISSIONS = 1
"""prctl's PR_CAPBSET_DROP and CAP_DAC_OVERRIDE."""
ROWS = '{"gate": "g1", "at": "2026-03-02T07:00:40Z"}\n{"gate": "g1", "at": "2026-03-02T07:01:40Z"}\n'
TEMPLATE = "@time {at}\n<http://city/{gate}> <http://city/seen> true .\n"
QUERY = "SELECT ?gate (COUNT(*) AS ?n) FROM STREAM <gates> [TRIPLES 9] WHERE { ?gate ?p ?o } GROUP BY ?gate\n"
BUILD_SDIST = "import sys; from setuptools import build_meta; build_meta.build_sdist(sys.argv[1])"


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """A folder whose read-only parts are removed in the end."""
    path = Path(tempfile.mkdtemp()).resolve()
    yield path
    for place in (path, *path.rglob("*")):
        if place.is_dir() and not place.is_symlink():
            place.chmod(0o755)
    shutil.rmtree(path)


@pytest.fixture(scope="module")
def project(folder: Path) -> Path:
    """A copy of what distributions are built from."""
    copy = folder / "project"
    copy.mkdir()
    for name in BUILT_FROM:
        if (PROJECT / name).is_dir():
            shutil.copytree(PROJECT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(PROJECT / name, copy / name)
    return copy


def run_python(*arguments: object, cwd: Path) -> str:
    """What a command prints, which must not fail."""
    run = subprocess.run([sys.executable, *map(str, arguments)], cwd=cwd, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr
    return run.stdout + run.stderr


@pytest.fixture(scope="module")
def wheel(project: Path, folder: Path) -> Path:
    options = ("--no-build-isolation", "--no-deps", "--no-index", "--verbose", "--disable-pip-version-check")
    printed = run_python("-m", "pip", "wheel", ".", *options, "--wheel-dir", folder, cwd=project)
    assert "would be ignored" not in printed
    (built,) = folder.glob("*.whl")
    return built


def package_files() -> set[str]:
    """Every file of the package, as a distribution should have it."""
    files = (path for path in PACKAGE.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {str(path.relative_to(PROJECT)) for path in files}


def test_the_wheel_has_the_package_and_nothing_else(wheel: Path) -> None:
    assert wheel.name == f"headwater-{hw.__version__}-py3-none-any.whl"
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
        metadata = archive.read(f"headwater-{hw.__version__}.dist-info/METADATA").decode()
    assert names == package_files()
    assert {"headwater/py.typed", "headwater/demo/city.ttl", "headwater/demo/queries/entering-cars.rq"} <= names
    for extra in ("connectors", "notebook", "server", "all", "docs", "dev"):
        assert f"Provides-Extra: {extra}\n" in metadata
    assert "Classifier: Typing :: Typed\n" in metadata


def test_the_source_distribution_can_be_built_from_and_has_no_tests(project: Path, folder: Path) -> None:
    run_python("-c", BUILD_SDIST, folder, cwd=project)
    with tarfile.open(folder / f"headwater-{hw.__version__}.tar.gz") as archive:
        names = {member.name.partition("/")[2] for member in archive.getmembers() if member.isfile()}
    linked = re.findall(r"\]\(([^):#]+)\)", (PROJECT / "README.md").read_text("utf-8"))
    assert package_files() | {"pyproject.toml", *DOCUMENTS, *linked} <= names
    assert not [name for name in names if name.startswith("tests/")]


def obey_permissions() -> None:
    """From the next program on, root is bound by the permissions of files like everybody."""
    ctypes.CDLL(None).prctl(DROP_CAPABILITY, WRITING_AGAINST_PERMISSIONS, 0, 0, 0)


@dataclass(frozen=True)
class Installation:
    """A virtual environment with the wheel that its user may not change, a home and an empty folder to work in."""

    bin: Path
    home: Path
    work: Path

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """A command of the environment, without Java."""
        environment = {"PATH": str(self.bin), "HOME": str(self.home), "LANG": "C.UTF-8"}
        command = [str(self.bin / arguments[0]), *arguments[1:]]
        return subprocess.run(
            command, cwd=self.work, env=environment, capture_output=True, text=True, preexec_fn=obey_permissions
        )


@pytest.fixture(scope="module")
def installation(wheel: Path, folder: Path) -> Installation:
    place = folder / "venv"
    venv.create(place, with_pip=False, symlinks=True)
    python = place / "bin" / "python"
    options = ("--no-deps", "--no-index", "--no-compile", "--quiet", "--disable-pip-version-check")
    run_python("-m", "pip", "--python", python, "install", *options, wheel, cwd=folder)
    (packages,) = place.glob("lib/python*/site-packages")
    # A folder that a .pth file names is not looked at for further .pth files: the project itself is not seen.
    (packages / "others.pth").write_text(sysconfig.get_path("purelib") + "\n")
    made = Installation(place / "bin", folder / "home", folder / "work")
    made.home.mkdir()
    made.work.mkdir()
    for path in (packages, *packages.rglob("*")):
        if path.is_dir():
            path.chmod(0o555)
    if made.run("python", "-c", f"open({str(packages / 'new')!r}, 'w')").returncode == 0:
        pytest.skip("this user may write to folders that are read-only, and may not give that up")
    (made.work / "gates.json").write_text(ROWS)
    (made.work / "gates.template").write_text(TEMPLATE)
    (made.work / "count.rq").write_text(QUERY)
    return made


STREAM = ("--stream", "gates=gates.json", "--template", "gates=gates.template", "--format", "csv")


def test_the_command_is_that_of_the_wheel(installation: Installation) -> None:
    run = installation.run("headwater", "--version")
    assert (run.returncode, run.stdout) == (0, f"headwater {hw.__version__}\n"), run.stderr
    where = installation.run("python", "-c", "import headwater; print(headwater.__file__)").stdout
    assert where.startswith(str(installation.bin.parent))


def test_a_query_is_checked(installation: Installation) -> None:
    run = installation.run("headwater", "check", "count.rq")
    assert run.returncode == 0, run.stderr
    assert run.stdout.startswith("ok: count.rq: C-SPARQL SELECT")


def test_in_process_runs_without_java_and_keeps_compiled_code_in_the_home(installation: Installation) -> None:
    run = installation.run("headwater", "run", "count.rq", "--in-process", *STREAM)
    assert run.returncode == 0, run.stderr
    assert run.stdout.splitlines()[-1] == "2026-03-02T07:01:40Z,http://city/g1,1"
    kept = list((installation.home / ".cache" / "headwater").rglob("*.nbc"))
    assert kept, "compiled code is kept where the user may write"
    assert not list(installation.bin.parent.rglob("*.nbc"))


def test_spark_without_java_says_what_is_needed(installation: Installation) -> None:
    run = installation.run("headwater", "run", "count.rq", *STREAM)
    assert run.returncode == 1
    assert "Spark needs Java 17 or newer; found none" in run.stderr
    assert "--in-process" in run.stderr
    assert "Traceback" not in run.stderr
