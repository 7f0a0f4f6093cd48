"""An evaluator that gives its rows as ids says what it says otherwise, whatever its windows do."""

from __future__ import annotations

import gc
from random import Random

import pytest
from pyoxigraph import Store

from headwater.algebra.build import plan_query
from headwater.execution.program import Program
from headwater.execution.registered import RegisteredQuery
from headwater.language.parser import parse
from headwater.language.stream_clauses import StreamOperator
from headwater.sharding.encoded_answers import decode_answers
from headwater.terms.model import SECOND, Element, Literal, NamedNode, Triple
from headwater.windows.element_sequences import Elements
from headwater.windows.settings import Options, resolve_settings
from tests.kernel.generated_queries import STREAMS, a_case
from tests.kernel.generated_runs import compared
from tests.optimised_evaluators import make_optimised_evaluator

GAP = 9 * SECOND
"""Longer than the windows: when something comes again, all that they showed has gone."""


def test_rows_that_come_and_go_after_all_was_new() -> None:
    text = "PREFIX : <http://ex/> SELECT ?s ?o WHERE { STREAM :s [RANGE 3s SLIDE 1s] { ?s :p ?o } }"
    plan = plan_query(parse(text))
    registered = RegisteredQuery(plan, resolve_settings(plan, Options(emit=StreamOperator.RSTREAM)))
    times = [round_ * GAP + second * SECOND // 2 for round_ in range(4) for second in range(6)]
    p = NamedNode("http://ex/p")
    elements = [
        Element(time, (Triple(NamedNode(f"http://ex/s{i % 2}"), p, Literal(str(i))),), None, (i,))
        for i, time in enumerate(times)
    ]
    said = []
    for encodes in (False, True):
        program = Program([registered], Store(), 0, make_optimised_evaluator, encodes_rows=encodes)
        answers = program.advance({"http://ex/s": elements}, ended=["http://ex/s"]).answers
        assert any(answer.encoded is not None for answer in answers) is encodes
        said.append([*map(compared, decode_answers(answers))])
        assert gc.isenabled()
    assert said[0] == said[1]
    gc.disable()
    try:
        decode_answers(answers)
        assert not gc.isenabled()
    finally:
        gc.enable()


@pytest.mark.parametrize("block", range(4))
def test_ids_and_terms_are_the_same_answers(block: int) -> None:
    encoded = 0
    for number in range(block * 1_000, block * 1_000 + 60):
        case = a_case(Random(number))
        registered = RegisteredQuery(*case.plan())
        batches: list[dict[str, Elements]] = [
            {stream: list(elements[part::3]) for stream, elements in case.elements.items()} for part in range(3)
        ]
        said = []
        for encodes in (False, True):
            program = Program([registered], case.store(), 10_000_000, make_optimised_evaluator, encodes_rows=encodes)
            answers = [answer for batch in batches for answer in program.advance(batch).answers]
            answers += program.advance({}, ended=list(STREAMS)).answers
            encoded += sum(answer.encoded is not None for answer in answers)
            said.append([*map(compared, decode_answers(answers))])
        assert said[0] == said[1], f"case {number}: {case.text}"
    assert encoded > 20
