"""Pushed filters and linked data of growing size: tiny runs that check their own answers, and what they are made of."""

from __future__ import annotations

from collections import Counter
from itertools import islice
from pathlib import Path

import pytest
from pyoxigraph import RdfFormat, parse

from benchmarks import dblp, linked_data, merged_graphs, pushdown
from headwater.algebra.nodes import Bgp, Filter, Group, Join, Node
from headwater.algebra.scope import nodes_of
from tests.language.paper_queries import CSPARQL


def test_a_larger_bibliography_begins_with_the_smaller_one(tmp_path: Path) -> None:
    small, large = tmp_path / "small.nt", tmp_path / "large.nt"
    dblp.write_file(10_000, small)
    dblp.write_file(101_000, large)
    assert large.read_text().startswith(small.read_text())
    assert [len(path.read_text().splitlines()) for path in (small, large)] == [10_000, 101_000]


def test_the_smallest_bibliography_has_all_that_the_conference_asks() -> None:
    quads = list(parse("".join(islice(dblp.triples(), 10_000)), format=RdfFormat.N_TRIPLES))
    assert len(set(quads)) == len(quads)
    kinds = Counter(quad.predicate.value.rpartition("/")[2].rpartition("#")[2] for quad in quads)
    assert set(kinds) >= {"creator", "title", "issued", "partOf", "editor", "journal", "pages", "name", "references"}
    watched = [q for q in quads if q.predicate.value.endswith("creator") and q.object.value == dblp.person(0)]
    assert len(watched) == dblp.WATCHED_PAPERS
    named = {quad.subject.value for quad in quads if quad.predicate.value.endswith("/name")}
    assert {dblp.person(number) for number in range(dblp.ATTENDEES)} <= named
    later = islice(dblp.triples(), 10_000, 60_000)
    assert not any("creator" in line and f"<{dblp.person(0)}>" in line for line in later)


def filters_below_the_grouping(root: Node) -> dict[str, int]:
    """How many conditions are tested above the join, and below it."""
    (group,) = [node for node in nodes_of(root) if isinstance(node, Group)]
    join = next(node for node in nodes_of(group) if isinstance(node, Join | Bgp))
    every, below = ([n for n in nodes_of(top) if isinstance(n, Filter)] for top in (group, join))
    return {"above": len(every) - len(below), "below": len(below)}


def test_section_4_static_data_in_both_forms_of_c_sparql(tmp_path: Path) -> None:
    """The benchmark compares the answers of `FROM <data>` with those of GRAPH, also after changes."""
    found = merged_graphs.measure(2000, 1, tmp_path)
    assert set(found) == {"triples", *merged_graphs.MEASURES, "own_vs_graph"}
    ratios = found["own_vs_graph"]
    assert isinstance(ratios, dict) and set(ratios) == set(merged_graphs.MEASURES)


def test_figure_7_has_the_query_of_the_paper() -> None:
    written = CSPARQL["section 3.4, total amount per broker"]
    assert pushdown.PAPER.split() == written.split()


@pytest.mark.parametrize("name", pushdown.EXPERIMENTS)
def test_each_plan_has_its_filters_where_its_name_says(name: str) -> None:
    plans = pushdown.make_plans(pushdown.EXPERIMENTS[name])
    places = {strategy: filters_below_the_grouping(plan.root) for strategy, plan in plans.items()}
    # With both, the country is a constant in its pattern.
    assert places == {
        "none": {"above": 1, "below": 0},
        "static": {"above": 1, "below": 1},
        "stream": {"above": 1, "below": 1},
        "both": {"above": 0, "below": 1},
    }


@pytest.mark.parametrize(("name", "figure"), [("paper", "pushdown-paper"), ("segments", "pushdown")])
def test_pushing_filters_measures_what_it_promises(name: str, figure: str) -> None:
    sizes = pushdown.Sizes(static_triples=900, data_sizes=(900, 9_000), window=3_000, windows=(3_000,), rounds=2)
    found = pushdown.measure(name, sizes.up_to(1_800))
    assert isinstance(found.values["both_vs_none"], float)
    assert set(found.values) >= {"window_both_vs_none", "evaluation_s_by_window", "evaluation_s_by_data"}
    assert [one.name for one in found.figures] == [f"{figure}-window", f"{figure}-data"]
    assert [x for x, _ in found.figures[1].lines["both"]] == [900.0, 1_800.0]


def test_the_sizes_end_with_the_one_that_was_asked_for() -> None:
    assert linked_data.FULL.up_to(50_000).triples == (10_000, 50_000)
    assert linked_data.FULL.up_to(10_000_000).triples == linked_data.FULL.triples
    assert pushdown.FULL.up_to(1_000_000).data_sizes == pushdown.FULL.data_sizes


def test_evaluations_over_data_of_two_sizes_agree(tmp_path: Path) -> None:
    sizes = linked_data.Sizes(triples=(10_000, 12_000), warm_up=0, elements=40)
    over = {size: linked_data.make_evaluators(linked_data.write_files(size, tmp_path)) for size in sizes.triples}
    for name in ("Q1", "Q2"):
        found = linked_data.measure_latencies(name, {size: made[name] for size, made in over.items()}, sizes)
        assert all(taken > 0 for taken in found.values())


def test_a_process_says_when_all_queries_have_answered(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stream = tmp_path / "rfid.tnq"
    stream.write_text("".join(map(linked_data.element_to_line, linked_data.make_attendance().elements(400))))
    linked_data.run_until_ready(stream, linked_data.write_files(10_000, tmp_path).files)
    word, seconds = capsys.readouterr().out.split()
    assert word == "ready" and 0 < float(seconds) < 60
