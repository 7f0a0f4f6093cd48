"""Names of modules, files and objects in the documents lead to something."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[2]
PACKAGE = PROJECT / "headwater"
PAGES = sorted((PROJECT / "docs").rglob("*.md")) + [PROJECT / name for name in ("README.md", "CONTRIBUTING.md")]
ROOMS = {path.name for path in PACKAGE.iterdir() if path.is_dir() and path.name != "__pycache__"}
OTHERS = {"headwater", "tests", "benchmarks", "examples", "scripts", "docs"}
BUILT = {"build"}
"""Folders that a command makes; a fresh clone has none of them."""

_PATH = re.compile(r"`([a-z_-]+(?:/[\w*.-]+)+)/?`")
_MODULE = re.compile(r"[a-z_]+(?:/[a-z_]+)+")
_DOTTED = re.compile(r"\b(?:headwater|benchmarks)(?!\.json\b)(?:\.[A-Za-z_]\w*)+")


def paths_in(text: str) -> set[str]:
    """The paths between backticks that begin with a room or a folder of the project, or look as if they did."""
    paths = ((path.split("/")[0], path) for path in _PATH.findall(text))
    return {path for top, path in paths if top in ROOMS | OTHERS or (top not in BUILT and _MODULE.fullmatch(path))}


def path_exists(path: str) -> bool:
    """Whether `room/module`, `room/module.name` or a path of the project is there; a `*` stands for anything."""
    folder = PACKAGE if path.split("/")[0] in ROOMS else PROJECT
    if any(True for form in (path, f"{path}.py") for _ in folder.glob(form)):
        return True
    return folder is PACKAGE and name_exists(f"headwater.{path.replace('/', '.')}")


def name_exists(dotted: str) -> bool:
    """Whether a dotted name is a module, or something that a module holds.

    A module that needs a package which is not installed, such as what benchmarks compare with, exists all the same.
    """
    names = dotted.split(".")
    for length in range(len(names), 0, -1):
        module = ".".join(names[:length])
        try:
            value: object = importlib.import_module(module)
        except ModuleNotFoundError as error:
            if error.name is None or not module.startswith(error.name):
                return length == len(names)
            continue
        for name in names[length:]:
            if not hasattr(value, name):
                return False
            value = getattr(value, name)
        return True
    return False


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(PROJECT)))
def test_every_path_and_dotted_name_exists(page: Path) -> None:
    text = page.read_text("utf-8")
    missing = {path for path in paths_in(text) if not path_exists(path)}
    missing |= {name for name in _DOTTED.findall(text) if not name_exists(name)}
    assert not missing


def test_wrong_names_are_found() -> None:
    text = (
        "`pipeline/feed` `terms/nothing` `terms/model` `language/parser_*` `tests/nothing.py` headwater.terms.nothing"
    )
    assert {path for path in paths_in(text) if not path_exists(path)} == {
        "pipeline/feed",
        "terms/nothing",
        "tests/nothing.py",
    }
    assert [name for name in _DOTTED.findall(text) if not name_exists(name)] == ["headwater.terms.nothing"]
    assert name_exists("headwater.terms.model.Element")
    assert path_exists("terms/model.Element")
    assert not path_exists("terms/model.Nothing")
