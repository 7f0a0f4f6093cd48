"""The kernel equals the reference on streams of named graphs: GRAPH in the clauses of windows, the times of graphs.

240 cases, in `make soak` 20,000. `check_case(number, named=True)` runs one alone.
"""

from __future__ import annotations

import pytest

from headwater.kernel import moving_windows
from tests.kernel.generated_runs import check_cases

BLOCKS, BLOCK = 2, 120
SOAK_BLOCKS, SOAK_BLOCK = 10, 2_000
SOAK_FIRST = 3_000_000
APART = 10_000

LEAST = {
    "answers": 0.2,
    "graphs of windows": 0.1,
    "times of graphs": 0.1,
    "names of graphs in answers": 0.005,
    "duplicates": 0.3,
}
"""In which share of the cases there is what they are for, at least."""


def check_block(first: int, cases: int) -> None:
    seen = check_cases(cases, first, named=True)
    for what, share in LEAST.items():
        assert seen[what] >= share * cases, f"{what}: in {seen[what]} of {cases} cases"


@pytest.mark.parametrize("block", range(BLOCKS))
def test_a_block_of_cases(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    if block % 2:
        # Ticks are taken in runs wherever two are due.
        monkeypatch.setattr(moving_windows, "_WORTH_A_RUN", 2)
    check_block(block * APART, BLOCK)


@pytest.mark.soak
@pytest.mark.parametrize("block", range(SOAK_BLOCKS))
def test_a_large_block_of_cases(block: int) -> None:
    check_block(SOAK_FIRST + block * APART, SOAK_BLOCK)
