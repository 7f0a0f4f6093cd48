"""The newest dead letters of a stream, from the folder in which the run writes them."""

from __future__ import annotations

import json
from pathlib import Path

from headwater.server.page.page_access import PageDeadLetter

_SHOWN_LETTERS = 50
_READ_FILES = 20
"""How many of the newest files are looked through."""


def read_dead_letters(folder: Path, stream: str, most: int = _SHOWN_LETTERS) -> tuple[PageDeadLetter, ...]:
    """At most so many dead letters of a stream, the newest first."""
    found: list[PageDeadLetter] = []
    for file in sorted(folder.glob("*.jsonl"), reverse=True)[:_READ_FILES]:
        for line in reversed(file.read_text("utf-8", errors="replace").splitlines()):
            letter = json.loads(line)
            if letter["stream"] == stream:
                found.append(
                    PageDeadLetter(
                        letter["kind"],
                        letter["reason"],
                        letter["text"] or "",
                        Path(letter["source"]).name,
                        letter["line"],
                        letter["time"] or "",
                    )
                )
                if len(found) == most:
                    return tuple(found)
    return tuple(found)
