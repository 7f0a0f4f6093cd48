"""`headwater explain`: both graphs of a query, in all formats."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

import pytest

from tests.cli.running import EXAMPLES, headwater

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
