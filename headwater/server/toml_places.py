"""Where keys stand in a TOML text, which `tomllib` does not say.

>>> find_place('[server]\\nport = "x"\\n', ("server", "port"))
(2, 8)
>>> find_place('[[streams]]\\nname = "a"\\n[[streams]]\\nname = 7\\n', ("streams", 1, "name"))
(4, 8)
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

_HEAD = re.compile(r"\s*(\[\[?)\s*([^\]]+?)\s*\]\]?\s*(?:#.*)?$")
_KEY = re.compile(r"""\s*((?:"[^"]*"|'[^']*'|[A-Za-z0-9_-]+)(?:\s*\.\s*(?:"[^"]*"|'[^']*'|[A-Za-z0-9_-]+))*)\s*=\s*""")
_PART = re.compile(r""""([^"]*)"|'([^']*)'|([A-Za-z0-9_-]+)""")

Place = tuple[int, int]
Variables = Mapping[tuple[str, ...], str]
KeyPath = tuple[str | int, ...]


def find_place(text: str, path: Sequence[str | int]) -> Place:
    """Line and column, from 1 on, of the value of a key, or of what it stands in where it has no place of its own."""
    places = _list_places(text)
    for length in range(len(path), 0, -1):
        if (found := places.get(tuple(path[:length]))) is not None:
            return found
    return 1, 1


def find_text(text: str, path: Sequence[str | int], value: str) -> Place:
    """Line and column of the first character of a string, at or behind the place of a key; that place without one."""
    line, column = find_place(text, path)
    start = sum(len(one) + 1 for one in text.split("\n")[: line - 1]) + column - 1
    opening = value.partition("\n")[0]
    quoted = [f"{quotes}{opening}" for quotes in ('"""\n', '"""', "'''\n", "'''", '"', "'")]
    places = [(at, -len(one)) for one in quoted if (at := text.find(one, start)) >= 0]
    if not places or not opening:
        return line, column
    at, length = min(places)
    at += -length - len(opening)
    return text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)


@dataclass(frozen=True)
class SettingsPlaces:
    """Where settings stand: in a file with a text, or, those that the environment overrides, in its variables."""

    path: Path | None = None
    text: str = ""
    overridden: Variables = field(default_factory=dict)

    def variable_of(self, place: Sequence[str | int]) -> str | None:
        """The variable that says a setting; None where it stands in the file."""
        for length in range(len(place), 0, -1):
            if (variable := self.overridden.get(tuple(map(str, place[:length])))) is not None:
                return variable
        return None

    def describe(self, place: Sequence[str | int], value: str | None = None, inside: Place = (1, 1)) -> str:
        """The place of a setting, or of a string in it and of a line and column in this string, before a message."""
        if (variable := self.variable_of(place)) is not None:
            return f"{variable}: "
        if self.path is None:
            return ""
        line, column = find_place(self.text, place) if value is None else find_text(self.text, place, value)
        column = column + inside[1] - 1 if inside[0] == 1 else inside[1]
        return f"{self.path}, line {line + inside[0] - 1}, column {column}: "


def _list_places(text: str) -> dict[KeyPath, Place]:
    """The places of the keys and tables that begin a line."""
    places: dict[KeyPath, Place] = {}
    counts: dict[KeyPath, int] = {}
    table: KeyPath = ()
    open_string = ""
    for number, line in enumerate(text.split("\n"), 1):
        if open_string:
            open_string = "" if open_string in line else open_string
            continue
        if head := _HEAD.match(line):
            table = ()
            parts = _parts(head[2])
            for place, part in enumerate(parts):
                table = (*table, part)
                if head[1] == "[[" and place == len(parts) - 1:
                    counts[table] = counts.get(table, -1) + 1
                    table = (*table, counts[table])
                elif table in counts:
                    table = (*table, counts[table])
                places.setdefault(table, (number, line.index("[") + 1))
        elif key := _KEY.match(line):
            places.setdefault((*table, *_parts(key[1])), (number, key.end() + 1))
            for quotes in ('"""', "'''"):
                if line.count(quotes) == 1:
                    open_string = quotes
    return places


def _parts(key: str) -> list[str]:
    return [one[0] or one[1] or one[2] for one in _PART.findall(key)]
