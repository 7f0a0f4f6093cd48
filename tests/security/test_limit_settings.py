"""Limits on the command line and in the settings file; a suspended query is told there, and resumed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.commands.running import headwater
from tests.security.test_query_limits import GOOD, write_stream


@pytest.fixture
def run(tmp_path: Path) -> list[object]:
    """A command that runs two queries over ten triples a second: `good` groups them, `rows` shows them."""
    counting = GOOD.replace("?s ?o FROM", "(COUNT(*) AS ?n) FROM")
    (tmp_path / "good.rq").write_text(counting)
    (tmp_path / "rows.rq").write_text(GOOD.replace("good", "rows"))
    stream = f"s={write_stream(tmp_path, 60)}"
    return ["run", tmp_path / "good.rq", tmp_path / "rows.rq", "--in-process", "--format", "json", "--stream", stream]


def answers_in(output: str, query: str) -> list[dict[str, object]]:
    return [one for line in output.splitlines() if (one := json.loads(line))["query"] == query]


def test_a_limit_of_the_command_line(run: list[object], tmp_path: Path) -> None:
    done = headwater(*run, "--limit", "rows=9", "--limit", "seconds=2.5", "--progress-json", tmp_path / "progress")
    assert done.exit_code == 1
    assert "the query 'rows' is suspended: an answer has 10 rows, and its limit is 9" in " ".join(done.stderr.split())
    assert len(answers_in(done.stdout, "good")) >= 5
    *_, notice = answers_in(done.stdout, "rows")
    assert "its limit is 9" in str(notice["suspended"])
    last = json.loads((tmp_path / "progress").read_text().splitlines()[-1])
    assert last["queries"]["rows"]["suspended"] == notice["suspended"]
    assert last["queries"]["good"].get("suspended") is None
    assert headwater(*run, "--limit", "rows=10").exit_code == 0


def test_limits_of_the_settings_file_and_of_the_environment(
    run: list[object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = tmp_path / "headwater.toml"
    settings.write_text("[limits]\nrows = 9\nliteral = 100\n")
    done = headwater(*run, "--settings", settings)
    assert done.exit_code == 1 and "its limit is 9" in done.stderr
    monkeypatch.setenv("HEADWATER_SETTINGS", str(settings))
    assert headwater(*run).exit_code == 1
    # What is typed holds against the file; what is not typed is that of the file.
    assert headwater(*run, "--limit", "rows=10").exit_code == 0
    long = tmp_path / "long.rq"
    long.write_text(
        "REGISTER QUERY long AS SELECT ?t FROM STREAM <s> [RANGE 1s TUMBLING] "
        f"WHERE {{ ?s <urn:p> ?o BIND(CONCAT(STR(?s), '{'x' * 100}') AS ?t) }}"
    )
    done = headwater(*run[:2], long, *run[3:], "--limit", "rows=10")
    assert done.exit_code == 1 and "literal" in done.stderr and "its limit is 100" in " ".join(done.stderr.split())


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("rows", "write NAME=NUMBER"),
        ("rows=many", "write NAME=NUMBER"),
        ("speed=1", "there is no limit speed: use seconds, rows, bytes, state_bytes, literal, ticks"),
        ("rows=0", "the limit rows"),
        ("seconds=-1", "the limit seconds"),
        ("seconds=nan", "the limit seconds"),
    ],
)
def test_a_limit_that_cannot_be_right(run: list[object], option: str, words: str) -> None:
    done = headwater(*run, "--limit", option)
    assert done.exit_code == 2 and words in " ".join(done.stderr.replace("│", " ").split())


@pytest.mark.parametrize("limits", ["speed = 1", 'rows = "many"', "rows = true", "seconds = -1"])
def test_a_settings_file_that_cannot_be_right(run: list[object], tmp_path: Path, limits: str) -> None:
    (tmp_path / "headwater.toml").write_text(f"[limits]\n{limits}\n")
    done = headwater(*run, "--settings", tmp_path / "headwater.toml")
    assert done.exit_code == 2 and "headwater.toml" in done.stderr and limits.split()[0] in done.stderr


def test_a_query_is_resumed_from_the_command_line(run: list[object], tmp_path: Path) -> None:
    run += ["--checkpoint", tmp_path / "checkpoint"]
    assert headwater(*run, "--no-drain", "--limit", "rows=9").exit_code == 1
    # A higher limit alone is not enough: somebody has to say that the query may go on.
    write_stream(tmp_path, 90)
    done = headwater(*run, "--no-drain")
    assert done.exit_code == 1 and not answers_in(done.stdout, "rows") and answers_in(done.stdout, "good")
    write_stream(tmp_path, 120)
    done = headwater(*run, "--resume", "rows")
    assert done.exit_code == 0, done.stderr
    found = answers_in(done.stdout, "rows")
    assert len(found) >= 3 and not any("suspended" in one for one in found)
    done = headwater(*run, "--resume", "nobody")
    assert done.exit_code == 2 and "no query is named 'nobody'; registered: 'good', 'rows'" in done.stderr
