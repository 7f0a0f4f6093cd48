"""The commands and programs that documents show, with the output that they promise.

A document is a sequence of fenced blocks, which are used in their order:

- a block with a `title` is a file of that name in the folder in which the blocks run; `examples` is there, too;
- `console` holds a command behind `$` (lines that end in a backslash go on) and what it writes;
- `python` is run, in one namespace for the whole document; a `text` block right behind it has what it prints;
- `sparql` is parsed as a continuous query.

`<!-- not executed: reason -->` before a block leaves the block alone. Called
as a program with the paths of documents, this writes the true output into their `console` and `text` blocks.
"""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headwater.language.parser import parse
from tests.commands.running import PROJECT, environment, headwater

_BLOCK = re.compile(
    r"^(?P<mark><!-- not executed: (?P<reason>.+) -->\n\n?)?"
    r"```(?P<language>\w+)(?: title=\"(?P<title>[^\"]+)\")?\n(?P<body>(?:(?!```).*\n)*)```$"
    r"(?:\n\n```text\n(?P<printed>(?:(?!```).*\n)*)```$)?",
    re.MULTILINE,
)
_SHELL = re.compile(r"^(?!headwater )|[$|;&<>*]")
"""Commands that need a shell. Others run in this process, which has loaded the compiled code already."""
_COMMAND = re.compile(r"\$ (?P<command>(?:.*\\\n)*.*\n)(?P<output>(?:.*\n)*)")


@dataclass(frozen=True)
class Block:
    """A fenced block: what it holds, and what the `text` block behind it shows."""

    language: str
    body: str
    printed: str | None = None
    title: str | None = None
    reason: str | None = None
    """Why it is not executed."""

    @property
    def is_executed(self) -> bool:
        return self.reason is None and self.title is None and self.language in ("console", "python")

    @property
    def output(self) -> str:
        """The output that the document shows."""
        if self.language == "console":
            return _console(self.body)["output"]
        return self.printed or ""


def blocks_of(document: Path) -> list[Block]:
    """The blocks of a document, in their order."""
    return [_block(match) for match in _BLOCK.finditer(document.read_text("utf-8"))]


def _block(match: re.Match[str]) -> Block:
    return Block(match["language"], match["body"], match["printed"], match["title"], match["reason"])


def _console(body: str) -> re.Match[str]:
    match = _COMMAND.fullmatch(body)
    assert match, f"a console block begins with $: {body}"
    return match


class Folder:
    """The folder in which the blocks of one document are used, one after the other."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._names: dict[str, Any] = {"__name__": "document"}
        (path / "examples").symlink_to(PROJECT / "examples")

    def use(self, block: Block) -> str:
        """Write, parse or run a block; what it prints."""
        if block.reason is not None:
            return block.output
        if block.title is not None:
            (self._path / block.title).parent.mkdir(parents=True, exist_ok=True)
            (self._path / block.title).write_text(block.body, "utf-8")
        if block.language == "sparql":
            parse(block.body)
        if block.title is not None:
            return ""
        if block.language == "console":
            return self._command_output(_console(block.body)["command"])
        return self._program_output(block.body) if block.language == "python" else ""

    def _command_output(self, command: str) -> str:
        line = command.replace("\\\n", "").strip()
        if not _SHELL.search(line):
            with contextlib.chdir(self._path):
                result = headwater(*shlex.split(line)[1:])
            assert result.exit_code == 0, result.stderr
            return result.stdout
        with tempfile.TemporaryDirectory() as folder:
            for name, module in (("headwater", "-m headwater "), ("python", "")):
                script = Path(folder) / name
                script.write_text(f'#!/bin/sh\nexec "{sys.executable}" {module}"$@"\n')
                script.chmod(0o755)
            path = f"{folder}:{environment()['PATH']}"
            run = subprocess.run(
                ["sh", "-c", command], cwd=self._path, env=environment(PATH=path), capture_output=True, text=True
            )
        assert run.returncode == 0, run.stderr
        return run.stdout.replace("\r\n", "\n")

    def _program_output(self, program: str) -> str:
        output = io.StringIO()
        with contextlib.chdir(self._path), contextlib.redirect_stdout(output):
            exec(compile(program, "document", "exec"), self._names)
        return output.getvalue()


@contextlib.contextmanager
def folder() -> Iterator[Folder]:
    """A folder for one document, gone afterwards."""
    with tempfile.TemporaryDirectory() as path:
        yield Folder(Path(path))


def renewed(text: str) -> str:
    """A document with the true output in its blocks."""
    with folder() as place:

        def with_output(match: re.Match[str]) -> str:
            block = _block(match)
            output = place.use(block)
            shown = match[0]
            if not block.is_executed:
                return shown
            if block.language == "console":
                return f"```console\n$ {_console(block.body)['command']}{output}```"
            return shown if block.printed is None else f"```python\n{block.body}```\n\n```text\n{output}```"

        return _BLOCK.sub(with_output, text)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        Path(name).write_text(renewed(Path(name).read_text("utf-8")), "utf-8")
