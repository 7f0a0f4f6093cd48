"""Aggregates over several streams (C-SPARQL, section 5.2): `python -m benchmarks.push_aggregates [--rounds N]`.

The paper's sums of amounts by seller and market, where each stream is one market (totally distributable), and by seller
alone (partially). Three plans of each take turns over the same streams: AGGREGATE as it was written, the grouping that
the engine makes of it below DISTINCT, and this grouping distributed over the streams. All give the same answers.

Prints one JSON object last: the median CPU milliseconds of the evaluating thread for 10 s of the streams.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time

from pyoxigraph import Store

from benchmarks.reporting import machine, print_result, progress, rounded
from headwater.algebra.build import plan_query
from headwater.algebra.plan import QueryPlan
from headwater.kernel.kernel_evaluator import KernelEvaluator
from headwater.language.parser import parse
from headwater.optimizer.optimise import optimise
from headwater.optimizer.rewrites import group_aggregates
from headwater.optimizer.rules import ALL_FINISHING, REWRITES
from headwater.terms.model import SECOND, Element, Literal, NamedNode, Triple
from headwater.windows.settings import resolve_settings

X = "http://stockexchanges.org/exchanges#"
BROKERS = NamedNode("http://brokerscentral.org/brokers.rdf")
MARKETS = tuple(f"http://stockexchange.org/market{number}.trdf" for number in range(3))
WINDOWS = {"tumbling": "RANGE 10s TUMBLING", "sliding": "RANGE 10s STEP 1s"}
CLASSES = {"totally": ("?seller ?market", "?seller, ?market"), "partially": ("?seller", "?seller")}
SELLERS = 100
TRANSACTIONS = 1_000
"""In each market, in 10 s."""


def make_plans(of_class: str, window: str) -> dict[str, QueryPlan]:
    shown, group = CLASSES[of_class]
    streams = " ".join(f"FROM STREAM <{market}> [{WINDOWS[window]}]" for market in MARKETS)
    text = f"""PREFIX x: <{X}> SELECT DISTINCT {shown} ?tot FROM <{BROKERS.value}> {streams}
        WHERE {{ GRAPH ?market {{ ?Transaction x:seller ?seller . ?Transaction x:with ?amount }} }}
        AGGREGATE {{ (?tot, SUM(?amount), {{{group}}}) }}"""
    plan = plan_query(parse(text), name="Movements")
    written = tuple(rule for rule in REWRITES if rule is not group_aggregates.RULE)
    return {
        "as written": optimise(plan, rewrites=written).plan,
        "grouping": optimise(plan).plan,
        "distributed": optimise(plan, finishing=ALL_FINISHING).plan,
    }


def make_transactions(market: int, round_index: int) -> list[Element]:
    """The transactions of one market in 10 s."""
    chance = random.Random(10 * round_index + market)
    elements = []
    for number in range(TRANSACTIONS):
        transaction = NamedNode(f"{X}tx{market}-{round_index}-{number}")
        seller = NamedNode(f"{X}seller{chance.randrange(SELLERS)}")
        triples = (
            Triple(transaction, NamedNode(X + "seller"), seller),
            Triple(transaction, NamedNode(X + "with"), Literal(chance.randrange(1, 1000))),
        )
        instant = 10 * SECOND * round_index + 10 * SECOND * (number + 1) // TRANSACTIONS
        elements.append(Element(instant, triples, None, (TRANSACTIONS * round_index + number,)))
    return elements


def measure(of_class: str, window: str, rounds: int) -> dict[str, float]:
    store = Store()
    store.add_graph(BROKERS)
    plans = make_plans(of_class, window)
    evaluators = {name: KernelEvaluator(plan, resolve_settings(plan), store) for name, plan in plans.items()}
    taken: dict[str, list[float]] = {name: [] for name in evaluators}
    for index in range(rounds + 1):
        streams = [make_transactions(market, index) for market in range(len(MARKETS))]
        answers: list[list[list[str]]] = []
        for name, evaluator in evaluators.items():
            batch = dict(zip(evaluator.keys, streams, strict=True))
            begun = time.thread_time()
            found = evaluator.advance(batch, 10 * SECOND * (index + 1) + 1)
            # The first round compiles code and fills the window.
            if index:
                taken[name].append(time.thread_time() - begun)
            answers.append([sorted(map(str, one.rows)) for one in found])
        if not answers[0] or any(one != answers[0] for one in answers):
            raise AssertionError("the plans must give the same answers")
    return {name: rounded(statistics.median(times) * 1e3) for name, times in taken.items()}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.push_aggregates", description="Section 5.2.")
    parser.add_argument("--rounds", type=int, default=5, help="how many times 10 s are measured")
    arguments = parser.parse_args()
    facts = machine()
    values: dict[str, dict[str, dict[str, float]]] = {}
    for of_class in CLASSES:
        values[of_class] = {window: measure(of_class, window, arguments.rounds) for window in WINDOWS}
        progress(f"{of_class}: {values[of_class]}")
    print_result({**values, "machine": facts})


if __name__ == "__main__":
    main()
