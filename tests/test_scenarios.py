"""Every scenario file, evaluated by the definition: whole, element by element, and saved and restored in between."""

from __future__ import annotations

from pathlib import Path

import pytest

from headwater.algebra.build import plan_query
from headwater.execution.program import Program
from headwater.execution.program_steps import StepResult
from headwater.execution.registered import RegisteredQuery, RegistrationError
from headwater.language.errors import QueryError
from headwater.language.parser import parse
from headwater.language.stream_clauses import Dialect, StreamOperator
from headwater.terms.durations import parse_duration
from headwater.terms.timestamps import parse_time
from headwater.windows.model import Bounds
from headwater.windows.settings import Content, Options, Report, resolve_settings
from tests.reference_programs import reference_program
from tests.scenario_files import QueryText, Scenario, compare, read_scenario, scenario_paths


def registered(query: QueryText, streams: list[str]) -> RegisteredQuery:
    options = query.options
    plan = plan_query(
        parse(query.text, Dialect(options["dialect"]) if "dialect" in options else None),
        name=query.name,
        streams=streams,
    )
    settings = resolve_settings(
        plan,
        Options(
            bounds=Bounds(options["bounds"]) if "bounds" in options else None,
            report=Report(options["report"]) if "report" in options else None,
            emit=StreamOperator(options["emit"]) if "emit" in options else None,
            content=Content(options["content"]) if "content" in options else None,
            t0=parse_time(options["t0"]) if "t0" in options else None,
        ),
    )
    return RegisteredQuery(plan, settings)


def program(scenario: Scenario) -> Program:
    queries = [registered(query, list(scenario.streams)) for query in scenario.queries]
    return reference_program(queries, scenario.data, parse_duration(scenario.delay) if scenario.delay != "0" else 0)


def check(scenario: Scenario, steps: list[StepResult]) -> None:
    answers = [answer for step in steps for answer in step.answers]
    for name in scenario.answers:
        compare(scenario, name, answers)
    assert sum(len(step.late) for step in steps) == scenario.late
    assert sum(len(step.bad) for step in steps) == scenario.bad


@pytest.mark.parametrize("path", scenario_paths(), ids=lambda path: path.stem)
def test_scenario(path: Path) -> None:
    scenario = read_scenario(path)
    if scenario.error is not None:
        with pytest.raises((QueryError, RegistrationError), match=scenario.error):
            program(scenario)
        return
    assert scenario.answers, "a scenario says what it expects"
    check(scenario, [program(scenario).advance(scenario.streams, ended=list(scenario.streams))])


@pytest.mark.parametrize("path", scenario_paths(), ids=lambda path: path.stem)
def test_scenario_in_single_elements_with_restarts(path: Path) -> None:
    scenario = read_scenario(path)
    if scenario.error is not None:
        return
    running = program(scenario)
    steps: list[StepResult] = []
    waiting = {stream: list(elements) for stream, elements in scenario.streams.items()}
    while any(waiting.values()):
        for stream, elements in waiting.items():
            if elements:
                steps.append(running.advance({stream: [elements.pop(0)]}))
                saved = running.snapshot()
                running = program(scenario)
                running.restore(saved)
    steps.append(running.advance({}, ended=list(scenario.streams)))
    check(scenario, steps)


def test_every_listed_capability_has_a_scenario() -> None:
    shown = {capability for path in scenario_paths() for capability in read_scenario(path).shows}
    wanted = {*(f"CS{n}" for n in range(1, 9)), "CQ1", "CQ2", "CQ3", "CQ8", "OA11"}
    assert wanted <= shown
