"""Writes requirements/*.txt: exact versions with the SHA-256 of every file that the supported platforms would install.

    .venv/bin/python scripts/pin_requirements.py            # asks the package index that pip is set up with
    .venv/bin/python scripts/pin_requirements.py --check    # without a network: are the versions right?

The versions are those of constraints.txt. pip itself says which files it would install on each platform, and what their
checksums are; neither an index nor its host is written down, so the files can be used with any of them:

    pip install --require-hashes -r requirements/runtime.txt
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).resolve().parent.parent
FOLDER = PROJECT / "requirements"
PYTHONS = ("3.11", "3.12", "3.13")
MACHINES = ("x86_64", "aarch64")
GLIBC = ("2_34", "2_31", "2_28", "2_27", "2_26", "2_24", "2_17")
LISTS = {"runtime": ["setuptools", ".[all]"], "release-tools": ["pip-licenses", "cyclonedx-bom"]}
"""What each file is for: an installation with all extras, and what `make release-check` uses."""
HEAD = "# Written by scripts/pin_requirements.py for Python {pythons} on Linux ({machines}).\n"


def normalise(name: str) -> str:
    """The one spelling of the name of a package."""
    return re.sub(r"[-_.]+", "-", name).lower()


def constraints() -> dict[str, str]:
    """The versions of constraints.txt by package."""
    lines = (PROJECT / "constraints.txt").read_text("utf-8").splitlines()
    return {normalise(name): version for name, version in (line.split("==") for line in lines if "==" in line)}


def pinned(path: Path) -> dict[str, str]:
    """The versions in a file of requirements by package."""
    found = re.findall(r"^([\w.-]+)==(\S+)", path.read_text("utf-8"), re.MULTILINE)
    return {normalise(name): version for name, version in found}


def ask_pip(*arguments: str) -> list[dict[str, Any]]:
    """What pip would install."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed"]
        command += ["--disable-pip-version-check", "--no-input", "--report", str(report), *arguments]
        subprocess.run(command, cwd=PROJECT, check=True)
        found: list[dict[str, Any]] = json.loads(report.read_text("utf-8"))["install"]
        return found


def versions_of(wanted: list[str]) -> dict[str, str]:
    """The packages that some requirements need, with those that they need in turn, at the versions of the project."""
    installs = ask_pip("--constraint", "constraints.txt", "--no-build-isolation", *wanted)
    found = {normalise(one["metadata"]["name"]): one["metadata"]["version"] for one in installs}
    found.pop("headwater", None)
    return dict(sorted(found.items()))


def hashes_of(versions: dict[str, str]) -> dict[str, set[str]]:
    """The checksums of the files that each platform would install."""
    hashes: dict[str, set[str]] = {name: set() for name in versions}
    for python in PYTHONS:
        for machine in MACHINES:
            platforms = [f"--platform=manylinux_{glibc}_{machine}" for glibc in GLIBC]
            platforms += [f"--platform=manylinux2014_{machine}", f"--platform=linux_{machine}"]
            with tempfile.TemporaryDirectory() as target:
                installs = ask_pip(
                    "--no-deps",
                    "--no-build-isolation",
                    f"--python-version={python}",
                    f"--target={target}",
                    *platforms,
                    *(f"{name}=={version}" for name, version in versions.items()),
                )
            for one in installs:
                info = one["download_info"]["archive_info"]
                hashes[normalise(one["metadata"]["name"])].add(info["hashes"]["sha256"])
    return hashes


def write(name: str) -> None:
    """Write the file of one list."""
    versions = versions_of(LISTS[name])
    hashes = hashes_of(versions)
    lines = [HEAD.format(pythons=", ".join(PYTHONS), machines=", ".join(MACHINES))]
    for package, version in versions.items():
        every = "".join(f" \\\n    --hash=sha256:{one}" for one in sorted(hashes[package]))
        lines.append(f"{package}=={version}{every}\n")
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / f"{name}.txt").write_text("".join(lines), "utf-8")
    print(f"requirements/{name}.txt: {len(versions)} packages, {sum(map(len, hashes.values()))} files")


def differences() -> list[str]:
    """What the files say otherwise than constraints.txt."""
    wanted = constraints()
    return [
        f"{path.name}: {name} is {version}, and {wanted[name]} in constraints.txt"
        for path in sorted(FOLDER.glob("*.txt"))
        for name, version in pinned(path).items()
        if wanted.get(name, version) != version
    ]


if __name__ == "__main__":
    if sys.argv[1:] == ["--check"]:
        wrong = differences()
        sys.exit("\n".join([*wrong, "run scripts/pin_requirements.py again"]) if wrong else 0)
    for each in LISTS:
        write(each)
