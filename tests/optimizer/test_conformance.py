"""Every query of the public suites and every scenario gives the same answers when its plan is optimised first."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pyoxigraph import Quad, Store

from headwater.algebra.build import plan_query
from headwater.algebra.plan import QueryPlan
from headwater.conformance.csrbench import DIALECTS, Bench, close_windows
from headwater.conformance.w3c import cases, run_case
from headwater.execution.evaluator import Evaluator
from headwater.execution.program import Program
from headwater.execution.query_evaluators import MakeEvaluator
from headwater.execution.registered import RegisteredQuery
from headwater.execution.static_data import StaticData
from headwater.kernel.evaluator_choice import make_evaluator, with_optimisation
from headwater.language.parser import parse
from headwater.optimizer.optimise import optimise
from headwater.optimizer.rules import ALL_FINISHING
from headwater.optimizer.statistics import Statistics
from headwater.reference.reference_evaluator import ReferenceEvaluator
from headwater.terms.durations import parse_duration
from headwater.windows.settings import QuerySettings, resolve_settings
from tests.conformance.citybench import CityQuery, citybench_programs
from tests.scenario_files import read_scenario, scenario_paths
from tests.shared_data import shared_data
from tests.test_scenarios import check, registered


def with_every_rule(plan: QueryPlan, statistics: Statistics) -> QueryPlan:
    return optimise(plan, statistics, finishing=ALL_FINISHING).plan


def optimised(plan: QueryPlan, settings: QuerySettings, static: StaticData) -> Evaluator:
    return ReferenceEvaluator(
        with_every_rule(plan, Statistics.of(static.quads_for_pattern(None, None, None))), settings, static
    )


def optimised_for_the_kernel(plan: QueryPlan, settings: QuerySettings, static: StaticData) -> Evaluator:
    return with_optimisation(make_evaluator, Statistics.of(static.quads_for_pattern(None, None, None)))(
        plan, settings, static
    )


class BothWays(ReferenceEvaluator):
    """Evaluates a plan and its optimised form over the same graphs, which take longer to copy than to ask."""

    def __init__(self, plan: QueryPlan, settings: QuerySettings, static: StaticData, statistics: Statistics) -> None:
        super().__init__(plan, settings, static)
        better = with_every_rule(plan, statistics)
        self.other = ReferenceEvaluator(better, settings, Store(), self._dataset)
        self.other._buffers = self._buffers
        self.changed = better != plan
        self.compared = 0

    def _evaluate(self, tick: int) -> list[object]:
        found = super()._evaluate(tick)
        assert self.other._evaluate(tick) == found
        self.compared += 1
        return found


@pytest.mark.parametrize("path", scenario_paths(), ids=lambda path: path.stem)
@pytest.mark.parametrize("evaluator", [optimised, optimised_for_the_kernel])
def test_scenario(path: Path, evaluator: MakeEvaluator) -> None:
    scenario = read_scenario(path)
    if scenario.error is not None:
        return
    queries = [registered(query, list(scenario.streams)) for query in scenario.queries]
    delay = parse_duration(scenario.delay) if scenario.delay != "0" else 0
    program = Program(queries, scenario.data, delay, evaluator)
    check(scenario, [program.advance(scenario.streams, ended=list(scenario.streams))])


def test_w3c() -> None:
    evaluations = [case for case in cases(shared_data("w3c")) if case.kind.evaluates]
    outcomes = [run_case(case, optimised) for case in evaluations]
    assert len([outcome for outcome in outcomes if outcome.skipped is None]) > 400
    assert [outcome.case.key for outcome in outcomes if outcome.problem is not None] == []


def test_csrbench() -> None:
    compared: list[BothWays] = []

    def both(plan: QueryPlan, settings: QuerySettings, static: StaticData) -> Evaluator:
        compared.append(BothWays(plan, settings, static, Statistics.of(static.quads_for_pattern(None, None, None))))
        return compared[-1]

    bench = Bench(shared_data("csrbench"), both)
    for dialect in DIALECTS:
        for number in (1, 2, 3, 4):
            assert any(answer.rows for answer in bench.answers(dialect, number, close_windows(0)))
    assert all(evaluator.compared > 3 for evaluator in compared)


@pytest.mark.parametrize("dialect", ["cqels", "csparql"])
def test_citybench(dialect: str, tmp_path: Path) -> None:
    queries = citybench_programs(shared_data("citybench"), tmp_path, rows=4)
    mine = [query for query in queries if query.name.startswith(dialect)]
    assert len(mine) == 12
    names = frozenset({"type", *(name for query in mine for name in re.findall(r":(\w+)", query.text))})
    compared: list[BothWays] = []
    for query in mine:
        static, statistics = mentioned_data(query, names)

        def both(
            plan: QueryPlan, settings: QuerySettings, static: StaticData, counts: Statistics = statistics
        ) -> Evaluator:
            compared.append(BothWays(plan, settings, static, counts))
            return compared[-1]

        plan = plan_query(parse(query.text), name=query.name, streams=query.stream_iris)
        program = Program([RegisteredQuery(plan, resolve_settings(plan))], static, 0, both)
        program.advance(query.elements(), ended=query.stream_iris)
    assert all(evaluator.compared > 3 for evaluator in compared)
    assert sum(evaluator.changed for evaluator in compared) > 6


def mentioned_data(query: CityQuery, names: frozenset[str]) -> tuple[Store, Statistics]:
    """The static graphs without the predicates that no query names, which would only be copied."""
    if query.datasets not in KNOWN:
        quads = [q for q in query.static_store() if q.predicate.value.replace("#", "/").rpartition("/")[2] in names]
        KNOWN[query.datasets] = quads, Statistics.of(quads)
    quads, statistics = KNOWN[query.datasets]
    store = Store()
    store.extend(quads)
    return store, statistics


KNOWN: dict[object, tuple[list[Quad], Statistics]] = {}
