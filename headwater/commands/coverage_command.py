"""`headwater explain --coverage DIR`: for each query of a folder who evaluates it, and the share of the kernel."""

from __future__ import annotations

import json
from pathlib import Path
from string import Template

from pyoxigraph import Store

from headwater.commands.ending import WrongInput
from headwater.commands.query_files import QueryFile
from headwater.kernel.evaluator_choice import choose_kernel_or_reference
from headwater.language.stream_clauses import Dialect
from headwater.windows.settings import resolve_settings

SUFFIXES = (".rq", ".sparql")


def coverage(folder: Path, dialect: Dialect | None) -> None:
    """Prints a line for each query file below a folder, then how many the kernel evaluates."""
    paths = sorted(path for path in folder.rglob("*") if path.suffix in SUFFIXES and path.is_file())
    if not paths:
        raise WrongInput(f"{folder}: no query files; their names end with {' or '.join(SUFFIXES)}")
    shown = [str(path.relative_to(folder)) for path in paths]
    width = max(map(len, shown))
    kernel = queries = 0
    for path, name in zip(paths, shown, strict=True):
        try:
            plan = _read(path).plan(dialect)
        except WrongInput as error:
            problem = str(error).splitlines()[0].removeprefix(f"{path}: ")
            print(f"{name:<{width}}  no query: {problem}")
            continue
        queries += 1
        choice = choose_kernel_or_reference(plan, resolve_settings(plan), Store())
        kernel += choice.is_kernel
        print(f"{name:<{width}}  {'kernel' if choice.is_kernel else f'reference, because of {choice.reason}'}")
    share = f" ({100 * kernel / queries:.1f} %)" if queries else ""
    others = len(paths) - queries
    left_out = f"; {others} {'file is' if others == 1 else 'files are'} no query" if others else ""
    print(f"\n{kernel} of {queries} queries are evaluated by the kernel{share}{left_out}")


def _read(path: Path) -> QueryFile:
    """The file; `${name}` in it stands for what a JSON file beside it says in its `vars`, as in CSRBench."""
    file = QueryFile.read(str(path))
    values = path.with_suffix(".json")
    if "${" not in file.text or not values.is_file():
        return file
    try:
        given = json.loads(values.read_text("utf-8"))["vars"]
        return QueryFile(file.shown, file.name, Template(file.text).safe_substitute(given))
    except (ValueError, KeyError, TypeError):
        raise WrongInput(f'{path}: its placeholders need values, but {values.name} has no {{"vars": …}}') from None
