"""What people do wrong at first: no mistake is silent, none is met with a traceback. Mistakes are text files."""

from __future__ import annotations

from pathlib import Path

import pytest

import headwater as hw
from tests.commands.running import headwater
from tests.newcomer.mistake_files import Mistake, read_mistakes

MISTAKES = read_mistakes()


def test_there_are_many() -> None:
    assert len(MISTAKES) >= 60
    assert len({mistake.title for mistake in MISTAKES}) == len(MISTAKES)


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.title)
def test_each_mistake_is_told(mistake: Mistake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in mistake.files.items():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(text)
    assert mistake.says, "a mistake must be told"
    output = _raised_text(mistake.python) if mistake.python else _command_output(mistake)
    assert "Traceback" not in output
    for words in mistake.says:
        assert words in output, output
    for words in mistake.never:
        assert words not in output, output


def _command_output(mistake: Mistake) -> str:
    result = headwater(*mistake.command)
    assert result.exit_code == mistake.exit, result.output
    assert result.exception is None or isinstance(result.exception, SystemExit)
    assert "HEADWATER_DEBUG" not in result.output, "an error nobody foresaw"
    # Usage errors stand in a box.
    return " ".join(result.output.replace("│", " ").split())


def _raised_text(code: str) -> str:
    with pytest.raises(hw.HeadwaterError) as raised:
        exec(compile(code, "<mistake>", "exec"), {"hw": hw})
    return " ".join(str(raised.value).split())
