"""Every command has help, and the example in it can be typed in a clone of the project."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess

import pytest

import headwater as hw
from tests.commands.running import COMMAND, PROJECT, headwater

COMMANDS = ("run", "explain", "check", "why", "demo", "conformance", "serve")


def examples(command: str) -> list[list[str]]:
    """The commands in a help text, their arguments split as a shell would."""
    text = headwater(command, "--help").stdout.partition("Example:")[2]
    lines = re.findall(r"headwater (.*)", re.sub(r"\\ *\n", " ", text))
    return [shlex.split(line.partition(">")[0]) for line in lines]


def test_all_commands_are_listed() -> None:
    listed = headwater("--help").stdout
    assert all(re.search(rf"│ {command}\b", listed) for command in COMMANDS)
    assert headwater().exit_code == 2


@pytest.mark.parametrize("command", COMMANDS)
def test_help_ends_with_an_example_of_the_command(command: str) -> None:
    found = examples(command)
    assert found
    assert all(example[0] == command for example in found)


@pytest.mark.parametrize("command", ["run", "explain", "check", "why"])
def test_the_examples_of_the_help_work(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(PROJECT)
    for example in examples(command):
        result = headwater(*example)
        if "svg" in example and shutil.which("dot") is None:
            assert "install graphviz" in " ".join(result.stderr.split())
            continue
        assert result.exit_code == 0, result.stderr
        assert result.stdout


def test_every_option_of_the_design_is_there() -> None:
    text = headwater("run", "--help").stdout
    options = "stream data format in-process dialect bounds report emit content t0 delay strict checkpoint"
    for option in (*options.split(), "dead-letters", "template", "follow", "no-drain"):
        assert f"--{option} " in text, option


def test_the_module_is_the_command() -> None:
    run = subprocess.run([*COMMAND, "--version"], cwd=PROJECT, capture_output=True, text=True)
    assert (run.returncode, run.stdout) == (0, f"headwater {hw.__version__}\n"), run.stderr
