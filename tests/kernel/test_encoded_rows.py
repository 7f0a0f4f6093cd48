"""An evaluator that gives its rows as ids says what it says otherwise, whatever its windows do."""

from __future__ import annotations

from random import Random

import pytest

from headwater.kernel.choice import fastest_evaluator
from headwater.pipeline.encoded_answers import all_with_rows
from headwater.reference import Program, Registered
from headwater.windows.arrivals import Arrivals
from tests.kernel.generated_queries import STREAMS, a_case
from tests.kernel.generated_runs import compared


@pytest.mark.parametrize("block", range(4))
def test_ids_and_terms_are_the_same_answers(block: int) -> None:
    encoded = 0
    for number in range(block * 1_000, block * 1_000 + 60):
        case = a_case(Random(number))
        registered = Registered(*case.plan())
        batches: list[dict[str, Arrivals]] = [
            {stream: list(elements[part::3]) for stream, elements in case.elements.items()} for part in range(3)
        ]
        said = []
        for encodes in (False, True):
            program = Program([registered], case.store(), 10_000_000, fastest_evaluator, encodes_rows=encodes)
            answers = [answer for batch in batches for answer in program.advance(batch).answers]
            answers += program.advance({}, ended=list(STREAMS)).answers
            encoded += sum(answer.encoded is not None for answer in answers)
            said.append([*map(compared, all_with_rows(answers))])
        assert said[0] == said[1], f"case {number}: {case.text}"
    assert encoded > 20
