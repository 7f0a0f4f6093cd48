"""The kernel gives the answers of the definition: on every scenario, on generated queries and streams, in any cut."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import Store

from headwater.algebra.build import plan_query
from headwater.execution.program import Program
from headwater.execution.program_steps import StepResult
from headwater.execution.registered import RegisteredQuery
from headwater.kernel.compiling.unsupported import UnsupportedByKernel
from headwater.kernel.kernel_evaluator import KernelEvaluator
from headwater.language.parser import parse
from headwater.terms.durations import parse_duration
from headwater.windows.model import Bounds
from headwater.windows.settings import Options, resolve_settings
from tests.execution.test_laws import EX, Case, as_solutions, cases, run_whole
from tests.optimised_evaluators import make_optimised_evaluator
from tests.reference.naive import Solution
from tests.scenario_files import Scenario, read_scenario, scenario_paths
from tests.test_scenarios import check, registered

RUNNING = [path for path in scenario_paths() if read_scenario(path).error is None]


def program(scenario: Scenario) -> Program:
    queries = [registered(query, list(scenario.streams)) for query in scenario.queries]
    delay = parse_duration(scenario.delay) if scenario.delay != "0" else 0
    return Program(queries, scenario.data, delay, make_optimised_evaluator)


@pytest.mark.parametrize("path", RUNNING, ids=lambda path: path.stem)
def test_scenario(path: Path) -> None:
    scenario = read_scenario(path)
    for query in scenario.queries:
        found = registered(query, list(scenario.streams))
        KernelEvaluator(found.plan, found.settings, scenario.data)
    check(scenario, [program(scenario).advance(scenario.streams, ended=list(scenario.streams))])


@pytest.mark.parametrize("path", RUNNING, ids=lambda path: path.stem)
def test_scenario_in_single_elements_with_restarts(path: Path) -> None:
    scenario = read_scenario(path)
    running = program(scenario)
    steps: list[StepResult] = []
    for stream, elements in scenario.streams.items():
        for element in elements:
            steps.append(running.advance({stream: [element]}))
            saved = running.snapshot()
            running = program(scenario)
            running.restore(saved)
    steps.append(running.advance({}, ended=list(scenario.streams)))
    check(scenario, steps)


def kernel_program(case: Case) -> Program:
    first = case.windows[0]
    options = Options(
        bounds=Bounds.LEFT_OPEN if first.closed_right else Bounds.RIGHT_OPEN,
        report=case.report,
        emit=case.emit,
        content=case.content,
        t0=first.t0,
    )
    plan = plan_query(parse(case.text()))
    return Program([RegisteredQuery(plan, resolve_settings(plan, options))], Store(), 0, KernelEvaluator)


@given(cases())
def test_generated_queries(case: Case) -> None:
    step = kernel_program(case).advance(case.batches(), ended=[f"{EX}s0", f"{EX}s1"])
    assert [(answer.time, as_solutions(answer)) for answer in step.answers] == run_whole(case)


@given(cases(), st.integers(1, 4))
def test_generated_queries_in_pieces(case: Case, size: int) -> None:
    running = kernel_program(case)
    answers: list[tuple[int, Counter[Solution]]] = []
    waiting = case.batches()
    while any(waiting.values()):
        step = running.advance({stream: elements[:size] for stream, elements in waiting.items()})
        answers.extend((answer.time, as_solutions(answer)) for answer in step.answers)
        waiting = {stream: elements[size:] for stream, elements in waiting.items()}
    step = running.advance({}, ended=[f"{EX}s0", f"{EX}s1"])
    answers.extend((answer.time, as_solutions(answer)) for answer in step.answers)
    assert answers == run_whole(case)


def test_what_the_kernel_cannot_do_it_says() -> None:
    plan = plan_query(parse(f"SELECT ?x FROM STREAM <{EX}s> [RANGE 1s TUMBLING] WHERE {{ ?x <{EX}p>+ ?y }}"))
    with pytest.raises(UnsupportedByKernel, match="property path"):
        KernelEvaluator(plan, resolve_settings(plan), Store())
