"""One run: a scenario replayed tick by tick under a policy and a budget.

The accuracy of a tick is the paper's: of the accounts in the window, the share whose follower count in the view is the
one that the remote has at that instant. The view is filled with the first snapshot.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean

from benchmarks.service_data import SLIDE, Scenario
from benchmarks.service_policies import make_maintainer
from headwater.federation.view.service_quality import Goals


@dataclass(frozen=True, slots=True)
class Run:
    """What each tick came to; ticks without a candidate are left out."""

    true: tuple[float, ...]
    estimated: tuple[float, ...]
    wrong: tuple[int, ...]

    @property
    def accuracy(self) -> float:
        return fmean(self.true)

    @property
    def estimate_error(self) -> float:
        """How far the estimate of an answer is from the truth, in the mean."""
        return fmean(abs(true - estimated) for true, estimated in zip(self.true, self.estimated, strict=True))


def replay(scenario: Scenario, policy: str, budget: int, seed: int) -> Run:
    maintainer, clock = make_maintainer(scenario, policy, Goals(budget=budget), seed)
    true, estimated, wrong = [], [], []
    for tick, window in zip(scenario.ticks, scenario.windows, strict=True):
        clock.move_to(tick)
        quality = maintainer.tick(window, SLIDE)
        if not window:
            continue
        right = sum(maintainer.view.rows(key.key) == scenario.log.rows_at(key.key, tick) for key in window)
        true.append(right / len(window))
        estimated.append(quality.accuracy)
        wrong.append(len(window) - right)
    return Run(tuple(true), tuple(estimated), tuple(wrong))
