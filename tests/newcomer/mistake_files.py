"""Files of mistakes: each mistake is a small project of files, a command, and the words that a person must be told.

    # A title
    [file query.rq]                     a file of the project; what stands in the part `# For all` is in each of them
    SELECT …
    [headwater run query.rq]            the command, in the folder of the project
    exit 0                              its exit code
    says some words                     words of its output, wherever lines are broken
    never other words                   words that it must not say

Instead of a command, `[python]` has lines of Python that must raise a `HeadwaterError`, and `says` its words; there
`hw` is Headwater. Lines that begin with `#` and a blank begin the next mistake.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, field
from pathlib import Path

FOLDER = Path(__file__).parent
_SECTION = re.compile(r"\[(file|headwater|python)\b ?(.*)\]")


@dataclass
class Mistake:
    """One mistake."""

    title: str
    files: dict[str, str] = field(default_factory=dict)
    command: list[str] = field(default_factory=list)
    python: str = ""
    exit: int = 0
    says: list[str] = field(default_factory=list)
    never: list[str] = field(default_factory=list)


def read_mistakes() -> list[Mistake]:
    """All mistakes of all files."""
    return [mistake for path in sorted(FOLDER.glob("*.txt")) for mistake in _read_file(path)]


def _read_file(path: Path) -> list[Mistake]:
    common, *mistakes = re.split(r"^# ", path.read_text("utf-8"), flags=re.MULTILINE)[1:]
    shared = _read_mistake(common).files
    found = [_read_mistake(text) for text in mistakes]
    for mistake in found:
        mistake.files = shared | mistake.files
    return found


def _read_mistake(text: str) -> Mistake:
    title, _, body = text.partition("\n")
    mistake = Mistake(title.strip())
    section, name = "", ""
    for line in body.splitlines():
        if match := _SECTION.fullmatch(line):
            section, name = match.groups()
            if section == "headwater":
                mistake.command = shlex.split(name)
            elif section == "file":
                mistake.files[name] = ""
        elif section == "file":
            mistake.files[name] += line.replace("→", "\t") + "\n"
        elif words := re.fullmatch(r"(exit|says|never) (.+)", line):
            _add_expectation(mistake, *words.groups())
        elif section == "python":
            mistake.python += line + "\n"
        elif line.strip():
            raise ValueError(f"{mistake.title}: what does {line!r} mean?")
    return mistake


def _add_expectation(mistake: Mistake, kind: str, words: str) -> None:
    if kind == "exit":
        mistake.exit = int(words)
    else:
        (mistake.says if kind == "says" else mistake.never).append(words)
