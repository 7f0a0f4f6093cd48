"""Limits on what comes from outside, and the environment variables that set them.

A limit is read from the environment, because it has to hold in every process that reads input: the driver, the
workers of Spark and the command line.

| variable | default | what is refused beyond it |
|---|---|---|
| `HEADWATER_DEEPEST_NESTING` | 64 | brackets, or triple terms, within each other, in data and queries |
| `HEADWATER_LARGEST_DOCUMENT` | 256 MB | a document that is fetched from the web, unpacked |
"""

from __future__ import annotations

import os

from headwater.errors import SettingError

NESTING_VARIABLE = "HEADWATER_DEEPEST_NESTING"
DOCUMENT_VARIABLE = "HEADWATER_LARGEST_DOCUMENT"
_HIGHEST_NESTING = 512
"""The parsers descend once for each bracket. Beyond this the stack of a thread could end."""
LARGEST_TERM = 16_000_000
"""Bytes of one literal or IRI, and of a line: the parsers take no more than about that."""


def deepest_nesting() -> int:
    """How many brackets within brackets, and triple terms within triple terms, may stand in data and in queries."""
    return _read_limit(NESTING_VARIABLE, 64, _HIGHEST_NESTING)


def largest_document() -> int:
    """How many bytes a document from the web may have."""
    return _read_limit(DOCUMENT_VARIABLE, 256 << 20, 1 << 40)


def _read_limit(variable: str, default: int, highest: int) -> int:
    given = os.environ.get(variable)
    if not given:
        return default
    if not (given.isascii() and given.isdigit() and len(given) < 18 and 1 <= int(given) <= highest):
        raise SettingError(f"{variable}={given!r} is no limit: give a whole number from 1 to {highest:,}")
    return int(given)
