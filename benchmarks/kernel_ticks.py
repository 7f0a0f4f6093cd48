"""Windows that slide by one element, each slide a tick of its own (figure 13 of the paper).

The windows slide in turn. The kernel takes many ticks in one step (`advance_run`), or each in a step of its own
(`advance`). Both give the same changes at each tick, which is checked on a part. The number of results is compared with
that of an evaluation anew, which would be needed at every tick: so its rate is one mapping for each evaluation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from benchmarks.kernel_feeding import SlidingInput
from benchmarks.reporting import Figure, Points, rounded, seconds
from headwater.kernel.columns.delta import Delta
from headwater.kernel.columns.delta_run import DeltaRun
from headwater.kernel.columns.ring_index import Ints
from headwater.kernel.operators.operator import Operator

_LINE_NAMES = {
    "runs": "kernel, many ticks in a step",
    "ticks": "kernel, a tick in a step",
    "polars": "polars, anew",
    "pyoxigraph": "pyoxigraph, anew",
}
"""By way."""
Reevaluation = Callable[[Sequence[Ints]], Callable[[], int]]
"""From the rows of the windows it makes a function that evaluates the query and gives the number of results."""

_RUN_TICKS = 10_000
"""At most so many ticks are in one step."""
_MOST_CHANGES = 4_000_000
"""About so many results are added and removed in all the ticks that are measured."""
_LONG_SECONDS = 2.0
"""An evaluation anew that takes longer is measured once."""
_TICK_BY_TICK_SHARE = 20
"""Of so many ticks one is taken in a step of its own, since those take longer."""


@dataclass
class TickingOperator:
    """An operator over full windows, and how many results it has."""

    root: Operator
    windows: Sequence[SlidingInput]
    results: int

    def advance_run(self, ticks: int) -> DeltaRun:
        """Take ticks in one step."""
        for place, window in enumerate(self.windows):
            window.slide_run(np.arange(place, ticks, len(self.windows)))
        return self.root.advance_run()

    def advance_each(self, ticks: int) -> list[Delta]:
        """Take ticks one by one; gives the change at each."""
        deltas = []
        for tick in range(ticks):
            for place, window in enumerate(self.windows):
                window.slide(int(place == tick % len(self.windows)))
            deltas.append(self.root.advance())
        return deltas

    def count(self, changes: Sequence[DeltaRun | Delta]) -> None:
        """Follow the number of results."""
        for one in changes:
            if isinstance(one, DeltaRun):
                self.results += int(one.signs.sum())
            else:
                self.results += one.added.shape[0] - one.removed.shape[0]


@dataclass
class TickRates:
    """Mappings per second by way, each at some sizes; a way may have no rate where it would take too long."""

    _rates: dict[str, Points] = field(default_factory=dict)

    def add(
        self,
        at: float,
        operator: TickingOperator,
        most_ticks: int,
        changes_per_tick: float,
        reevaluations: Mapping[str, Reevaluation],
    ) -> None:
        """Measure all ways at one size. An evaluation anew must have as many results as the kernel."""
        ticks = max(10, min(most_ticks, int(_MOST_CHANGES / max(1.0, changes_per_tick))))
        run_ticks = max(1, min(_RUN_TICKS, ticks // 3))
        operator.count([operator.advance_run(run_ticks)])
        runs: list[DeltaRun] = []
        taken = 0.0
        for _ in range(max(1, ticks // run_ticks - 1)):
            taken += seconds(lambda: runs.append(operator.advance_run(run_ticks)))
        self._add("runs", at, run_ticks * len(runs) / taken)
        operator.count(runs)
        few = max(50, ticks // _TICK_BY_TICK_SHARE)
        operator.count(operator.advance_each(10))
        each: list[Delta] = []
        self._add("ticks", at, few / seconds(lambda: each.extend(operator.advance_each(few))))
        operator.count(each)
        for name, reevaluation in reevaluations.items():
            self._add(name, at, 1 / _time_reevaluation(name, reevaluation, operator))

    def _add(self, way: str, at: float, rate: float) -> None:
        self._rates.setdefault(way, []).append((at, rate))

    def figure(self, name: str, title: str, x: str) -> Figure:
        lines = {_LINE_NAMES[way]: points for way, points in self._rates.items()}
        return Figure(name, f"{title}, one element per slide", x, "mappings per second", lines)

    def values(self) -> dict[str, dict[str, float]]:
        """The rates by way and size."""
        return {way: {f"{at:.10g}": rounded(rate) for at, rate in points} for way, points in self._rates.items()}


def _time_reevaluation(name: str, reevaluation: Reevaluation, operator: TickingOperator) -> float:
    """The seconds of one evaluation anew; the better of two, where it does not take long."""
    evaluate = reevaluation([one.content for one in operator.windows])
    found: list[int] = []
    taken = seconds(lambda: found.append(evaluate()))
    if taken < _LONG_SECONDS:
        taken = min(taken, seconds(lambda: found.append(evaluate())))
    if found[0] != operator.results:
        raise AssertionError(f"{name} has {found[0]} results, the kernel {operator.results}")
    return taken


def rows_for(window: int, windows: int, most_ticks: int) -> int:
    """How many rows a window needs for all ticks that are measured, and those before them."""
    return window + (2 * most_ticks) // windows + 100


def check_ways(make: Callable[[], TickingOperator], ticks: int) -> None:
    """Compare the changes at each tick with those of another operator that takes the same ticks in one step."""
    by_tick = make()
    each = DeltaRun.of_deltas(list(enumerate(by_tick.advance_each(ticks))), len(by_tick.root.variables))
    in_one = make().advance_run(ticks)
    if not len(each):
        raise AssertionError("no tick changes anything")
    if not np.array_equal(_sorted_changes(in_one), _sorted_changes(each)):
        raise AssertionError("many ticks in one step have other results than each in its own")


def _sorted_changes(run: DeltaRun) -> Ints:
    """The changes of each tick that no other cancels, in one order."""
    net = run.net()
    changes = np.column_stack((net.ticks, net.signs.astype(np.int64), net.rows))
    return changes[np.lexsort(changes.T[::-1])]


def fill_in_parts(root: Operator, windows: Sequence[SlidingInput], size: int, part: int) -> int:
    """Fill windows, one after the other, so many rows at once; gives the number of results."""
    results = 0
    for window in windows:
        window.empty()
    for window in windows:
        for begin in range(0, size, part):
            window.fill(min(part, size - begin))
            delta = root.advance()
            results += delta.added.shape[0] - delta.removed.shape[0]
        window.slide(0)
    return results
