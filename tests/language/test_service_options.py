"""OPTION (…) of SERVICE: what it may say, where it may stand, and what `explain` makes of it."""

from __future__ import annotations

import pytest

from headwater.algebra.build import plan_query
from headwater.algebra.nodes import Service
from headwater.algebra.scope import nodes_of
from headwater.algebra.to_sparql import to_sparql
from headwater.explain.plan_text import explain
from headwater.federation.policy.policies import POLICIES
from headwater.language.errors import QueryError
from headwater.language.parser import parse
from headwater.language.service_options import (
    POLICY_NAMES,
    Preference,
    ServiceClock,
    ServiceOptions,
    Strategy,
    strategy_of,
)
from headwater.terms.model import NamedNode

ENDPOINT = "<http://example.org/sparql>"
PATTERN = "{ ?who <http://example.org/followers> ?n }"


def service(clause: str) -> Service:
    (found,) = [
        node for node in nodes_of(plan_query(parse(f"SELECT * {{ {clause} }}")).root) if isinstance(node, Service)
    ]
    return found


ALL = (
    "OPTION (ACCURACY 0.75, LATENCY 500ms, BUDGET 10, POLICY WBM, RATES 'rates.csv', STRATEGY VIEW, PREFER ACCURACY, "
    "ENTRIES 10000, CLOCK STREAM, FILL)"
)
MEANT = ServiceOptions(
    0.75, 500_000, 10, Preference.ACCURACY, "WBM", Strategy.VIEW, 10_000, True, "rates.csv", ServiceClock.STREAM
)
GRAPH = NamedNode("http://example.org/rates")


@pytest.mark.parametrize(
    "clause",
    [
        f"SERVICE {ENDPOINT} {PATTERN} {ALL}",
        f"SERVICE {ENDPOINT} {ALL} {PATTERN}",
        f"service silent {ENDPOINT} {PATTERN} {ALL.lower()} . ?who ?p ?o",
        f"SERVICE {ENDPOINT} OPTION (FILL, clock Stream, ENTRIES 10000, PREFER accuracy, LATENCY PT0.5S) {PATTERN} "
        "OPTION (RATES \"rates.csv\", STRATEGY view, POLICY 'wbm', BUDGET 10, ACCURACY 75e-2)",
    ],
)
def test_options_in_any_order_before_or_after_the_braces(clause: str) -> None:
    assert service(clause).options == MEANT


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("BUDGET 0", ServiceOptions(budget=0)),
        ("ACCURACY 1", ServiceOptions(accuracy=1.0)),
        ("LATENCY 200", ServiceOptions(latency=200_000)),
        ("POLICY gnr-lru", ServiceOptions(policy="GNR-LRU")),
        ("POLICY wsj-learnt, FILL", ServiceOptions(policy="WSJ-LEARNT", fill=True)),
        ('POLICY "GNR-RND"', ServiceOptions(policy="GNR-RND")),
        ("STRATEGY HASH", ServiceOptions(strategy=Strategy.HASH)),
        (f"RATES {GRAPH}", ServiceOptions(rates=GRAPH)),
        ("CLOCK WALL", ServiceOptions(clock=ServiceClock.WALL)),
        (f"POLICY wsj-wbm, RATES {GRAPH}", ServiceOptions(policy="WSJ-WBM", rates=GRAPH)),
    ],
)
def test_each_option_alone(said: str, meant: ServiceOptions) -> None:
    assert service(f"SERVICE {ENDPOINT} {PATTERN} OPTION ({said})").options == meant


def test_a_clause_without_options_asks_at_each_tick_and_one_with_goals_keeps_a_view() -> None:
    assert service(f"SERVICE {ENDPOINT} {PATTERN}").options is None
    assert strategy_of(None) is Strategy.LOOP
    assert strategy_of(ServiceOptions(budget=3)) is Strategy.VIEW


CASES = [
    (f"SERVICE {ENDPOINT} {PATTERN} OPTION (‸ACURACY 0.5)", "did you mean ACCURACY?"),
    (f"SERVICE {ENDPOINT} {PATTERN} OPTION (‸)", "ACCURACY"),
    (f"SERVICE {ENDPOINT} {PATTERN} OPTION ‸ACCURACY 0.5", "expected ("),
    (f"SERVICE {ENDPOINT} {PATTERN} OPTION (ACCURACY ‸1.5)", "between 0 and 1"),
    (f"SERVICE {ENDPOINT} {PATTERN} OPTION (ACCURACY ‸many)", "a number"),
    (f"SERVICE {ENDPOINT} {PATTERN} OPTION (LATENCY ‸0ms)", "longer than zero"),
    (f"SERVICE {ENDPOINT} {PATTERN} OPTION (LATENCY 5 ‸parsecs)", "no unit of time"),
    (f"SERVICE {ENDPOINT} {PATTERN} OPTION (BUDGET ‸0.5)", "a number"),
    (f"SERVICE {ENDPOINT} {PATTERN} OPTION (ENTRIES ‸0)", "more than zero"),
    (f"SERVICE {ENDPOINT} {PATTERN} OPTION (POLICY ‸WBN)", "WBM"),
    (f"SERVICE {ENDPOINT} {PATTERN} OPTION (POLICY ‸7)", "LEARNT or WBM"),
    (f"SERVICE {ENDPOINT} {PATTERN} OPTION (STRATEGY ‸FAST)", "VIEW or LOOP or HASH"),
    (f"SERVICE {ENDPOINT} {PATTERN} OPTION (PREFER ‸BUDGET)", "ACCURACY or LATENCY"),
    (f"SERVICE {ENDPOINT} {PATTERN} OPTION (FILL ‸BUDGET 3)", ", or )"),
    (f"SERVICE {ENDPOINT} {PATTERN} OPTION (CLOCK ‸EVENT)", "WALL or STREAM"),
    (f"SERVICE {ENDPOINT} {PATTERN} OPTION (RATES ‸12)", "an IRI"),
    (f"SERVICE {ENDPOINT} {PATTERN} OPTION (RATES ‸?graph)", "an IRI"),
    (f"SERVICE {ENDPOINT} {PATTERN} OPTION (RATES ‸'')", "is empty"),
    (f"SERVICE {ENDPOINT} {PATTERN} OPTION (POLICY LRU, ‸RATES 'r.csv')", "only WBM takes rates"),
    (f"SERVICE {ENDPOINT} OPTION (‸RATES 'r.csv') {PATTERN} OPTION (POLICY LEARNT)", "only WBM takes rates"),
    (f"SERVICE {ENDPOINT} {PATTERN} OPTION (STRATEGY LOOP, ‸RATES 'r.csv')", "keeps no view"),
    (f"SERVICE {ENDPOINT} {PATTERN} OPTION (BUDGET 3, ‸BUDGET 4)", "twice"),
    (f"SERVICE {ENDPOINT} OPTION (BUDGET 3) {PATTERN} OPTION (‸BUDGET 3)", "twice"),
    (f"SERVICE {ENDPOINT} {PATTERN} OPTION (BUDGET 3) ‸OPTION (FILL)", "cannot stand here"),
    (f"?who ?p ?e . SERVICE ?e {PATTERN} OPTION (STRATEGY ‸HASH)", "needs one endpoint"),
    (f"?who ?p ?e . SERVICE ?e {PATTERN} OPTION (‸FILL)", "needs one endpoint"),
]


@pytest.mark.parametrize(("text", "part"), CASES)
def test_errors_point_and_say_what_was_expected(text: str, part: str) -> None:
    whole = f"SELECT * {{ {text} }}"
    with pytest.raises(QueryError) as caught:
        parse(whole.replace("‸", ""))
    assert caught.value.offset == whole.index("‸")
    assert part in str(caught.value)


def test_the_text_for_an_engine_leaves_options_out_and_explain_shows_them_with_the_strategy() -> None:
    plan = plan_query(parse(f"SELECT * {{ SERVICE {ENDPOINT} {PATTERN} {ALL} }}"))
    assert "OPTION" not in to_sparql(plan.root)
    shown = (
        "by local view; ACCURACY 0.75, LATENCY 500ms, BUDGET 10, PREFER ACCURACY, POLICY WBM, "
        'RATES "rates.csv", ENTRIES 10000, CLOCK STREAM, FILL'
    )
    assert shown in explain(plan)
    assert "by nested loop" in explain(plan_query(parse(f"SELECT * {{ SERVICE {ENDPOINT} {PATTERN} }}")))
    hashed = f"SELECT * {{ SERVICE {ENDPOINT} {PATTERN} OPTION (STRATEGY HASH) }}"
    assert "by hash join" in explain(plan_query(parse(hashed)))


def test_the_policies_of_the_language_are_those_that_exist() -> None:
    assert set(POLICY_NAMES) == set(POLICIES)


def test_options_of_the_api_are_checked_and_fill_what_a_clause_leaves_open() -> None:
    assert ServiceOptions(budget=3).over(ServiceOptions(budget=5, latency=7)) == ServiceOptions(budget=3, latency=7)
    for wrong in (
        {"accuracy": 1.1},
        {"latency": 0},
        {"budget": -1},
        {"entries": 0},
        {"policy": "BEST"},
        {"rates": 5},
        {"rates": ""},
    ):
        with pytest.raises(ValueError):
            ServiceOptions(**wrong)


def test_rates_choose_wbm_and_defaults_do_not_contradict_a_clause() -> None:
    rated = ServiceOptions(rates=GRAPH)
    assert rated.chosen_policy == "WBM"
    assert ServiceOptions(budget=3).chosen_policy == "LEARNT"
    assert rated.over(ServiceOptions(policy="LRU", strategy=Strategy.LOOP, budget=3)) == ServiceOptions(
        rates=GRAPH, budget=3
    )
    assert ServiceOptions(policy="LRU").over(rated) == ServiceOptions(policy="LRU")
    assert ServiceOptions(strategy=Strategy.HASH).over(rated) == ServiceOptions(strategy=Strategy.HASH)
    assert ServiceOptions(budget=3).over(rated) == ServiceOptions(rates=GRAPH, budget=3)
