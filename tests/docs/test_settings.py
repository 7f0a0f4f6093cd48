"""The tables of settings and options have every argument of the code, with its default."""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path

import pytest
import typer

from headwater.cli import app

REFERENCE = Path(__file__).resolve().parents[2] / "docs" / "reference"
_MARK = r"^<!-- {kind}: (\S+) -->\n(?:\n((?:\|.*\n)+))?"


def tables(page: str, kind: str) -> dict[str, str]:
    """What a page has behind its marks: a table for each name."""
    text = (REFERENCE / page).read_text("utf-8")
    return dict(re.findall(_MARK.format(kind=kind), text, re.MULTILINE))


def rows(table: str) -> dict[str, str]:
    """Argument or option, as the code spells it, to its default; several may share a row."""
    cells = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:4]] for line in table.splitlines()[2:]]
    assert all(meaning for _, _, meaning in cells), "each has a meaning"
    return {
        name: default.strip("`")
        for names, default, _ in cells
        for name in re.findall(r"`(--[a-z0-9-]+|[a-z_0-9]+)[^`]*`", names)
    }


SIGNATURES = tables("settings.md", "signature")
COMMANDS = tables("cli.md", "command")


@pytest.mark.parametrize("name", SIGNATURES)
def test_each_argument_is_there_with_its_default(name: str) -> None:
    module, _, attributes = name.partition(".Engine.")
    where, _, last = (f"{module}.Engine" if attributes else name).rpartition(".")
    target = getattr(importlib.import_module(where), last)
    target = getattr(target, attributes) if attributes else target
    arguments = {
        argument.name: "" if argument.default is inspect.Parameter.empty else repr(argument.default)
        for argument in inspect.signature(target).parameters.values()
        if argument.name != "self"
    }
    assert rows(SIGNATURES[name]) == arguments


def test_all_that_has_settings_is_there() -> None:
    import headwater as hw

    functions = {name for name in hw.__all__ if inspect.isfunction(getattr(hw, name))}
    methods = {"Engine.stream", "Engine.dataset", "Engine.register", "Engine.run"}
    others = {"Engine", "FileSink", "KafkaSink", "ServiceOptions"}
    assert {f"headwater.{name}" for name in functions | methods | others} <= SIGNATURES.keys()


@pytest.mark.parametrize("name", COMMANDS)
def test_each_option_is_there_with_its_default(name: str) -> None:
    command = typer.main.get_command(app).commands[name]  # type: ignore[attr-defined]
    options = {
        parameter.opts[0]: "" if parameter.default is None or parameter.required else str(parameter.default)
        for parameter in command.params
        if parameter.opts[0].startswith("--")
    }
    assert rows(COMMANDS[name]) == options


def test_every_command_is_there() -> None:
    assert set(COMMANDS) == set(typer.main.get_command(app).commands)  # type: ignore[attr-defined]
