"""What an audit by experiment did, as a stranger would: files and commands, and a second start after each.

Each of these ended the process, lost something, or delivered it twice. What lies behind is tested elsewhere in this
folder, part by part; here the whole program meets it.
"""

from __future__ import annotations

import json
import os
import pickle
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

import headwater as hw
from tests.commands.running import headwater, process

QUERY = "REGISTER QUERY q AS SELECT ?s ?o FROM STREAM <s> [RANGE 1s TUMBLING] WHERE { ?s <urn:p> ?o }"


def lines(first: int, end: int) -> str:
    return "".join(f'{100 * n}\t<urn:s{n}> <urn:p> "{n}" .\n' for n in range(first, end))


def nested(depth: int) -> str:
    return "<<( <urn:a> <urn:p> " * depth + "<urn:b>" + " )>>" * depth


def write_query(folder: Path, text: str = QUERY) -> Path:
    path = folder / "q.rq"
    path.write_text(text)
    return path


def test_nested_terms_end_no_process_and_no_restart(tmp_path: Path) -> None:
    """One line of 360 KB, read in a process of its own, twice from one checkpoint."""
    stream = tmp_path / "s.tnq"
    stream.write_text(lines(0, 20) + f"2000\t<urn:x> <urn:p> {nested(15_000)} .\n" + lines(21, 40))
    run = ("run", write_query(tmp_path), "--in-process", "--stream", f"s={stream}", "--format", "json")
    kept = ("--checkpoint", tmp_path / "checkpoint", "--dead-letters", tmp_path / "letters")
    for more in ("", lines(40, 60)):
        with open(stream, "a") as file:
            file.write(more)
        with process(*run, *kept, "--no-drain") as command:
            output, errors = command.communicate(timeout=120)
        assert command.returncode == 0, errors
    assert json.loads(output.splitlines()[-1])["results"]["bindings"]
    letters = [json.loads(line) for path in (tmp_path / "letters").glob("*") for line in path.read_text().splitlines()]
    assert len(letters) == 1 and len(json.dumps(letters[0])) < 50_000


def test_nested_terms_that_are_loaded(tmp_path: Path) -> None:
    (tmp_path / "data.nt").write_text(f"<urn:x> <urn:p> {nested(15_000)} .\n<urn:y> <urn:p> <urn:z> .\n")
    done = headwater("load", tmp_path / "data.nt", "--into", tmp_path / "data")
    assert done.exit_code == 0 and "1 bad lines" in done.stdout, done.output
    assert len(list(hw.DataSet.open(tmp_path / "data").quads())) == 1
    done = headwater("load", tmp_path / "data.nt", "--into", tmp_path / "other", "--strict")
    assert done.exit_code != 0 and "Traceback" not in done.stderr


def test_a_literal_of_17_mb_is_told_by_the_exit_code(tmp_path: Path) -> None:
    (tmp_path / "long.nt").write_text(f'<urn:x> <urn:p> "{"x" * (17 << 20)}" .\n')
    done = headwater("load", tmp_path / "long.nt", "--into", tmp_path / "data", "--strict")
    assert done.exit_code != 0 and "bytes" in done.stderr and len(done.stderr) < 20_000


def rename(path: Path) -> None:
    path.rename(path.with_name("s.1.tnq"))


def copy_and_truncate(path: Path) -> None:
    shutil.copy(path, path.with_name("s.1.tnq"))
    os.truncate(path, 0)


@pytest.mark.parametrize("rotate", [rename, copy_and_truncate])
def test_a_rotated_log_loses_nothing(tmp_path: Path, rotate: Callable[[Path], None]) -> None:
    """The file that takes the old name is longer than the old one was when it was last read."""
    path = tmp_path / "s.tnq"
    answers: list[hw.Answer] = []

    def run(*, drain: bool) -> None:
        engine = hw.Engine(in_process=True, checkpoint=tmp_path / "checkpoint")
        engine.stream("s", hw.files(tmp_path / "s*.tnq"))
        engine.register(QUERY)
        engine.run(on_answer=answers.append, drain=drain)

    path.write_text(lines(0, 20))
    run(drain=False)
    with open(path, "a") as file:
        file.write(lines(20, 35))
    rotate(path)
    with open(path, "a") as file:
        file.write(lines(35, 120))
    run(drain=False)
    run(drain=True)
    found = Counter(str(row[0]) for answer in answers for row in answer.rows)
    assert found == Counter(f"<urn:s{n}>" for n in range(120))


class Mark:
    """Leaves a file where it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, ...]:
        return Path.touch, (self.path,)


def test_a_poisoned_checkpoint_runs_no_code(tmp_path: Path) -> None:
    (tmp_path / "s.tnq").write_text(lines(0, 30))
    run = ("run", write_query(tmp_path), "--in-process", "--stream", f"s={tmp_path / 's.tnq'}")
    kept = (*run, "--checkpoint", tmp_path / "checkpoint", "--no-drain")
    assert headwater(*kept).exit_code == 0
    poison = pickle.dumps(Mark(tmp_path / "was-here"))
    assert (tmp_path / "checkpoint").stat().st_mode & 0o777 == 0o700
    for path in [one for one in (tmp_path / "checkpoint").rglob("*") if one.is_file()]:
        whole = path.read_bytes()
        path.write_bytes(poison)
        done = headwater(*kept)
        path.write_bytes(whole)
        assert "Traceback" not in done.stderr and "HEADWATER_DEBUG" not in done.stderr
        assert not (tmp_path / "was-here").exists(), path


def test_an_entity_bomb_is_refused(tmp_path: Path) -> None:
    entities = '<!ENTITY a "aaaaaaaaaa">' + "".join(
        f'<!ENTITY {one} "{f"&{before};" * 10}">' for before, one in zip("abcdef", "bcdefg", strict=True)
    )
    (tmp_path / "bomb.rdf").write_text(
        f"<!DOCTYPE x [{entities}]><rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#' xmlns:e='urn:e:'>"
        "<rdf:Description rdf:about='urn:x'><e:p>&g;</e:p></rdf:Description></rdf:RDF>"
    )
    done = headwater("load", tmp_path / "bomb.rdf", "--into", tmp_path / "data", "--strict")
    assert done.exit_code != 0 and "entit" in done.stderr and "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("body", "works"),
    [
        (" UNION ".join("{ ?s <urn:p> ?o }" for _ in range(300)), True),
        ("?s <urn:p> ?o " + "OPTIONAL { ?s <urn:p> ?o } " * 300, False),
        ("?s <urn:p> ?o " + " ".join(f"BIND(1 AS ?b{n})" for n in range(1000)), False),
        ("?s <urn:p> ?o " + "MINUS { ?s <urn:q> ?o } " * 1000, False),
        ("?s " + "/".join(["<urn:p>"] * 1000) + " ?o", True),
    ],
    ids=["UNION", "OPTIONAL", "BIND", "MINUS", "path"],
)
def test_wide_queries_give_an_answer_or_a_sentence(tmp_path: Path, body: str, works: bool) -> None:
    query = write_query(tmp_path, f"SELECT ?s ?o FROM STREAM <s> [RANGE 1s TUMBLING] WHERE {{ {body} }}")
    done = headwater("explain", query)
    assert done.exit_code == (0 if works else 2), done.stderr
    assert works or "operators" in done.stderr
    assert "RecursionError" not in done.stderr and "Traceback" not in done.stderr
