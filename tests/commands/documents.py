"""The commands and programs that documents show, with the output that they promise.

A block marked `console` holds a command behind `$` (lines that end in a backslash go on) and what it writes to stdout.
A block marked `python` may be followed by one marked `text` with what it prints. Called as a program with the paths of
documents, this writes the true output into their `console` and `text` blocks.
"""

from __future__ import annotations

import contextlib
import io
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tests.commands.running import PROJECT, environment

_CONSOLE = re.compile(r"^```console\n\$ (?P<command>(?:.*\\\n)*.*\n)(?P<output>(?:(?!```).*\n)*)```$", re.MULTILINE)
_PROGRAM = re.compile(
    r"^```python\n(?P<command>(?:(?!```).*\n)*)```\n\n```text\n(?P<output>(?:(?!```).*\n)*)```$", re.MULTILINE
)


@dataclass(frozen=True)
class Shown:
    """Something that can be run, and the output that a document shows for it."""

    command: str
    output: str
    is_program: bool = False

    def run(self) -> str:
        """The true output, from the root of the project."""
        return _program_output(self.command) if self.is_program else _command_output(self.command)


def shown_in(document: Path) -> list[Shown]:
    """All that a document shows."""
    text = document.read_text("utf-8")
    found = [Shown(match["command"], match["output"]) for match in _CONSOLE.finditer(text)]
    return found + [Shown(match["command"], match["output"], True) for match in _PROGRAM.finditer(text)]


def _command_output(command: str) -> str:
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "headwater"
        script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m headwater.cli "$@"\n')
        script.chmod(0o755)
        path = f"{folder}:{environment()['PATH']}"
        run = subprocess.run(
            ["sh", "-c", command], cwd=PROJECT, env=environment(PATH=path), capture_output=True, text=True
        )
    assert run.returncode == 0, run.stderr
    return run.stdout.replace("\r\n", "\n")


def _program_output(program: str) -> str:
    output = io.StringIO()
    with contextlib.chdir(PROJECT), contextlib.redirect_stdout(output):
        exec(compile(program, "document", "exec"), {})
    return output.getvalue()


def renewed(text: str) -> str:
    """A document with the true output in its blocks."""

    def console(match: re.Match[str]) -> str:
        return f"```console\n$ {match['command']}{_command_output(match['command'])}```"

    def program(match: re.Match[str]) -> str:
        return f"```python\n{match['command']}```\n\n```text\n{_program_output(match['command'])}```"

    return _PROGRAM.sub(program, _CONSOLE.sub(console, text))


if __name__ == "__main__":
    for name in sys.argv[1:]:
        Path(name).write_text(renewed(Path(name).read_text("utf-8")), "utf-8")
