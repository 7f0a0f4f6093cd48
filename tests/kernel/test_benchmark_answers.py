"""The kernel with optimised plans gives the reference's answers to CSRBench and CityBench over their own data."""

from __future__ import annotations

import pytest
from pyoxigraph import Store

from headwater.algebra.build import plan_query
from headwater.algebra.plan import QueryPlan
from headwater.conformance.csrbench import DIALECTS, Bench
from headwater.execution.answers import Answer
from headwater.execution.program import Program
from headwater.execution.query_evaluators import MakeEvaluator
from headwater.execution.registered import RegisteredQuery
from headwater.kernel.evaluator_choice import with_optimisation
from headwater.kernel.kernel_evaluator import KernelEvaluator
from headwater.language.parser import parse
from headwater.optimizer.statistics import Statistics
from headwater.reference.reference_evaluator import ReferenceEvaluator
from headwater.terms.model import Element
from headwater.windows.settings import resolve_settings
from tests.conformance.citybench import citybench_programs
from tests.shared_data import shared_data


def answers(
    plan: QueryPlan, static: Store, streams: dict[str, list[Element]], evaluator: MakeEvaluator
) -> list[Answer]:
    program = Program([RegisteredQuery(plan, resolve_settings(plan))], static, 0, evaluator)
    return list(program.advance(streams, ended=list(streams)).answers)


@pytest.mark.parametrize("number", [1, 2, 3, 4])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_csrbench(dialect: str, number: int) -> None:
    bench = Bench(shared_data("csrbench"))
    plan = plan_query(parse(bench.text(dialect, number)))
    streams = {plan.windows[0].stream.value: bench.elements}
    found = answers(plan, Store(), streams, with_optimisation(KernelEvaluator))
    assert any(answer.rows for answer in found)
    assert found == answers(plan, Store(), streams, ReferenceEvaluator)


@pytest.mark.slow
def test_citybench(tmp_path_factory: pytest.TempPathFactory) -> None:
    queries = citybench_programs(shared_data("citybench"), tmp_path_factory.mktemp("citybench"), rows=6)
    assert len(queries) == 24
    said = 0
    for query in queries:
        plan = plan_query(parse(query.text), name=query.name, streams=query.stream_iris)
        static, streams = query.static_store(), query.elements()
        found = answers(
            plan,
            static,
            streams,
            with_optimisation(KernelEvaluator, Statistics.of(static.quads_for_pattern(None, None, None))),
        )
        said += any(answer.rows for answer in found)
        assert found == answers(plan, static, streams, ReferenceEvaluator), query.name
    assert said > 15
