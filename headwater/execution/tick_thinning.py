"""Fewer ticks where a query cannot follow its streams (CS13: the frequency of evaluation is reduced under load).

A query falls behind if its due ticks take longer to evaluate than the stream took to bring them. Some of them are then
skipped:

    due                1  2  3  4  5  6  7      in event time that is as long as three evaluations
    evaluated          1        4        7      each stands for itself and for the skipped ticks before it

The last due tick is always evaluated, and the others at equal distances from it. Nothing else changes: at an evaluated
tick the windows hold what the definition says, and ISTREAM and DSTREAM compare with the last evaluated tick.

Ticks may be skipped where they come by the clock: `close` if all windows are time windows with a slide, `periodic` if
all are time windows. Other ticks are events of the stream, and a count window closes at each of its own. Where the
answers are elements of a stream that another query reads, all ticks stay as well; and so do all that remain when the
streams end.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from headwater.execution.answer_batch import AnswerBatch
from headwater.windows.model import TimeWindow
from headwater.windows.settings import QuerySettings, Report

Clock = Callable[[], float]
AnswerTicks = Callable[[Iterable[int], int | None], AnswerBatch]

_MICROSECONDS = 1_000_000
_FOR_EVALUATION = 0.8
"""The share of the time that evaluation may take; the rest is for reading and delivering."""
_NEWEST_WEIGHT = 0.5
"""How much the newest measurement counts for the mean time of a tick."""


def can_skip_ticks(settings: QuerySettings) -> bool:
    """Whether the ticks of a query come by the clock."""
    if not settings.windows or not all(isinstance(window, TimeWindow) for window in settings.windows):
        return False
    if settings.report is Report.PERIODIC:
        return True
    slides = [window.slide for window in settings.windows if isinstance(window, TimeWindow)]
    return settings.report is Report.CLOSE and None not in slides


class TickThinner:
    """Chooses among the due ticks of one query, by how long its ticks took. `share` is its share of the time."""

    def __init__(self, share: float = 1.0, clock: Clock = time.monotonic) -> None:
        self._share = share * _FOR_EVALUATION
        self._clock = clock
        self._seconds_per_tick: float | None = None
        self._watermark: int | None = None

    def answer(self, due: Iterable[int], watermark: int, answer_ticks: AnswerTicks) -> AnswerBatch:
        """The answers at those of the due ticks that can be evaluated in time; each says how many it stands for."""
        covered = 0 if self._watermark is None else watermark - self._watermark
        self._watermark = watermark
        if self._seconds_per_tick is None or not covered:
            return self._measure(due, watermark, answer_ticks)
        listed = list(due)
        chosen = self._choose(listed, covered / _MICROSECONDS)
        answers = self._measure(chosen, watermark, answer_ticks)
        if len(chosen) == len(listed):
            return answers
        places = {tick: place for place, tick in enumerate(listed)}
        befores = dict(zip(chosen, [-1, *(places[tick] for tick in chosen)], strict=False))
        marked = [replace(one, skipped=places[one.time] - befores[one.time] - 1) for one in answers]
        return AnswerBatch([marked])

    def _choose(self, due: list[int], seconds: float) -> list[int]:
        """As many ticks as can be evaluated in some seconds, at equal distances, with the last one."""
        assert self._seconds_per_tick is not None
        possible = max(1, int(seconds * self._share / max(self._seconds_per_tick, 1e-9)))
        if possible >= len(due):
            return due
        distance = -(-len(due) // possible)
        return due[::-distance][::-1]

    def _measure(self, ticks: Iterable[int], watermark: int, answer_ticks: AnswerTicks) -> AnswerBatch:
        """Answer ticks, and measure how long one takes."""
        count = 0

        def counted() -> Iterator[int]:
            nonlocal count
            for tick in ticks:
                count += 1
                yield tick

        begin = self._clock()
        answers = answer_ticks(counted(), watermark)
        if count:
            seconds = (self._clock() - begin) / count
            before = seconds if self._seconds_per_tick is None else self._seconds_per_tick
            self._seconds_per_tick = before + _NEWEST_WEIGHT * (seconds - before)
        return answers
