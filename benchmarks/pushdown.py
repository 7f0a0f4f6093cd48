"""Pushing filters: `python -m benchmarks.pushdown [--quick] [--only NAME] [--max-triples N] [--plots FOLDER]`.

Figure 7 of the C-SPARQL paper: the sums of the transactions of at least 10 euros done by Swiss brokers. Brokers are
static, transactions stream; each has one filter. Two experiments:

- `paper`: the query of section 3.4, as the paper has it: the default graph is the merge of brokers and market
- `segments`: the same sums by the market segments that a broker trades in, eight each, with GRAPH for each source

Four plans of a query take turns over the same data: with the filters where they were written, above the join (`none`),
pushed to the brokers (`static`), to the transactions (`stream`), or each to its side (`both`, the plan that the engine
chooses).

An evaluation is a tumbling window from its triples, already read, to its answer. By window size the static data has
`static_triples`; by data size the window has `window` transactions. Every answer is compared with those of the others.
The CPU time of the evaluating thread is measured, because other load on the machine slows long evaluations most.

Prints one JSON object last, with an object for each experiment: `both_vs_none` is how many times as long an evaluation
takes without pushing, with the most static triples; `window_both_vs_none` the same for the largest window.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt
from pyoxigraph import Literal, NamedNode, Quad, Store

from benchmarks.reporting import (
    PLOTS,
    Figure,
    Findings,
    demand,
    draw,
    machine,
    print_result,
    progress,
    rounded,
)
from headwater.algebra.build import plan_query
from headwater.algebra.nodes import Bgp, Node
from headwater.algebra.plan import QueryPlan
from headwater.algebra.scope import nodes_of
from headwater.execution.answers import Answer
from headwater.kernel.kernel_evaluator import KernelEvaluator
from headwater.language.parser import parse
from headwater.optimizer.optimise import optimise
from headwater.optimizer.rewrites import (
    bind_equalities,
    filter_static_parts,
    narrow_static_parts,
    push_filters,
    split_filters,
)
from headwater.optimizer.rule import Rule
from headwater.optimizer.rules import FINISHING, REWRITES
from headwater.terms.element_columns import ElementColumns
from headwater.terms.ids.term_ids import encode
from headwater.terms.model import SECOND
from headwater.windows.settings import resolve_settings

MARKET = "http://stockexchange.org/market.trdf"
BROKERS = NamedNode("http://brokerscentral.org/brokers.rdf")
_B, _X = "http://brokerscentral.org/accounts#", "http://stockexchange.org/exchanges#"
_DOES, _WITH = (NamedNode(_X + name) for name in ("does", "with"))
PAPER = f"""REGISTER QUERY TotalAmountPerDayAndBroker AS
PREFIX b: <{_B}>
PREFIX x: <{_X}>

SELECT DISTINCT ?broker ?total
FROM <{BROKERS.value}>
FROM STREAM <{MARKET}>
[RANGE 24h TUMBLING]
WHERE {{
  ?broker b:is_from ?country .
  ?broker x:does ?tx .
  ?tx x:with ?amount .
  FILTER (?country = 'CH' ^^ ?amount >= 10)
}}
AGGREGATE {{ (?total, SUM(?amount), ?broker) }}"""
SEGMENTS = f"""PREFIX b: <{_B}>
PREFIX x: <{_X}>
SELECT ?segment (SUM(?amount) AS ?total)
FROM NAMED <{BROKERS.value}>
FROM NAMED STREAM <{MARKET}> [RANGE 24h TUMBLING]
WHERE {{
  GRAPH <{BROKERS.value}> {{ ?broker b:is_from ?country . ?broker b:trades_in ?segment }}
  GRAPH <{MARKET}> {{ ?broker x:does ?tx . ?tx x:with ?amount }}
  FILTER(?country = "CH" && ?amount >= 10)
}}
GROUP BY ?segment"""
WIDTH = 24 * 3600 * SECOND
COUNTRIES = 50
SEGMENT_COUNT = 100
SMALL = 0.9
"""The share of transactions below 10 euros."""


@dataclass(frozen=True, slots=True)
class Experiment:
    """A query over brokers, each of which trades in so many segments."""

    query: str
    traded: int

    @property
    def triples_per_broker(self) -> int:
        return 1 + self.traded


EXPERIMENTS = {"paper": Experiment(PAPER, 0), "segments": Experiment(SEGMENTS, 8)}


def is_about_brokers(node: Node) -> bool:
    """Whether all patterns of a part are about brokers, which do not stream."""
    triples = [triple for inner in nodes_of(node) if isinstance(inner, Bgp) for triple in inner.triples]
    return all(isinstance(one.predicate, NamedNode) and one.predicate.value.startswith(_B) for one in triples)


def _push_to(side: str, may_filter: Callable[[Node], bool]) -> Rule:
    """The rule that pushes filters, to one side of joins only."""
    rewrite = partial(push_filters.push_filters, may_filter=may_filter)
    return replace(push_filters.RULE, name=f"push filters to the {side} side", rewrite=rewrite)


_MOVING = (split_filters.RULE, bind_equalities.RULE, push_filters.RULE, narrow_static_parts.RULE)
_STAYING = tuple(rule for rule in REWRITES if rule not in _MOVING)
_TIDYING = tuple(rule for rule in FINISHING if rule is not filter_static_parts.RULE)
STRATEGIES: dict[str, tuple[tuple[Rule, ...], tuple[Rule, ...]]] = {
    "none": (_STAYING, _TIDYING),
    "static": ((*_STAYING, split_filters.RULE, _push_to("static", is_about_brokers)), _TIDYING),
    "stream": (
        (*_STAYING, split_filters.RULE, _push_to("stream", lambda node: not is_about_brokers(node))),
        _TIDYING,
    ),
    "both": (REWRITES, FINISHING),
}
"""The rules of each plan: those applied again and again, and those at the end."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """`rounds` windows are measured, after one for warming up."""

    static_triples: int = 100_000
    data_sizes: tuple[int, ...] = (10_000, 100_000, 1_000_000)
    window: int = 100_000
    windows: tuple[int, ...] = (1_000, 10_000, 100_000)
    rounds: int = 7

    def up_to(self, most: int) -> Sizes:
        """The same sizes, with at most `most` static triples."""
        kept = tuple(size for size in self.data_sizes if size < most)
        sizes = (*kept, most) if kept != self.data_sizes else self.data_sizes
        return replace(self, static_triples=min(most, self.static_triples), data_sizes=sizes)


FULL = Sizes()
QUICK = Sizes(static_triples=20_000, data_sizes=(10_000, 100_000), window=20_000, windows=(1_000, 20_000), rounds=5)


def make_plans(experiment: Experiment) -> dict[str, QueryPlan]:
    """The plan of each strategy; all give the same answers."""
    plan = plan_query(parse(experiment.query), name="Totals")
    return {
        name: optimise(plan, rewrites=rewrites, finishing=finishing).plan
        for name, (rewrites, finishing) in STRATEGIES.items()
    }


def make_brokers(experiment: Experiment, triples: int) -> Store:
    """A store with about `triples` triples on brokers."""
    store = Store()
    store.bulk_extend(_broker_quads(triples // experiment.triples_per_broker, experiment.traded))
    return store


def _broker_quads(count: int, traded: int) -> Iterator[Quad]:
    countries = [Literal("CH"), *(Literal(f"C{number}") for number in range(1, COUNTRIES))]
    for number in range(count):
        broker = NamedNode(f"{_B}broker{number}")
        yield Quad(broker, NamedNode(_B + "is_from"), countries[number % COUNTRIES], BROKERS)
        for place in range(traded):
            segment = NamedNode(f"{_B}segment{(7 * number + 11 * place) % SEGMENT_COUNT}")
            yield Quad(broker, NamedNode(_B + "trades_in"), segment, BROKERS)


def make_transactions(brokers: int, window: int, rounds: int) -> list[ElementColumns]:
    """The elements of some windows, `window` transactions each, of two triples, as a source gives them."""
    chance = random.Random(5)
    of_broker = np.array([encode(NamedNode(f"{_B}broker{number}")) for number in range(brokers)])
    amounts = [np.array([encode(Literal(n)) for n in numbers]) for numbers in (range(10), range(10, 1000))]
    does, with_ = encode(_DOES), encode(_WITH)
    contents = []
    for round_index in range(rounds):
        base = round_index * window
        tx = [encode(NamedNode(f"{_X}tx{base + i}")) for i in range(window)]
        triples = np.empty((2 * window, 3), dtype=np.int64)
        triples[0::2, 0] = of_broker[[chance.randrange(brokers) for _ in range(window)]]
        triples[0::2, 1], triples[0::2, 2] = does, tx
        triples[1::2, 0], triples[1::2, 1] = tx, with_
        triples[1::2, 2] = [chance.choice(amounts[chance.random() > SMALL]) for _ in range(window)]
        contents.append(_make_elements(triples, round_index, base))
    return contents


def _make_elements(triples: npt.NDArray[np.int64], round_index: int, base: int) -> ElementColumns:
    """Transactions at equal distances, the last one when the window closes; without texts, which no plan needs."""
    count = triples.shape[0] // 2
    times = round_index * WIDTH + np.linspace(WIDTH / count, WIDTH, count).astype(np.int64)
    starts = np.arange(0, 2 * count + 1, 2, dtype=np.int64)
    positions = (base + np.arange(count, dtype=np.int64)).reshape(-1, 1)
    return ElementColumns(times, starts, triples, positions, is_whole=False)


@dataclass(frozen=True, slots=True)
class EvaluationTimes:
    """The median seconds of an evaluation and the seconds until the query was ready, by strategy."""

    evaluation: dict[str, float]
    ready: dict[str, float]

    @property
    def gain(self) -> float:
        return self.evaluation["none"] / self.evaluation["both"]


def measure_evaluations(experiment: Experiment, static_triples: int, window: int, rounds: int) -> EvaluationTimes:
    """Evaluate the same windows with all strategies in turns; their answers must be the same."""
    store = make_brokers(experiment, static_triples)
    ready: dict[str, float] = {}
    evaluators: dict[str, KernelEvaluator] = {}
    for name, plan in make_plans(experiment).items():
        begun = time.perf_counter()
        evaluators[name] = KernelEvaluator(plan, resolve_settings(plan), store)
        ready[name] = time.perf_counter() - begun
    taken: dict[str, list[float]] = {name: [] for name in evaluators}
    row_count = 0
    brokers = static_triples // experiment.triples_per_broker
    for index, content in enumerate(make_transactions(brokers, window, rounds + 1)):
        answers_by_name: dict[str, list[Answer]] = {}
        for name, evaluator in evaluators.items():
            begun = time.thread_time()
            answers_by_name[name] = list(evaluator.advance({evaluator.keys[0]: content}, (index + 1) * WIDTH + 1))
            if index:
                taken[name].append(time.thread_time() - begun)
        rows = [[answer.rows for answer in answers] for answers in answers_by_name.values()]
        if any(one != rows[0] for one in rows):
            raise AssertionError("the plans must give the same answers")
        row_count += sum(map(len, rows[0]))
    if not row_count:
        raise AssertionError("no broker was found, so nothing was compared")
    return EvaluationTimes({name: statistics.median(times) for name, times in taken.items()}, ready)


def measure(name: str, sizes: Sizes) -> Findings:
    """Measure one experiment."""
    experiment = EXPERIMENTS[name]
    by_window: dict[str, dict[str, float]] = {name: {} for name in STRATEGIES}
    by_data: dict[str, dict[str, float]] = {name: {} for name in STRATEGIES}
    ready: dict[str, dict[str, float]] = {name: {} for name in STRATEGIES}
    findings = Findings({"static_triples": sizes.static_triples, "window": sizes.window})
    for window in sizes.windows:
        times = measure_evaluations(experiment, sizes.static_triples, window, sizes.rounds)
        _add_times(by_window, window, times.evaluation)
        findings.values["window_both_vs_none"] = rounded(times.gain)
        progress(f"{window} transactions, {sizes.static_triples} static triples: {_times_to_text(times)}")
    for triples in sizes.data_sizes:
        times = measure_evaluations(experiment, triples, sizes.window, sizes.rounds)
        _add_times(by_data, triples, times.evaluation)
        _add_times(ready, triples, times.ready)
        findings.values["both_vs_none"] = rounded(times.gain)
        progress(f"{sizes.window} transactions, {triples} static triples: {_times_to_text(times)}")
    findings.values |= {"evaluation_s_by_window": by_window, "evaluation_s_by_data": by_data, "ready_s_by_data": ready}
    for kind, title, x, values in (
        ("window", "Pushing filters, by window size", "transactions in the window", by_window),
        ("data", "Pushing filters, by size of the data set", "static triples", by_data),
    ):
        lines = {s: [(float(size), taken * 1e3) for size, taken in points.items()] for s, points in values.items()}
        figure = f"pushdown-{kind}" if name == "segments" else f"pushdown-{name}-{kind}"
        findings.figures.append(Figure(figure, title, x, "milliseconds per evaluation", lines))
    return findings


def _add_times(into: dict[str, dict[str, float]], size: int, times: dict[str, float]) -> None:
    for name, taken in times.items():
        into[name][str(size)] = rounded(taken)


def _times_to_text(times: EvaluationTimes) -> str:
    return ", ".join(f"{name} {taken * 1e3:.2f} ms" for name, taken in times.evaluation.items())


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pushdown", description="Pushing filters.")
    parser.add_argument("--quick", action="store_true", help="fewer and smaller sizes")
    parser.add_argument("--only", choices=EXPERIMENTS, help="one of the experiments")
    parser.add_argument("--max-triples", type=int, help="the most static triples")
    parser.add_argument("--plots", type=Path, help=f"where the figures go; of the full form: {PLOTS.name} in docs")
    arguments = parser.parse_args()
    demand("matplotlib")
    facts = machine()
    sizes = QUICK if arguments.quick else FULL
    if arguments.max_triples is not None:
        sizes = sizes.up_to(arguments.max_triples)
    findings = {name: measure(name, sizes) for name in EXPERIMENTS if arguments.only in (None, name)}
    folder = arguments.plots or (None if arguments.quick or arguments.max_triples is not None else PLOTS)
    if folder is not None:
        draw([figure for one in findings.values() for figure in one.figures], folder)
    print_result({**{name: one.values for name, one in findings.items()}, "quick": arguments.quick, "machine": facts})


if __name__ == "__main__":
    main()
