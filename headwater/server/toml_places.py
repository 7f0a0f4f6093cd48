"""Where keys stand in a TOML text, which `tomllib` does not say.

>>> find_place('[server]\\nport = "x"\\n', ("server", "port"))
(2, 8)
>>> find_place('[[streams]]\\nname = "a"\\n[[streams]]\\nname = 7\\n', ("streams", 1, "name"))
(4, 8)
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_HEAD = re.compile(r"\s*(\[\[?)\s*([^\]]+?)\s*\]\]?\s*(?:#.*)?$")
_KEY = re.compile(r"""\s*((?:"[^"]*"|'[^']*'|[A-Za-z0-9_-]+)(?:\s*\.\s*(?:"[^"]*"|'[^']*'|[A-Za-z0-9_-]+))*)\s*=\s*""")
_PART = re.compile(r""""([^"]*)"|'([^']*)'|([A-Za-z0-9_-]+)""")

Place = tuple[int, int]
KeyPath = tuple[str | int, ...]


def find_place(text: str, path: Sequence[str | int]) -> Place:
    """Line and column, from 1 on, of the value of a key, or of what it stands in where it has no place of its own."""
    places = _list_places(text)
    for length in range(len(path), 0, -1):
        if (found := places.get(tuple(path[:length]))) is not None:
            return found
    return 1, 1


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
