"""The kernel equals the reference on generated queries and streams, in any cut: 2,000 cases, in `make soak` 100,000.

A failure names the number of its case; `check_case(number)` runs it alone. In `make soak` the cases are others.
"""

from __future__ import annotations

import pytest

from headwater.kernel import moving_windows
from headwater.kernel.operators import join_state, multiway_join
from tests.kernel.generated_runs import check_case, check_cases

BLOCKS, BLOCK = 20, 100
SOAK_BLOCKS, SOAK_BLOCK = 50, 2_000
SOAK_FIRST = 1_000_000
"""The number of the first case of `make soak`; blocks are far enough apart not to meet."""
APART = 10_000

LEAST = {
    "answers": 0.2,
    "empty windows": 0.1,
    "equal times": 0.3,
    "duplicates": 0.3,
    "unbound variables": 0.03,
    "operands that may be no numbers": 0.1,
}
"""In which share of the cases there is what they are for, at least: without it they would say little."""


def check_block(first: int, cases: int) -> None:
    seen = check_cases(cases, first)
    assert seen["cases"] == cases
    for what, share in LEAST.items():
        assert seen[what] >= share * cases, f"{what}: in {seen[what]} of {cases} cases"


@pytest.mark.parametrize("block", range(BLOCKS))
def test_a_block_of_cases(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    if block % 2:
        # Joins begin anew as they otherwise do for large windows only.
        monkeypatch.setattr(multiway_join, "_FEW_ROWS", -1)
    if block % 4 < 2:
        # Ticks are taken in runs wherever two are due.
        monkeypatch.setattr(moving_windows, "_WORTH_A_RUN", 2)
    if block % 3:
        # Joins have tables for small ticks at once, with little room.
        monkeypatch.setattr(multiway_join, "_WORTH_TABLES", 1)
        monkeypatch.setattr(join_state, "_LEAST_ROOM", 8)
    check_block(block * APART, BLOCK)


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(1000891, id="a filter on outer times beside an OPTIONAL that is open to values from outside"),
        pytest.param(1051465, id="MINUS of nothing common inside EXISTS"),
        pytest.param(1090663, id="an OPTIONAL that is open to values from outside"),
        pytest.param(1413095, id="MINUS inside EXISTS of what an OPTIONAL may leave unbound"),
        pytest.param(1101338, id="the stream of timestamp() is a variable from around EXISTS"),
    ],
)
def test_cases_that_differed_once(case: int) -> None:
    assert check_case(case) is not None


def test_a_row_that_leaves_out_of_order_when_the_tables_have_no_room_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(multiway_join, "_WORTH_TABLES", 1)
    monkeypatch.setattr(join_state, "_LEAST_ROOM", 8)
    assert check_case(100082) is not None


@pytest.mark.soak
@pytest.mark.parametrize("block", range(SOAK_BLOCKS))
def test_a_large_block_of_cases(block: int) -> None:
    check_block(SOAK_FIRST + block * APART, SOAK_BLOCK)
