"""Holds the shape of the project: which room may import which, how large rooms and files are, how small the surface is.

Each room may import those before it in `ORDER`, never those after it, and inside some rooms the same holds for
`INNER_ORDERS`. The public surface, `headwater/__init__.py`, may import everything before it; only what stands after it
may import it. docs/architecture.md shows the same order.
"""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parent.parent
PACKAGE = PROJECT / "headwater"
SURFACE = "headwater/__init__.py"

ORDER = (
    "errors",
    "terms",
    "language",
    "algebra",
    "optimizer",
    "windows",
    "explain",
    "linting",
    "values",
    "execution",
    "reference",
    "kernel",
    "egress",
    "datasets",
    "federation",
    "sources",
    "sinks",
    "sharding",
    "running",
    "spark",
    "engine",
    "client",
    "server",
    SURFACE,
    "demo",
    "conformance",
    "commands",
    "cli",
    "__main__",
)
WITHOUT_SPARK = ORDER[: ORDER.index("datasets")]
INNER_ORDERS = {
    "kernel": ("columns", "expressions", "joins", "operators", "aggregation", "compiling", "", "families", "sharing"),
    "federation": ("endpoint", "view", "policy", ""),
}
"""The folders of a room in the order in which they may import each other; the empty name is the room itself."""
MOST_FILES = 25
REFERENCE_USERS = {
    "headwater.kernel.compiling.static_parts",
    "headwater.kernel.families.family_static_parts",
    "headwater.kernel.evaluator_choice",
    "headwater.running.named_evaluators",
    "headwater.running.tick_explaining",
    "headwater.server.protocol.plain_queries",
}
"""Who imports the definition: the choice of evaluators, the kernel for the static parts of a plan, what explains
answers by it, and plain queries over HTTP, which it evaluates."""
SAME_NAMES = {"__init__", "errors", "model"}
ARCHITECTURE = PROJECT / "docs" / "architecture.md"
FOLDERS = ("headwater", "tests", "benchmarks", "examples")
LONGEST_FILE = 600


INTERNAL_ERRORS = {
    *("UnsupportedByKernel", "UnsupportedPlan", "RowError", "UnknownTerm", "NotResults", "WrongInput"),
    *("RunStopped", "QueryDropped", "FamilyFailed"),
    *("StreamBusy", "KeyReused", "UnknownName", "NotAllowedHere", "TooMany", "NotKept"),
    *("Problem", "EngineDown", "CallError", "ClientGone"),
}
"""Exceptions that never reach a user: they are caught inside, become bad elements or replies of the server, or are
those of the command line."""


def public_errors() -> Iterator[tuple[str, Path]]:
    """The exception classes of the package whose names are public."""
    parents: dict[str, tuple[set[str], Path]] = {}
    for _, path in modules():
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, ast.ClassDef):
                parents[node.name] = {base.id for base in node.bases if isinstance(base, ast.Name)}, path
    builtin = {"Exception", "ValueError", "RuntimeError", "OSError", "KeyError"}
    found: set[str] = set()
    while more := {name for name, (bases, _) in parents.items() if bases & (found | builtin)} - found:
        found |= more
    yield from ((name, parents[name][1]) for name in found if not name.startswith("_"))


def imported_modules(source: str, module: str, is_package: bool = False) -> Iterator[str]:
    """The dotted names that a module's import statements mention, wherever in the module they stand.

    `from a import b` counts as `a.b`, because `b` may be a module; relative imports are made absolute.
    """
    here = module.split(".") if is_package else module.split(".")[:-1]
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = here[: len(here) - node.level + 1] if node.level else []
            start = ".".join([*base, *([node.module] if node.module else [])])
            yield from (f"{start}.{alias.name}" for alias in node.names)


def part_of(dotted: str) -> str | None:
    """The entry of `ORDER` that a dotted name belongs to; `None` outside the project."""
    first, *rest = dotted.split(".")
    if first != "headwater":
        return None
    known = rest and (rest[0] in ORDER or (PACKAGE / rest[0]).is_dir() or (PACKAGE / f"{rest[0]}.py").is_file())
    return rest[0] if known else SURFACE


def violations(source: str, module: str, is_package: bool = False) -> list[str]:
    """What a module imports although it stands after it in `ORDER`, or stands nowhere in it."""
    own = module.split(".")[1]
    if own not in ORDER:
        return [f"{module}: give {own} its place in ORDER"]
    found = []
    for name in imported_modules(source, module, is_package):
        part = part_of(name)
        if part is None or part == own:
            continue
        if part not in ORDER or ORDER.index(part) > ORDER.index(own):
            found.append(f"{module} imports {name}, but {own} stands before {part}")
    return found


def modules() -> list[tuple[str, Path]]:
    """Every module of the package with its dotted name, the public surface left out."""
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PROJECT).with_suffix("").parts
        dotted = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        if dotted != "headwater":
            found.append((dotted, path))
    return found


def test_each_part_imports_only_those_before_it() -> None:
    found = [
        violation
        for module, path in modules()
        for violation in violations(path.read_text("utf-8"), module, path.name == "__init__.py")
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("module", "statement"),
    [
        ("headwater.terms.model", "from headwater.language import parse"),
        ("headwater.terms.model", "import headwater.cli"),
        ("headwater.terms.model", "from headwater import spark"),
        ("headwater.windows.ticks", "from ..reference.reference_evaluator import evaluate"),
        ("headwater.windows.ticks", "def later():\n    from headwater.spark import session"),
        ("headwater.spark.session", "import headwater as hw"),
        ("headwater.spark.session", "from headwater import Engine"),
        ("headwater.unplaced.module", "import os"),
    ],
)
def test_an_import_against_the_order_is_found(module: str, statement: str) -> None:
    assert len(violations(statement, module)) == 1


@pytest.mark.parametrize(
    ("module", "statement"),
    [
        ("headwater.spark.session", "from headwater.terms import Term\nimport pyspark"),
        ("headwater.windows.ticks", "from .definitions import Window\nfrom ..terms import model"),
        ("headwater.windows.ticks", "from . import definitions"),
        ("headwater.cli", "import headwater as hw\nfrom headwater import Engine"),
    ],
)
def test_an_import_along_the_order_is_fine(module: str, statement: str) -> None:
    assert violations(statement, module) == []


def test_a_package_resolves_its_relative_imports_from_itself() -> None:
    assert list(imported_modules("from .model import Term", "headwater.terms", is_package=True)) == [
        "headwater.terms.model.Term"
    ]


def test_the_parts_above_the_data_run_without_spark() -> None:
    found = [
        f"{module} imports {name}"
        for module, path in modules()
        if module.split(".")[1] in WITHOUT_SPARK
        for name in imported_modules(path.read_text("utf-8"), module, path.name == "__init__.py")
        if name.split(".")[0] in ("pyspark", "py4j")
    ]
    assert not found, "\n".join(found)


def test_no_file_is_longer_than_a_reader_can_hold() -> None:
    lengths = {
        path.relative_to(PROJECT): len(path.read_text("utf-8").splitlines())
        for folder in FOLDERS
        for path in (PROJECT / folder).rglob("*.py")
    }
    too_long = {path: length for path, length in lengths.items() if length > LONGEST_FILE}
    assert lengths
    assert not too_long


def test_the_public_surface_is_small_and_declared() -> None:
    """In a process of its own, because other tests' imports hang their modules into the package."""
    script = (
        "import json, types, __future__, headwater as hw\n"
        "hidden = (types.ModuleType, __future__._Feature)\n"
        "names = [n for n in dir(hw) if not n.startswith('_') and not isinstance(getattr(hw, n), hidden)]\n"
        "missing = [n for n in hw.__all__ if not hasattr(hw, n)]\n"
        "types = {n: getattr(hw, n) for n in hw.__all__ if isinstance(getattr(hw, n), type)}\n"
        "errors = [n for n, one in types.items() if issubclass(one, BaseException)]\n"
        "strange = [n for n in errors if not issubclass(types[n], hw.HeadwaterError)]\n"
        "print(json.dumps([names, list(hw.__all__), missing, strange, errors]))\n"
    )
    run = subprocess.run([sys.executable, "-c", script], cwd=PROJECT, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    shown, declared, missing, strange, exported = json.loads(run.stdout)
    errors = set(exported)
    assert not missing
    assert not strange, "an error has another root"
    assert set(shown) <= set(declared), "a public name is not in __all__"
    assert len([name for name in declared if not name.startswith("_") and name not in errors]) <= 25
    assert {name for name, _ in public_errors()} - INTERNAL_ERRORS == errors, "every error is exported"


def test_the_definition_is_imported_only_where_an_evaluator_is_chosen() -> None:
    users = {
        module
        for module, path in modules()
        for name in imported_modules(path.read_text("utf-8"), module, path.name == "__init__.py")
        if part_of(name) == "reference" and module.split(".")[1] != "reference"
    }
    assert users == REFERENCE_USERS


@pytest.mark.parametrize("room", INNER_ORDERS)
def test_the_folders_of_a_room_import_only_those_before_them(room: str) -> None:
    order = INNER_ORDERS[room]

    def folder_of(dotted: str) -> str:
        inner = dotted.split(".")[2:3]
        return inner[0] if inner and inner[0] in order else ""

    against = [
        f"{module} imports {name}"
        for module, path in modules()
        if module.split(".")[1] == room
        for name in imported_modules(path.read_text("utf-8"), module, path.name == "__init__.py")
        if part_of(name) == room and order.index(folder_of(name)) > order.index(folder_of(module))
    ]
    assert not against, "\n".join(against)


def test_no_room_has_more_files_than_a_reader_can_survey() -> None:
    sizes = {folder: len(list(folder.glob("*.py"))) for folder in PACKAGE.rglob("*") if folder.is_dir()}
    assert not {folder.name: size for folder, size in sizes.items() if size > MOST_FILES}


def test_modules_and_public_classes_have_names_of_their_own() -> None:
    stems = Counter(path.stem for _, path in modules())
    assert not {stem for stem, times in stems.items() if times > 1 and stem not in SAME_NAMES}
    classes = Counter(
        node.name
        for _, path in modules()
        for node in ast.parse(path.read_text("utf-8")).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert not {name for name, times in classes.items() if times > 1}


def test_the_order_has_what_exists_and_nothing_else() -> None:
    rooms = {path.name for path in PACKAGE.iterdir() if path.is_dir() and path.name != "__pycache__"}
    names = rooms | {path.stem for path in PACKAGE.glob("*.py") if path.name != "__init__.py"}
    assert {*ORDER} - {SURFACE} == names
    assert len(set(ORDER)) == len(ORDER)


def test_the_table_of_the_rooms_shows_the_order() -> None:
    shown = re.findall(r"^\| `(\w+)` \|", ARCHITECTURE.read_text("utf-8"), re.MULTILINE)
    assert shown == [room for room in ORDER if (PACKAGE / room).is_dir()]
