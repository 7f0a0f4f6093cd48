"""The instants at which the entries of a synthetic remote change.

    fixed          a change every so many minutes from the first evaluation on, always the same for one account
    drifting       random changes, at a rate that goes up and down
    bursty         hardly a change for half an hour, then two each minute, and so two between ticks, for six minutes
    mildly bursty  the same with one each minute

Where rates are fixed or drift, accounts draw them between a change in two hours and one in two minutes. With fixed
periods that gives accuracies near those of the paper's synthetic data, of which it only says that each account had a
rate of its own.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from functools import partial

from benchmarks.service_data import MINUTE, WIDTH, Instants

SLOWEST, FASTEST = 1 / 120, 1 / 2
DRIFT_PER_MINUTE = 0.15
QUIET, BURST, MILD_BURST = 1 / 120, 2.0, 1.0
MINUTES_QUIET, MINUTES_BURST = 30.0, 6.0


def rate_per_minute(chance: random.Random) -> float:
    return math.exp(chance.uniform(math.log(SLOWEST), math.log(FASTEST)))


def fixed_changes(begin: int, end: int, chance: random.Random) -> Iterator[int]:
    period = MINUTE / rate_per_minute(chance)
    instant = begin + WIDTH + period
    while instant <= end:
        yield round(instant)
        instant += period


def drifting_changes(begin: int, end: int, chance: random.Random) -> Iterator[int]:
    """The logarithm of the rate makes a step each minute, and turns back at its bounds."""
    low, high = math.log(SLOWEST), math.log(FASTEST)
    rate = chance.uniform(low, high)
    for minute in range(begin, end, MINUTE):
        yield from _random_changes(minute, min(end, minute + MINUTE), math.exp(rate), chance)
        rate += chance.gauss(0.0, DRIFT_PER_MINUTE)
        rate = min(max(rate, 2 * low - rate if rate < low else low), 2 * high - rate if rate > high else high)


def bursty_changes(begin: int, end: int, chance: random.Random, burst: float = BURST) -> Iterator[int]:
    """Quiet periods and bursts in turn, of exponentially distributed length; an account may begin in either."""
    is_bursting = chance.random() < MINUTES_BURST / (MINUTES_BURST + MINUTES_QUIET)
    instant = begin
    while instant < end:
        length = chance.expovariate(1 / (MINUTES_BURST if is_bursting else MINUTES_QUIET)) * MINUTE
        until = min(end, instant + max(1, round(length)))
        yield from _random_changes(instant, until, burst if is_bursting else QUIET, chance)
        instant, is_bursting = until, not is_bursting


def _random_changes(begin: int, end: int, per_minute: float, chance: random.Random) -> Iterator[int]:
    """A Poisson process in `(begin, end]`."""
    instant = begin + chance.expovariate(per_minute) * MINUTE
    while instant <= end:
        yield max(begin + 1, round(instant))
        instant += chance.expovariate(per_minute) * MINUTE


BACKGROUNDS: dict[str, Instants] = {
    "fixed": fixed_changes,
    "drifting": drifting_changes,
    "bursty": bursty_changes,
    "mildly bursty": partial(bursty_changes, burst=MILD_BURST),
}
