"""Queries whose first window opens long before the data, or behind it (`--t0`).

--t0 2027-01-01T00:00:00Z      and the newest element is of 2026: no tick is due, and nothing is answered
--t0 2020-01-01T00:00:00Z      and the first element is of 2026: six years of empty windows are answered before it
"""

from __future__ import annotations

from collections.abc import Iterator

from headwater.linting.lint_subject import LintSubject
from headwater.terms.timestamps import format_time
from headwater.windows.model import TimeWindow

_EMPTY_TICKS = 1_000
"""So many empty answers before the first element are worth a word."""


def find_early_starts(subject: LintSubject) -> Iterator[str]:
    """Windows that open many steps before the first element of the samples of their streams."""
    t0 = subject.settings.t0
    if t0 is None:
        return
    for source, window in zip(subject.plan.windows, subject.settings.windows, strict=True):
        sample = subject.observed.samples.get(source.stream)
        if sample is None or sample.first_time is None or not isinstance(window, TimeWindow) or not window.slide:
            continue
        empty = (sample.first_time - t0) // window.slide
        if empty >= _EMPTY_TICKS:
            yield (
                f"t0 (--t0) is {format_time(t0)}, long before the first element of "
                f"{subject.notation.iri(source.stream)} of {format_time(sample.first_time)}: "
                f"{empty:,} windows before it are empty, and each of them is "
                "answered. Give a later t0, or leave it out"
            )
            return


def late_start_text(t0: int, newest: int) -> str:
    """What is said about a query without an answer that begins behind all data."""
    return (
        f"nothing was answered, because t0 (--t0) is {format_time(t0)} and the newest element is of "
        f"{format_time(newest)}: give an earlier t0, or leave it out"
    )
