"""The text of `explain`, and every query of the benchmarks in every format."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Literal

import pytest

from headwater.algebra.plan import QueryPlan
from headwater.explain.notation import Notation, duration_text, instant_text
from headwater.explain.plan_text import explain, explain_text
from headwater.language.stream_clauses import IntervalSpec, LandmarkSpec, NowSpec, RangeSpec
from headwater.terms.model import NamedNode
from headwater.windows.settings import Options, Report, resolve_settings
from tests.explain.explain_queries import EVERYTHING, NAMED_GRAPHS, PAPER, plan_of
from tests.shared_data import shared_data


def lines_of(plan: QueryPlan) -> list[str]:
    return explain_text(plan).splitlines()


def test_the_text_of_the_papers_example() -> None:
    plan = plan_of(PAPER)
    shown = explain_text(plan, resolve_settings(plan), evaluator="reference, in process")
    assert shown == (
        "query TotalAmountPerDayAndBroker: SELECT in C-SPARQL\n"
        "\n"
        "Windows\n"
        "  W1  <http://stockexchange.org/market.trdf> [RANGE 1d TUMBLING], bounds (open, close], "
        "seen in the default graph and as GRAPH <http://stockexchange.org/market.trdf>\n"
        "\n"
        "Evaluation\n"
        "  evaluator  reference, in process\n"
        "  report     close\n"
        "  emit       RSTREAM\n"
        "  content    set\n"
        "\n"
        "Plan\n"
        "  distinct  → ?broker ?total\n"
        "    project: ?broker ?total  → ?broker ?total\n"
        "      aggregation: A(?total, SUM, ?amount, {?broker})  → ?broker ?country ?tx ?amount ?total\n"
        '        filter: ?country = "CH" && ?amount >= 10  → ?broker ?country ?tx ?amount\n'
        "          graph pattern: ?broker b:is_from ?country . ?broker x:does ?tx . ?tx x:with ?amount"
        "  in default graph (stream W1 and FROM <http://brokerscentral.org/brokers.rdf>)"
        "  → ?broker ?country ?tx ?amount\n"
    )


def test_policies_are_shown_as_they_are_settled() -> None:
    plan = plan_of(PAPER.replace("TotalAmountPerDayAndBroker AS", "Totals COMPUTED EVERY 90m AS"))
    assert "  report     periodic every 1h30m" in explain_text(plan, resolve_settings(plan)).splitlines()
    assert "  report     periodic every 1h30m" in lines_of(plan)
    shown = explain_text(plan, resolve_settings(plan, Options(report=Report.CHANGE, t0=1_000_000)))
    assert "  report     change\n" in shown
    assert "  t0         1970-01-01T00:00:01Z\n" in shown


def test_notes_of_the_plan_come_last() -> None:
    text = "SELECT ?s FROM NAMED STREAM <http://ex.org/s> [RANGE 1s STEP 1s] WHERE { ?s ?p ?o }"
    plan = plan_of(text)
    assert plan.notes
    assert lines_of(plan)[-2:] == ["Notes", f"  {plan.notes[0]}"]


def test_each_operator_has_one_line_below_the_one_that_reads_it() -> None:
    shown = lines_of(plan_of(EVERYTHING))
    tree = shown[shown.index("Plan") + 1 :]
    titles = [re.split(r":|  →", line.strip())[0] for line in tree]
    for title in ("slice", "project", "order by", "extend", "group", "filter", "join", "minus", "union", "optional"):
        assert title in titles, title
    assert any(line.strip().startswith("P1 = graph pattern: ?p :left ?room . ?p :why ?why") for line in tree)
    assert "path pattern: _:1 :part* ?room  in window W2" in "\n".join(tree)
    depths = [(len(line) - len(line.lstrip())) // 2 for line in tree]
    assert depths[0] == 1
    assert all(later <= earlier + 1 for earlier, later in pairwise(depths))


def test_a_group_shows_its_aggregates_and_no_invented_name() -> None:
    shown = "\n".join(lines_of(plan_of(EVERYTHING)))
    assert "hw_" not in shown
    assert "extend: ?twice := AVG(?v) * 2" in shown
    assert "group: by ?room; COUNT(DISTINCT ?p); AVG(?v)" in shown


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        ("CONSTRUCT { ?s <http://ex.org/q> ?o }", "  construct: ?s <http://ex.org/q> ?o"),
        ("ASK", "  ask: is there a solution?"),
        ("DESCRIBE ?s", "  describe: ?s"),
    ],
)
def test_the_other_forms_stand_above_their_solutions(form: str, expected: str) -> None:
    plan = plan_of(f"{form} FROM STREAM <http://ex.org/s> [RANGE 1s STEP 1s] WHERE {{ ?s ?p ?o }}")
    shown = lines_of(plan)
    assert expected in shown
    assert shown[shown.index(expected) + 1].startswith("    ")


def test_wrong_choices_are_refused_with_the_right_ones() -> None:
    plan = plan_of(PAPER)
    with pytest.raises(ValueError, match="operators or denotational"):
        explain(plan, graph="o-graph")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="text, mermaid, dot or svg"):
        explain(plan, format="png")  # type: ignore[arg-type]


def test_a_drawing_without_a_graph_is_that_of_the_operators() -> None:
    plan = plan_of(PAPER)
    assert explain(plan, format="dot") == explain(plan, graph="operators", format="dot")
    assert explain(plan, format="dot") != explain(plan, graph="denotational", format="dot")


def test_the_denotational_text_lists_vertices_groups_and_edges() -> None:
    shown = explain(plan_of(PAPER), graph="denotational")
    assert '    n3 ?country  (variable)  [?country = "CH"]\n' in shown
    assert "?total  (variable, in the result)" in shown
    assert "  n1 ?broker -> n2 b:is_from\n" in shown
    assert "<http://stockexchange.org/market.trdf> [RANGE 1d TUMBLING]" in shown


@pytest.mark.parametrize("text", [PAPER, NAMED_GRAPHS, EVERYTHING])
@pytest.mark.parametrize("graph", ["operators", "denotational"])
@pytest.mark.parametrize("format", ["text", "mermaid", "dot"])
def test_the_same_plan_gives_the_same_text(text: str, graph, format) -> None:
    assert explain(plan_of(text), graph=graph, format=format) == explain(plan_of(text), graph=graph, format=format)


@pytest.mark.parametrize(
    ("microseconds", "expected"),
    [(0, "0s"), (1, "1us"), (5_400_000_000, "1h30m"), (90_061_000_000 + 2_500, "1d1h1m1s2ms500us"), (-1_000, "-1ms")],
)
def test_durations(microseconds: int, expected: str) -> None:
    assert duration_text(microseconds) == expected


def test_windows_and_instants() -> None:
    notation = Notation((("", "http://ex.org/"),))
    hour = 3_600_000_000
    assert notation.window(RangeSpec(hour, 60_000_000, NamedNode("http://ex.org/t"))) == "RANGE 1h STEP 1m @:t"
    assert notation.window(IntervalSpec(hour, 0, 60_000_000)) == "FROM NOW-1h TO NOW STEP 1m"
    assert notation.window(LandmarkSpec(0)) == "FROM 1970-01-01T00:00:00Z TO NOW"
    assert notation.window(NowSpec()) == "NOW"
    assert instant_text(1 << 62) == "4611686018427387904us"


@pytest.mark.parametrize(
    "written",
    [
        "?a - (?b - ?c) = ?d",
        "?a - ?b - ?c = ?d",
        "(?a || ?b) && !(?c < ?d)",
        "?a && ?b || ?c",
        "(?a = ?b) = ?c",
        "?a * (?b + 1) / 2.5 >= -?c",
        '?a IN (1, "x"@en, "3"^^xsd:byte) && REGEX(?b, "^x")',
    ],
)
def test_expressions_keep_the_parentheses_they_need_and_no_more(written: str) -> None:
    text = f"PREFIX xsd: <http://www.w3.org/2001/XMLSchema#> SELECT * WHERE {{ ?a ?b ?c, ?d FILTER({written}) }}"
    shown = "\n".join(lines_of(plan_of(text)))
    assert f"filter: {written}  →" in shown


@pytest.mark.parametrize(
    "path", [":a / :b* | ^:c", "(:a | :b) / :c?", "(:a / :b)+", "^(:a | :b)", "!(:a | ^:b)", "(^:a)*"]
)
def test_paths_keep_the_parentheses_they_need_and_no_more(path: str) -> None:
    shown = explain(plan_of(f"PREFIX : <http://ex.org/> SELECT * WHERE {{ ?s (({path})|:z) ?o }}"))
    assert path in shown


GRAPHS: tuple[Literal["operators", "denotational"], ...] = ("operators", "denotational")
BENCHMARKS = [
    *(
        (("citybench", "queries", folder), f"Q{number}.rq")
        for folder in ("csparql", "cqels")
        for number in range(1, 13)
    ),
    *(
        (("csrbench", "dialects"), f"{dialect}-Q{number}.rq")
        for dialect in ("csparql", "cqels")
        for number in range(1, 5)
    ),
    *((("srbench", "queries"), f"q{number}.rq") for number in range(1, 11)),
]


@pytest.mark.parametrize(("folder", "name"), BENCHMARKS)
def test_every_benchmark_query_is_explained_in_every_way(folder: tuple[str, ...], name: str) -> None:
    text = re.sub(r"\$\{\w+\}", "10", shared_data(*folder, name).read_text("utf-8"))
    plan = plan_of(text)
    assert explain(plan, settings=resolve_settings(plan)).count("\n") > 8
    for graph in GRAPHS:
        assert "->" in explain(plan, graph=graph, format="text")
        mermaid = explain(plan, graph=graph, format="mermaid")
        assert len(re.findall(r"^ *subgraph ", mermaid, re.M)) == len(re.findall(r"^ *end$", mermaid, re.M))
        dot = explain(plan, graph=graph, format="dot")
        assert len(re.findall(r"^ *subgraph ", dot, re.M)) == len(re.findall(r"^ +}$", dot, re.M))
