"""The tables of the SERVICE experiments as Markdown, the paper's figures beside ours."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean, pstdev

from benchmarks.service_accuracy import (
    BUDGETS,
    FIRST_TICKS,
    OTHER_WBM,
    PAPER,
    POLICIES_OF,
    TABLE_1,
    TABLE_2,
    Runs,
    accuracies,
)

LABELS = {
    "real": "follower counts as recorded",
    "fixed": "fixed change rates",
    "drifting": "change rates that go up and down",
    "bursty": "bursts of two changes a minute",
    "mildly bursty": "bursts of one change a minute",
}


def tables(runs: Runs) -> str:
    """All tables, one after the other."""
    seeds = len(runs["real", "WST", BUDGETS[0]])
    parts = [
        "# Accuracy of SERVICE under maintenance policies",
        "",
        "Made by `python -m benchmarks.service`; what it measures and how is in "
        "[How SERVICE keeps its views](../explanation/service.md#the-experiments).",
        "Windows of 100 s that slide by 60 s, 156 evaluations; mean and standard deviation over "
        f"{seeds} seeds; the paper's figure in brackets.",
    ]
    both = tuple(dict.fromkeys((*TABLE_1, *TABLE_2, *OTHER_WBM)))
    for title, scenario, policies, first in (
        ("Table 1, real", "real", TABLE_1, None),
        ("Table 2, real", "real", (*TABLE_2, *OTHER_WBM), None),
        (f"Both tables, real, the first {FIRST_TICKS} evaluations", "real", both, FIRST_TICKS),
        ("Table 1, synthetic", "fixed", TABLE_1, None),
        ("Table 2, synthetic", "fixed", (*TABLE_2, *OTHER_WBM), None),
        ("Drifting", "drifting", TABLE_2, None),
        ("Bursty", "bursty", TABLE_2, None),
        ("Mildly bursty", "mildly bursty", TABLE_2, None),
    ):
        parts += ["", f"## {title}: {LABELS[scenario]}", "", *_table(runs, scenario, policies, first)]
    parts += ["", *(f"![{name}]({name}.svg)" for name in pictures())]
    return "\n".join(parts) + "\n"


def _table(runs: Runs, scenario: str, policies: Sequence[str], first: int | None) -> list[str]:
    known = [policy for policy in policies if policy in POLICIES_OF[scenario]]
    lines = [f"| γ | {' | '.join(known)} |", "|---" * (len(known) + 1) + "|"]
    for number, budget in enumerate(BUDGETS):
        cells = [_cell(runs, scenario, policy, number, first) for policy in known]
        lines.append(f"| {budget} | {' | '.join(cells)} |")
    return lines


def _cell(runs: Runs, scenario: str, policy: str, number: int, first: int | None) -> str:
    found = accuracies(runs, scenario, policy, BUDGETS[number], first)
    text = f"{fmean(found):.3f} ± {pstdev(found):.3f}"
    theirs = PAPER.get(scenario, {}).get(policy)
    return text if theirs is None else f"{text} ({theirs[number]:.2f})"


def pictures() -> list[str]:
    figures = [f"service-figure-{number}-{data}" for number in ("3", "4") for data in ("synthetic", "real")]
    return [*figures, "service-drifting", "service-bursty", "service-latency"]
