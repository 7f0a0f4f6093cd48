"""The cap of a window: ALL over an endless stream ends with an error that says what to do; a run can go on after it.

The error comes where the window would hold too much, not where a batch does: a short window over long batches is
no matter.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from pyoxigraph import Store

import headwater as hw
from headwater.algebra.build import plan_query
from headwater.execution.program import Program
from headwater.execution.query_evaluators import MakeEvaluator
from headwater.execution.registered import RegisteredQuery
from headwater.kernel.kernel_evaluator import KernelEvaluator
from headwater.language.parser import parse
from headwater.reference.reference_evaluator import ReferenceEvaluator
from headwater.terms.model import Element, Literal, NamedNode, Triple
from headwater.windows.caps import DEFAULT_CAP, WindowCapError
from headwater.windows.settings import Options, resolve_settings
from tests.commands.running import headwater

STREAM = "http://example.org/s"
ALL = f"SELECT (COUNT(*) AS ?n) WHERE {{ STREAM <{STREAM}> [ALL] {{ ?x ?p ?v }} }}"
SHORT = f"SELECT (COUNT(*) AS ?n) WHERE {{ STREAM <{STREAM}> [RANGE 2us] {{ ?x ?p ?v }} }}"
EVALUATORS = pytest.mark.parametrize("evaluator", [KernelEvaluator, ReferenceEvaluator])


def elements(count: int) -> list[Element]:
    """One triple each, a microsecond apart."""
    subject, predicate = NamedNode("urn:x"), NamedNode("urn:p")
    return [Element(time, (Triple(subject, predicate, Literal(time)),), None, (time,)) for time in range(count)]


def program(text: str, evaluator: MakeEvaluator, cap: int | None) -> Program:
    plan = plan_query(parse(text))
    return Program([RegisteredQuery(plan, resolve_settings(plan, Options(cap=cap)))], Store(), 0, evaluator)


def counts(program: Program, count: int) -> list[int]:
    step = program.advance({STREAM: elements(count)}, ended=[STREAM])
    for suspension in program.suspensions.values():
        assert suspension.error is not None
        raise suspension.error
    return [int(answer.rows[0][0].value) for answer in step.answers]  # type: ignore[union-attr]


@EVALUATORS
def test_a_window_may_hold_as_much_as_the_cap_says_and_no_more(evaluator: MakeEvaluator) -> None:
    assert counts(program(ALL, evaluator, cap=5), 5) == [1, 2, 3, 4, 5]
    with pytest.raises(WindowCapError) as failure:
        counts(program(ALL, evaluator, cap=5), 6)
    message = str(failure.value)
    assert STREAM in message and "holds 6 triples, of at most 5" in message
    assert "RANGE or TRIPLES" in message and "window_cap=" in message and "--window-cap" in message


@EVALUATORS
def test_a_short_window_over_a_long_batch_is_not_stopped(evaluator: MakeEvaluator) -> None:
    assert max(counts(program(SHORT, evaluator, cap=2), 1000)) == 2
    with pytest.raises(WindowCapError):
        counts(program(SHORT, evaluator, cap=1), 3)


def test_without_a_word_the_cap_is_twenty_million() -> None:
    plan = plan_query(parse(ALL))
    assert resolve_settings(plan).cap == DEFAULT_CAP == 20_000_000


def write_stream(folder: Path, count: int) -> Path:
    path = folder / "s.tnq"
    path.write_text("".join(f'{1000 + n}\t<urn:x> <urn:p> "{n}" .\n' for n in range(count)))
    return path


def engine(folder: Path, cap: int | None, **options: str) -> hw.Engine:
    made = hw.Engine(in_process=True, window_cap=cap, checkpoint=folder / "checkpoint", batch_bytes=60, **options)  # type: ignore[arg-type]
    made.stream(STREAM, write_stream(folder, 12))
    made.register(ALL)
    return made


@pytest.mark.parametrize("evaluator", ["auto", "reference"])
def test_a_run_that_failed_goes_on_from_its_checkpoint_with_a_higher_cap(tmp_path: Path, evaluator: str) -> None:
    found: list[int] = []

    def take(answer: hw.Answer) -> None:
        found.extend(int(row[0].value) for row in answer.rows)  # type: ignore[union-attr]

    with pytest.raises(WindowCapError, match="of at most 7"):
        engine(tmp_path, 7, evaluator=evaluator).run(on_answer=take)
    assert 0 < len(found) < 8
    engine(tmp_path, 12, evaluator=evaluator).run(on_answer=take)
    assert found == list(range(1, 13))


def test_the_engine_refuses_a_cap_that_allows_nothing() -> None:
    with pytest.raises(ValueError, match="window_cap must be at least 1, and it is 0"):
        hw.Engine(window_cap=0)


def test_the_command_line_says_what_to_do_in_one_paragraph(tmp_path: Path) -> None:
    query = tmp_path / "all.rq"
    query.write_text(ALL)
    run = ("run", query, "--in-process", "--format", "csv", "--stream", f"{STREAM}={write_stream(tmp_path, 12)}")
    failed = headwater(*run, "--window-cap", 7)
    assert failed.exit_code == 1
    told = " ".join(failed.stderr.split())
    assert "the window http" in told and "--window-cap" in told and "Traceback" not in told
    done = headwater(*run, "--window-cap", 12)
    assert done.exit_code == 0, done.stderr
    assert done.stdout.splitlines()[-1].endswith("12")
    assert headwater(*run, "--window-cap", 0).exit_code == 2
