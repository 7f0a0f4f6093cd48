"""`--idle`, `--trigger` and `--quiet`, typed or in the settings file."""

from __future__ import annotations

from pathlib import Path

import pytest

import headwater as hw
from headwater.commands.settings_file import choose_idle, read_settings
from tests.commands.running import headwater, process

QUERY = """
PREFIX : <http://ex/>
SELECT ?v ?w WHERE { STREAM :a [RANGE 30s] { ?x :p ?v } OPTIONAL { STREAM :b [RANGE 30s] { ?x :q ?w } } }
"""


def write_files(folder: Path) -> list[str]:
    """A query over two streams, one of which is silent; the arguments that name them."""
    (folder / "both.rq").write_text(QUERY)
    (folder / "a.tnq").write_text('1000\t<http://ex/x> <http://ex/p> "1" .\n')
    (folder / "b.tnq").touch()
    streams = [f"--stream=http://ex/{name}={folder / name}.tnq" for name in ("a", "b")]
    return ["run", str(folder / "both.rq"), "--in-process", "--format", "csv", *streams]


@pytest.mark.parametrize(
    "options", [["--idle", "200ms"], ["--idle", "http://ex/a=100ms", "--idle", "http://ex/b=200ms"], ["--settings"]]
)
def test_a_silent_stream_does_not_hold_up_a_command(tmp_path: Path, options: list[str]) -> None:
    if options == ["--settings"]:
        settings = tmp_path / "settings.toml"
        settings.write_text(
            '[run]\ntrigger = "100ms"\nidle = { all = "100ms", "http://ex/b" = "200ms", "x" = "off" }\n'
        )
        options = ["--settings", str(settings)]
    else:
        options += ["--trigger", "100ms"]
    with process(*write_files(tmp_path), "--follow", "--quiet", *options) as run:
        assert run.stdout is not None
        assert run.stdout.readline() == "time,v,w\n"
        assert run.stdout.readline() == "1970-01-01T00:00:01Z,1,\n"
        run.terminate()
        assert run.stderr is not None
        (summary,) = [line for line in run.stderr.read().splitlines() if not line.startswith("warning")]
        assert summary.startswith("stopped in")


def test_a_pipe_is_told_who_waits_for_whom(tmp_path: Path) -> None:
    with process(*write_files(tmp_path), "--follow") as run:
        assert run.stderr is not None
        for line in iter(run.stderr.readline, ""):
            if "query waits" in line or "both waits" in line:
                break
        assert "waits for http://ex/b, silent for" in line
        assert "(--idle goes on without it)" in line


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--idle", "soon"], "is not a duration"),
        (["--idle", "http://ex/c=2s"], "no --stream is named http://ex/c"),
        (["--trigger", "often"], "is not a duration"),
    ],
)
def test_wrong_options_say_what_to_write(tmp_path: Path, options: list[str], words: str) -> None:
    result = headwater(*write_files(tmp_path), *options)
    assert result.exit_code == 2
    assert words in " ".join(result.stderr.replace("│", " ").split())


def test_what_is_typed_holds_against_the_settings_file(tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text('[run.idle]\nall = "1s"\n"http://ex/a" = "2s"\n')
    settings = read_settings(tmp_path / "s.toml")
    assert choose_idle(settings, []) == ("1s", {"http://ex/a": "2s"})
    assert choose_idle(settings, [(None, "5s"), ("http://ex/a", "off")]) == ("5s", {"http://ex/a": "off"})


@pytest.mark.parametrize("text", ["run = 1", "[run]\nidle = 5", "[run]\nother = 1", '[run]\ntrigger = "soon"'])
def test_wrong_settings_are_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "s.toml").write_text(text)
    with pytest.raises(hw.SettingError, match="the settings file"):
        read_settings(tmp_path / "s.toml")
