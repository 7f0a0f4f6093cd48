"""Checks of arguments: each gives the value as it is used, or raises a `SettingError` that names the argument.

A wrong argument is refused where it is given, not where it is first used, which may be in the middle of a run.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from numbers import Integral, Real
from pathlib import Path
from typing import Any

from headwater.errors import SettingError
from headwater.terms.durable_files import create_folder
from headwater.terms.durations import parse_duration
from headwater.terms.model import Element, Quad, Triple
from headwater.terms.statements import graph_term
from headwater.terms.timestamps import parse_time


def check_type(name: str, value: Any, kind: type | tuple[type, ...], wanted: str) -> Any:
    """The value, if it is of a type; `wanted` says in words what it must be. No truth value is a number."""
    if not isinstance(value, kind) or (isinstance(value, bool) and kind in (Integral, Real)):
        raise SettingError(f"{name} must be {wanted}, and it is {value!r}")
    return value


def check_text(name: str, value: Any) -> str:
    """A text."""
    return str(check_type(name, value, str, "a text"))


def check_flag(name: str, value: Any) -> bool:
    """True or False."""
    return bool(check_type(name, value, bool, "True or False"))


def check_callback(name: str, value: Any) -> None:
    """A function, or None."""
    if value is not None and not callable(value):
        raise SettingError(f"{name} must be a function, and it is {value!r}")


def check_whole(name: str, value: Any, least: int | None = 0, unit: str = "") -> int:
    """A whole number that is not less than `least`."""
    number = int(check_type(name, value, Integral, f"a whole number{unit}"))
    if least is not None and number < least:
        raise SettingError(f"{name} must be at least {least}, and it is {value}")
    return number


def check_number(name: str, value: Any, *, can_be_zero: bool = True) -> float:
    """A number that is not negative."""
    if not check_type(name, value, Real, "a number") >= 0 or (value == 0 and not can_be_zero):
        raise SettingError(f"{name} must {'not be negative' if can_be_zero else 'be above zero'}, and it is {value}")
    return float(value)


def check_duration(name: str, value: Any) -> int:
    """A duration in microseconds, given so or as a text."""
    unit = " of microseconds, or a duration such as '5s'"
    return parse_duration(value) if isinstance(value, str) else check_whole(name, value, unit=unit)


def check_idle(name: str, value: Any) -> int | None:
    """An idle time in microseconds; None where it is `"off"`."""
    return None if value == "off" else check_duration(name, value)


def check_time(name: str, value: Any) -> int:
    """An instant in microseconds since 1970, given so or as a text."""
    unit = " of microseconds since 1970, or a time such as '2014-08-01T07:50:00Z'"
    return parse_time(value) if isinstance(value, str) else check_whole(name, value, None, unit)


def check_path(name: str, value: Any) -> Path:
    """A path that is not empty."""
    if not check_type(name, value, (str, os.PathLike), "a path"):
        raise SettingError(f"{name} must be a path, and it is empty")
    return Path(value)


def check_folder(name: str, path: Any) -> Path:
    """The absolute path of a folder, which need not be there yet."""
    folder = check_path(name, path).absolute()
    if folder.exists() and not folder.is_dir():
        raise SettingError(f"{name}: {folder} is a file: name a folder, or a path where one can be made")
    return folder


def make_folder(name: str, folder: Path) -> None:
    """Make a folder with all those above it."""
    try:
        create_folder(folder)
    except OSError as error:
        reason = f"{folder} cannot be the folder of {name} ({error.strerror})"
        raise SettingError(f"{reason}: name a folder, or a path where one can be made") from None


def check_each(name: str, values: Any, is_right: Callable[[Any], bool], wanted: str) -> list[Any]:
    """The items of an iterable, each of which must be right."""
    listed = list(check_type(name, values, Iterable, f"an iterable of {wanted}"))
    for index, one in enumerate(listed):
        if not is_right(one):
            raise SettingError(f"{name} must be {wanted}, and at index {index} it has {one!r}")
    return listed


def check_statements(name: str, statements: Any) -> list[Quad | Triple]:
    """Quads and triples."""
    return check_each(name, statements, lambda one: isinstance(one, Quad | Triple), "quads and triples of pyoxigraph")


def check_elements(name: str, elements: Any) -> list[Element]:
    """Elements, also as pairs of a time and triples."""

    def is_pair(one: Any) -> bool:
        return isinstance(one, tuple | list) and len(one) == 2 and isinstance(one[1], Iterable)

    wanted = "elements, or pairs of a time in microseconds and triples of pyoxigraph"
    pairs = check_each(name, elements, lambda one: isinstance(one, Element) or is_pair(one), wanted)
    listed = [one if isinstance(one, Element) else Element(one[0], tuple(one[1])) for one in pairs]
    for one in listed:
        if not isinstance(one.time, int) or not all(isinstance(triple, Triple) for triple in one.triples):
            raise SettingError(f"{name} must be {wanted}, and it has {one!r}")
        if one.graph is not None and not _is_graph_name(one.graph):
            raise SettingError(
                f"{name}: the graph name of an element must be the text of an IRI, or _:label, and it is {one.graph!r}"
            )
    return listed


def _is_graph_name(name: Any) -> bool:
    try:
        return isinstance(name, str) and bool(graph_term(name))
    except ValueError:
        return False


def parse_number(name: str, text: str, kind: type[float]) -> float:
    """A number from its text."""
    try:
        return kind(text)
    except ValueError:
        wanted = "a whole number" if kind is int else "a number"
        raise SettingError(f"{name} must be {wanted}, and it is {text!r}") from None
