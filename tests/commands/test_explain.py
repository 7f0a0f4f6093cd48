"""`headwater explain`: both graphs of a query, in all formats."""

from __future__ import annotations

import shutil
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from tests.commands.running import EXAMPLES, headwater
from tests.shared_data import shared_data

QUERY = EXAMPLES / "across-town.rq"


@pytest.mark.parametrize("graph", ["operators", "denotational"])
def test_text_names_the_windows_and_the_static_data(graph: str) -> None:
    result = headwater("explain", QUERY, "--graph", graph)
    assert (result.exit_code, result.stderr) == (0, "")
    assert "NOW" in result.stdout
    assert "c:placedIn" in result.stdout


def test_without_a_graph_the_plan_and_its_settings_are_told() -> None:
    result = headwater("explain", QUERY)
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.startswith("query across-town: SELECT in CQELS-QL\n")
    assert "report     eager" in result.stdout
    assert "emit       ISTREAM" in result.stdout


@pytest.mark.parametrize("graph", ["operators", "denotational"])
def test_mermaid_is_a_flowchart(graph: str) -> None:
    result = headwater("explain", QUERY, "--graph", graph, "--format", "mermaid")
    assert result.exit_code == 0
    assert "\nflowchart " in result.stdout


@pytest.mark.parametrize("graph", ["operators", "denotational"])
def test_dot_is_a_digraph(graph: str) -> None:
    result = headwater("explain", QUERY, "--graph", graph, "--format", "dot")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.startswith('digraph "')


def test_a_picture_without_graphviz_ends_with_1_and_says_what_helps(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    result = headwater("explain", QUERY, "--format", "svg")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "apt-get install graphviz" in result.stderr.replace("\n", " ")


@pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz is not installed")
@pytest.mark.parametrize("graph", ["operators", "denotational"])
def test_svg_is_whole(graph: str) -> None:
    result = headwater("explain", QUERY, "--graph", graph, "--format", "svg")
    assert result.exit_code == 0
    assert ElementTree.fromstring(result.stdout).tag == "{http://www.w3.org/2000/svg}svg"


def test_the_graphs_differ() -> None:
    drawings = {headwater("explain", QUERY, "--graph", graph).stdout for graph in ("operators", "denotational")}
    assert len(drawings) == 2


def test_a_wrong_query_ends_with_2_and_a_caret() -> None:
    result = headwater("explain", "-", stdin="SELECT ?s WHER { ?s ?p ?o }")
    assert (result.exit_code, result.stdout) == (2, "")
    place, source, caret = result.stderr.splitlines()[:3]
    assert place.startswith("stdin: line 1, column 11: ")
    assert (source, caret) == ("SELECT ?s WHER { ?s ?p ?o }", " " * 10 + "^")


def test_which_part_runs_where_is_told() -> None:
    result = headwater("explain", EXAMPLES / "busy-districts.rq")
    assert "evaluator  kernel (incremental)\n" in result.stdout
    assert "view       ?district ?street ?capacity: static data, asked once of the reference\n" in result.stdout
    text = "SELECT ?x FROM STREAM <s> [RANGE 1s TUMBLING] WHERE { ?x <p>+ ?y }"
    result = headwater("explain", "-", stdin=text)
    assert "evaluator  reference, because of a property path of any length over a stream\n" in result.stdout


def test_coverage_names_each_query_and_the_share(tmp_path: Path) -> None:
    (tmp_path / "kernel.rq").write_text("SELECT ?x FROM STREAM <s> [RANGE 1s TUMBLING] WHERE { ?x <p> ?y }")
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "reference.sparql").write_text("SELECT ?x { SERVICE <http://example.org/> { ?x <p> ?y } }")
    (tmp_path / "wrong.rq").write_text("SELECT ?x WHER { ?x <p> ?y }")
    (tmp_path / "README.txt").write_text("this is no query and is not looked at")
    result = headwater("explain", "--coverage", tmp_path)
    assert (result.exit_code, result.stderr) == (0, "")
    lines = result.stdout.splitlines()
    assert lines[0] == f"{'kernel.rq':<21}  kernel"
    assert lines[1] == "more/reference.sparql  reference, because of SERVICE"
    assert lines[2].startswith("wrong.rq               no query: line 1, column 11: ")
    assert lines[3:] == ["", "1 of 2 queries are evaluated by the kernel (50.0 %); 1 file is no query"]


def test_coverage_fills_placeholders_from_the_file_beside(tmp_path: Path) -> None:
    (tmp_path / "q.rq").write_text("SELECT ?x FROM STREAM <s> [RANGE ${width} TUMBLING] WHERE { ?x <p> ?y }")
    result = headwater("explain", "--coverage", tmp_path)
    assert "0 of 0 queries are evaluated by the kernel; 1 file is no query" in result.stdout
    (tmp_path / "q.json").write_text('{"vars": {"width": "1s"}}')
    assert "1 of 1 queries" in headwater("explain", "--coverage", tmp_path).stdout
    (tmp_path / "q.json").write_text("{}")
    assert "its placeholders need values" in headwater("explain", "--coverage", tmp_path).stdout


@pytest.mark.parametrize(("folder", "queries"), [("citybench", 24), ("csrbench", 8), ("srbench", 10), ("lsbench", 4)])
def test_the_kernel_evaluates_every_query_of_the_benchmarks(folder: str, queries: int) -> None:
    result = headwater("explain", "--coverage", shared_data(folder))
    assert f"\n{queries} of {queries} queries are evaluated by the kernel (100.0 %)" in result.stdout


def test_coverage_of_a_folder_without_queries_ends_with_2(tmp_path: Path) -> None:
    result = headwater("explain", "--coverage", tmp_path)
    assert result.exit_code == 2
    assert "no query files; their names end with .rq or .sparql" in result.stderr


@pytest.mark.parametrize("arguments", [(), (QUERY, "--coverage", EXAMPLES)])
def test_a_query_or_a_folder_is_needed_and_not_both(arguments: tuple[object, ...]) -> None:
    result = headwater("explain", *arguments)
    assert result.exit_code == 2
    assert "give either a query file or --coverage" in result.stderr
