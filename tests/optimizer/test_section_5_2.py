"""Section 5.2 of the C-SPARQL paper: aggregates that are totally, partially and not distributable over streams."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pytest
from pyoxigraph import Store

from headwater.algebra.build import plan_query
from headwater.algebra.nodes import Aggregation, Extend, Graph, Group, Node, Union
from headwater.algebra.plan import QueryPlan
from headwater.algebra.scope import nodes_of
from headwater.execution.program import Program
from headwater.execution.query_evaluators import MakeEvaluator
from headwater.execution.registered import RegisteredQuery
from headwater.kernel.evaluator_choice import make_evaluator
from headwater.language.parser import parse
from headwater.optimizer.optimise import optimise
from headwater.optimizer.rules import ALL_FINISHING
from headwater.reference.reference_evaluator import ReferenceEvaluator
from headwater.terms.model import SECOND, Element, Literal, NamedNode, Triple
from headwater.windows.settings import resolve_settings
from tests.language.paper_queries import CSPARQL

X = "http://stockexchanges.org/exchanges#"
BROKERS = "http://brokerscentral.org/brokers.rdf"
MARKET = "http://stockexchange.org/market.trdf"
MARKETS = tuple(f"http://stockexchange.org/market{number}.trdf" for number in range(3))
PAPER = CSPARQL["section 5.2, movements per seller and market"].replace("?Tot", "?tot").replace("24 hours", "10s")
STREAMS = " ".join(f"FROM STREAM <{market}> [RANGE 10s TUMBLING]" for market in MARKETS)
TRANSACTIONS = "GRAPH ?market { ?Transaction x:seller ?seller . ?Transaction x:with ?amount }"
HEAD = f"PREFIX x: <{X}> "
TOTALLY = (
    f"{HEAD} SELECT DISTINCT ?seller ?market ?tot FROM <{BROKERS}> {STREAMS} WHERE {{ {TRANSACTIONS} }} "
    "AGGREGATE { (?tot, SUM(?amount), {?seller, ?market}) }"
)
PARTIALLY = (
    f"{HEAD} SELECT DISTINCT ?seller ?tot FROM <{BROKERS}> {STREAMS} WHERE {{ {TRANSACTIONS} }} "
    "AGGREGATE { (?tot, SUM(?amount), {?seller}) }"
)
NOT = f"{HEAD} SELECT (COUNT(DISTINCT ?amount) AS ?amounts) FROM <{BROKERS}> {STREAMS} WHERE {{ {TRANSACTIONS} }}"
QUERIES = {"paper": PAPER, "totally": TOTALLY, "partially": PARTIALLY, "not": NOT}


def plan_of(name: str) -> QueryPlan:
    return plan_query(parse(QUERIES[name]), name="Q")


def distributed(plan: QueryPlan) -> QueryPlan:
    """The plan with all rules, also those that are not applied by default."""
    return optimise(plan, finishing=ALL_FINISHING).plan


def groups_of(node: Node) -> list[Group]:
    return [one for one in nodes_of(node) if isinstance(one, Group)]


def streams_below(node: Node) -> list[str]:
    return [one.name.value for one in nodes_of(node) if isinstance(one, Graph)]


def test_section_5_2_totally_distributable_each_stream_sums_its_own_market() -> None:
    plan = distributed(plan_of("totally"))
    groups = groups_of(plan.root)
    assert [streams_below(group) for group in groups] == [[market] for market in MARKETS]
    assert {tuple(call.function for _, call in group.aggregates) for group in groups} == {("SUM",)}
    assert sum(isinstance(one, Union) for one in nodes_of(plan.root)) == len(MARKETS) - 1
    assert not any(isinstance(one, Aggregation) for one in nodes_of(plan.root))


def test_section_5_2_partially_distributable_the_sum_of_the_sums() -> None:
    top, *parts = groups_of(distributed(plan_of("partially")).root)
    assert [call.function for _, call in top.aggregates] == ["SUM"]
    assert [streams_below(part) for part in parts] == [[market] for market in MARKETS]
    assert {tuple(call.function for _, call in part.aggregates) for part in parts} == {("PARTIAL_SUM",)}


def test_section_5_2_not_distributable_distinct_amounts_come_together() -> None:
    (group,) = groups_of(distributed(plan_of("not")).root)
    assert streams_below(group) == ["market"]


def test_section_5_2_the_query_of_the_paper_is_one_grouping() -> None:
    """It has one stream, so that there is nothing to distribute; DISTINCT is applied to the aggregates."""
    for plan in (optimise(plan_of("paper")).plan, distributed(plan_of("paper"))):
        (group,) = groups_of(plan.root)
        assert [variable.value for variable, _ in group.keys] == ["seller", "market"]
        assert not any(isinstance(one, Aggregation | Extend) for one in nodes_of(plan.root))


def transactions(seed: int) -> dict[str, list[Element]]:
    random = Random(seed)
    streams: dict[str, list[Element]] = {}
    for market in (MARKET, *MARKETS):
        elements = []
        for number in range(12):
            transaction = NamedNode(f"{X}tx{random.randrange(9)}")
            seller = NamedNode(f"{X}seller{random.randrange(3)}")
            triples = (
                Triple(transaction, NamedNode(X + "seller"), seller),
                Triple(transaction, NamedNode(X + "with"), Literal(random.randrange(1, 4))),
            )
            elements.append(Element(2 * (number + 1) * SECOND, triples, None, (number,)))
        streams[market] = elements
    return streams


def answers(plan: QueryPlan, evaluator: MakeEvaluator, seed: int) -> Sequence[tuple[int, list[str]]]:
    store = Store()
    store.add_graph(NamedNode(BROKERS))
    program = Program([RegisteredQuery(plan, resolve_settings(plan))], store, 0, evaluator)
    streams = {name: elements for name, elements in transactions(seed).items() if name in program.inputs}
    step = program.advance(streams, ended=list(streams))
    return [(answer.time, sorted(map(str, answer.rows))) for answer in step.answers]


@pytest.mark.parametrize("name", QUERIES)
@pytest.mark.parametrize("seed", range(3))
def test_section_5_2_answers_are_the_same_with_and_without_distribution(name: str, seed: int) -> None:
    plan = plan_of(name)
    truth = answers(plan, ReferenceEvaluator, seed)
    assert any(rows for _, rows in truth)
    for rewritten in (optimise(plan).plan, distributed(plan)):
        for evaluator in (ReferenceEvaluator, make_evaluator):
            assert answers(rewritten, evaluator, seed) == truth
