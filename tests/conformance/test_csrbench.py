"""CSRBench: the recorded answers, and that a wrong recording would be noticed."""

from __future__ import annotations

import json
import shutil
from io import StringIO
from pathlib import Path

import pytest

from headwater.conformance.csrbench import Bench, csparql_problem, sparqlstream_problem, sparqlstream_t0
from headwater.conformance.suites import run
from headwater.errors import SettingError
from tests.shared_data import shared_data


def test_the_recorded_answers_come_out_of_both_dialects() -> None:
    out = StringIO()
    assert run("csrbench", shared_data("csrbench"), out) == 0, out.getvalue()
    lines = out.getvalue().splitlines()
    assert lines[-1] == "10 passed, 0 failed"
    assert sum("csparql text: same answers, cqels text: same answers" in line for line in lines) == 5
    assert any(line.startswith("Q3 answers of csparql") and "2 of 4 non-empty" in line for line in lines)


def test_windows_of_the_texts_are_those_of_the_properties() -> None:
    bench = Bench(shared_data("csrbench"))
    sizes = {number: bench.window(number)["size"] // 1000 for number in (1, 2, 3, 4)}
    assert sizes == {1: 10, 2: 1, 3: 4, 4: 4}
    assert all(f"[RANGE {sizes[n]}s STEP {sizes[n]}s]" in bench.text("csparql", n) for n in sizes)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    return shutil.copytree(shared_data("csrbench"), tmp_path / "csrbench")


def change_last_row(path: Path) -> None:
    recorded = json.loads(path.read_text())
    rows = [row for relation in recorded["relations"] for row in relation["results"]["bindings"]]
    rows[-1]["binding"]["sensor"]["value"] += "x"
    path.write_text(json.dumps(recorded))


def test_another_recording_is_not_taken_for_the_same(copy: Path) -> None:
    change_last_row(copy / "answers" / "csparql-answer-1.json")
    change_last_row(copy / "answers" / "sparqlstream-answer-1.json")
    assert csparql_problem(Bench(copy), "csparql", 1) == "3 of 4 windows agree, 0 more of ours have rows"
    assert sparqlstream_t0(Bench(copy), 1) == 2000
    assert sparqlstream_problem(Bench(copy), "cqels", 1) == "2 of 3 windows agree (t0 = 2000 ms)"


def test_a_window_that_was_not_reported_is_noticed(copy: Path) -> None:
    path = copy / "answers" / "csparql-answer-1.json"
    recorded = json.loads(path.read_text())
    del recorded["relations"][1]
    path.write_text(json.dumps(recorded))
    assert csparql_problem(Bench(copy), "csparql", 1) == "3 of 3 windows agree, 1 more of ours have rows"


def test_a_folder_without_the_benchmark_is_no_success(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match=r"no CSRBench in.*expected"):
        run("csrbench", tmp_path, StringIO())
