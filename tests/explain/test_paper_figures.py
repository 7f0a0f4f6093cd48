"""Figures 1, 3 and 6 of the C-SPARQL paper, from its own query: which vertices there are, and what feeds what.

The paper assumes that the schema of the stream is `market.trdf(broker, tx, amount)`; here a sample of it says so.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest
from pyoxigraph import Quad, Store

from headwater.algebra.nodes import Window
from headwater.algebra.plan import QueryPlan
from headwater.algebra.scope import nodes_of
from headwater.execution.registered import RegisteredQuery
from headwater.explain.denotational_graph import denotational_graph
from headwater.explain.drawing_model import BoxKind, Drawing, VertexKind
from headwater.explain.operator_graph import operator_graph
from headwater.explain.paper_plan import push_to_sources
from headwater.explain.separate_sources import SourceVocabularies, separate_sources
from headwater.terms.model import Element, Literal, NamedNode, Triple
from headwater.windows.settings import resolve_settings
from tests.commands.running import headwater
from tests.explain.explain_queries import PAPER, plan_of
from tests.explain.test_explain_graphs import members, pairs, vertex
from tests.reference_programs import reference_program

B, X = "http://brokerscentral.org/accounts#", "http://stockexchange.org/exchanges#"
BROKERS, MARKET = NamedNode("http://brokerscentral.org/brokers.rdf"), NamedNode("http://stockexchange.org/market.trdf")
IS_FROM, DOES, WITH = NamedNode(B + "is_from"), NamedNode(X + "does"), NamedNode(X + "with")
KNOWN = SourceVocabularies({MARKET: frozenset({DOES, WITH})}, {BROKERS: frozenset({IS_FROM})})


def branches(drawing: Drawing) -> dict[str, list[str]]:
    """By the text of each vertex, the texts of what feeds it."""
    text = {v.id: " ".join(v.lines) for v in drawing.vertices}
    return {
        text[v.id]: sorted(text[edge.source] for edge in drawing.edges if edge.target == v.id)
        for v in drawing.vertices
        if any(edge.target == v.id for edge in drawing.edges)
    }


FIGURE_1 = {
    "graph pattern ?broker b:is_from ?country": ["FROM <…/brokers.rdf>"],
    "logical window ω [RANGE 1d TUMBLING]": ["stream <…/market.trdf>"],
    "graph pattern ?broker x:does ?tx": ["logical window ω [RANGE 1d TUMBLING]"],
    "graph pattern ?tx x:with ?amount": ["logical window ω [RANGE 1d TUMBLING]"],
    "join on ?tx": ["graph pattern ?broker x:does ?tx", "graph pattern ?tx x:with ?amount"],
    "join on ?broker": ["graph pattern ?broker b:is_from ?country", "join on ?tx"],
    'filter ?country = "CH" && ?amount >= 10': ["join on ?broker"],
    "aggregation A(?total, SUM, ?amount, {?broker})": ['filter ?country = "CH" && ?amount >= 10'],
    "project ?broker ?total": ["aggregation A(?total, SUM, ?amount, {?broker})"],
    "distinct": ["project ?broker ?total"],
    "result TotalAmountPerDayAndBroker": ["distinct"],
}

FIGURE_6 = {
    "graph pattern ?broker b:is_from ?country": ["FROM <…/brokers.rdf>"],
    'filter ?country = "CH"': ["graph pattern ?broker b:is_from ?country"],
    "project ?broker": ['filter ?country = "CH"'],
    "logical window ω [RANGE 1d TUMBLING]": ["stream <…/market.trdf>"],
    "graph pattern ?broker x:does ?tx ?tx x:with ?amount": ["logical window ω [RANGE 1d TUMBLING]"],
    "filter ?amount >= 10": ["graph pattern ?broker x:does ?tx ?tx x:with ?amount"],
    "project ?broker ?amount": ["filter ?amount >= 10"],
    "join on ?broker": ["project ?broker", "project ?broker ?amount"],
    "aggregation A(?total, SUM, ?amount, {?broker})": ["join on ?broker"],
    "project ?broker ?total": ["aggregation A(?total, SUM, ?amount, {?broker})"],
    "distinct": ["project ?broker ?total"],
    "result TotalAmountPerDayAndBroker": ["distinct"],
}


def test_figure_1_the_operators_before_optimisation() -> None:
    """A static branch on the left, stream and window on the right, one join above both, then filter and aggregation."""
    drawing = operator_graph(separate_sources(plan_of(PAPER), KNOWN), is_merged=False)
    assert branches(drawing) == FIGURE_1
    gray = {"stream", "logical window ω", "filter", "aggregation"}
    new = {VertexKind.STREAM, VertexKind.WINDOW, VertexKind.FILTER, VertexKind.AGGREGATION}
    assert {v.lines[0] for v in drawing.vertices if v.kind in new} == gray


def test_figure_6_the_optimised_operators() -> None:
    """Section 5.1: the filter is two, one on static and one on streaming data, and a projection is above each."""
    drawing = operator_graph(push_to_sources(separate_sources(plan_of(PAPER), KNOWN)))
    assert branches(drawing) == FIGURE_6


def test_figure_3_the_data_with_its_sources_apart() -> None:
    drawing = denotational_graph(separate_sources(plan_of(PAPER), KNOWN))
    sources = {box.label: members(drawing, box) for box in drawing.boxes if box.kind is BoxKind.SOURCE}
    assert sources == {
        "FROM <…/brokers.rdf>": {"b:is_from", "?country"},
        "window <…/market.trdf> [RANGE 1d TUMBLING]": {"x:does", "?tx", "x:with", "?amount"},
    }
    # Both sources bind ?broker, so it stands between them.
    assert drawing.free_vertices == (vertex(drawing, "?broker").id,)
    assert vertex(drawing, "?country").remarks == ('?country = "CH"',)
    assert vertex(drawing, "?amount").remarks == ("?amount >= 10",)
    assert {v.lines[0] for v in drawing.vertices if v.is_filled} == {"?broker", "?total"}
    assert {("?amount", "SUM"), ("?broker", "SUM"), ("SUM", "?total")} <= pairs(drawing)


def test_without_a_sample_of_the_stream_a_pattern_may_be_matched_by_every_source() -> None:
    plan = plan_of(PAPER)
    assert separate_sources(plan, SourceVocabularies({}, None)) == plan
    only_static = separate_sources(plan, SourceVocabularies({}, KNOWN.graphs))
    [box] = [box for box in denotational_graph(only_static).boxes if box.label.startswith("default graph")]
    assert "b:is_from" in members(denotational_graph(only_static), box)
    assert any(isinstance(node, Window) for node in nodes_of(only_static.root))


QUERIES = [
    PAPER,
    PAPER.replace("FROM <http://brokerscentral.org/brokers.rdf>\n", ""),
    PAPER.replace("?broker b:is_from ?country .", "OPTIONAL { ?broker b:is_from ?country }").replace(
        "?country = 'CH' &&", ""
    ),
    PAPER.replace("?tx x:with ?amount .", "?tx x:with ?amount . FILTER NOT EXISTS { ?broker b:is_from 'IT' }"),
    PAPER.replace("?tx x:with ?amount .", "?tx x:with ?amount . ?any ?predicate ?amount ."),
    PAPER.replace("?tx x:with ?amount .", "{ ?tx x:with ?amount } UNION { ?broker b:is_from ?amount }"),
    PAPER.replace("?tx x:with ?amount .", "?broker x:does/x:with ?amount . ?broker x:does* ?tx ."),
]


def random_data(seed: int, graph: NamedNode | None) -> tuple[Store, list[Element]]:
    """Brokers, and a stream of their transactions; each source keeps to its predicates."""
    chosen = random.Random(seed)
    store = Store()
    names = [NamedNode(f"{B}{name}") for name in "abc"]
    for name in names:
        for country in chosen.sample(["CH", "IT", "FR"], chosen.randint(0, 2)):
            store.add(Quad(name, IS_FROM, Literal(country), *([graph] if graph else [])))
    elements = []
    for number in range(12):
        transaction = NamedNode(f"{X}tx{chosen.randint(0, 8)}")
        amount = Literal(str(chosen.randint(5, 15)), datatype=NamedNode("http://www.w3.org/2001/XMLSchema#integer"))
        triples = [Triple(chosen.choice(names), DOES, transaction), Triple(transaction, WITH, amount)]
        elements.append(Element(number * 5 * 3_600_000_000, tuple(chosen.sample(triples, chosen.randint(1, 2)))))
    return store, elements


def answers_of(plan: QueryPlan, store: Store, elements: list[Element]) -> list[tuple[int, list[str]]]:
    program = reference_program([RegisteredQuery(plan, resolve_settings(plan))], store)
    step = program.advance({MARKET.value: elements}, ended=[MARKET.value])
    return [(answer.time, sorted(map(str, answer.rows))) for answer in step.answers]


@pytest.mark.parametrize("text", QUERIES)
def test_the_drawn_plans_have_the_answers_of_the_query(text: str) -> None:
    plan = plan_of(text)
    graph = BROKERS if plan.default_graphs else None
    known = SourceVocabularies(KNOWN.streams, {graph: frozenset({IS_FROM})})
    apart = separate_sources(plan, known)
    rows = 0
    for seed in range(6):
        store, elements = random_data(seed, graph)
        store.add_graph(BROKERS)
        expected = answers_of(plan, store, elements)
        assert answers_of(apart, store, elements) == expected
        assert answers_of(push_to_sources(apart), store, elements) == expected
        rows += sum(len(shown) for _, shown in expected)
    assert rows > 0


@pytest.fixture
def paper_files(tmp_path: Path) -> Callable[..., str]:
    """Runs `headwater explain` with the paper's query and samples of both sources."""
    query = tmp_path / "total.rq"
    query.write_text(PAPER)
    brokers = tmp_path / "brokers.ttl"
    brokers.write_text(f'<{B}urs> <{IS_FROM.value}> "CH" .\n')
    market = tmp_path / "market.tnq"
    market.write_text(f"0\t<{B}urs> <{DOES.value}> <{X}t> .\n0\t<{X}t> <{WITH.value}> 20 .\n".replace(" 20 ", ' "20" '))

    def run(*arguments: str) -> str:
        sources = ("--data", f"{brokers}@{BROKERS.value}", "--stream", f"{MARKET.value}={market}")
        result = headwater("explain", query, *sources, *arguments)
        assert result.exit_code == 0, result.stderr
        return result.stdout

    return run


def test_the_figures_on_a_command_line(paper_files: Callable[..., str]) -> None:
    first = paper_files("--graph", "operators", "--plan", "written")
    assert (first.count("graph pattern |"), first.count("join |"), first.count("(filter)")) == (3, 2, 1)
    sixth = paper_files("--graph", "operators", "--plan", "paper")
    assert (sixth.count("graph pattern |"), sixth.count("(filter)"), sixth.count("project |")) == (2, 2, 3)
    third = paper_files("--graph", "denotational", "--plan", "written")
    assert third.count("source: ") == 2
    evaluated = paper_files("--graph", "operators")
    assert ('?broker b:is_from "CH"' in evaluated, evaluated.count("(filter)")) == (True, 1)
    assert "Notes\n  each pattern is shown at the source" in paper_files("--plan", "written")


def test_a_sample_of_a_stream_is_files(tmp_path: Path) -> None:
    query = tmp_path / "total.rq"
    query.write_text(PAPER)
    result = headwater("explain", query, "--stream", f"{MARKET.value}=tcp://host:1")
    assert (result.exit_code, "give files as a sample" in " ".join(result.stderr.split())) == (2, True)
    ignored = headwater("explain", query, "--rules", "--plan", "written")
    assert "leave out --plan" in " ".join(ignored.stderr.split())
