"""Latency under a goal, on the simulated remote: ρ = 200 ms at 20 ms per request.

Requests carry one key and go one after the other. The local view refreshes what fits; the nested loop asks for every
key of the window. A request takes 20 to 25 ms, one in a hundred 100 ms more, and the query itself 10 ms.
"""

from __future__ import annotations

from statistics import fmean

from benchmarks.reporting import Figure, Findings, rounded
from benchmarks.service_data import SLIDE, Scenario, real_scenario, recording
from benchmarks.service_policies import make_maintainer
from benchmarks.simulated_remote import Behaviour
from benchmarks.virtual_time import VirtualClock
from headwater.federation.policy.maintainer import Maintainer
from headwater.federation.view.service_quality import Goals

GOAL = 0.2
QUERY_SECONDS = 0.01
BEHAVIOUR = Behaviour(delay=0.02, jitter=0.005, slow=0.01, slow_delay=0.1)


def measure(seeds: int) -> Findings:
    scenario = real_scenario(recording())
    within: dict[str, list[float]] = {"local view": [], "nested loop": []}
    accuracies: dict[str, list[float]] = {"local view": [], "nested loop": []}
    lines: dict[str, list[tuple[float, float]]] = {}
    for seed in range(seeds):
        for name, goals in (("local view", Goals(latency=GOAL)), ("nested loop", Goals())):
            policy = "WSJ-LEARNT" if name == "local view" else "WSJ-LRU"
            maintainer, clock = make_maintainer(scenario, policy, goals, seed, BEHAVIOUR, workers=1)
            seconds, accuracy = _replay(scenario, maintainer, clock)
            within[name].append(fmean(taken <= GOAL for taken in seconds))
            accuracies[name].append(accuracy)
            lines.setdefault(name, [(float(tick), 1000 * taken) for tick, taken in enumerate(seconds)][::3])
    figure = Figure("service-latency", "Latency, ρ = 200 ms", "evaluation", "ms", lines, logarithmic=False)
    values: dict[str, object] = {
        "latency_share_within": rounded(fmean(within["local view"])),
        "nested_loop_share_within": rounded(fmean(within["nested loop"])),
        "accuracy_under_latency": {name: rounded(fmean(found)) for name, found in accuracies.items()},
    }
    return Findings(values, [figure])


def _replay(scenario: Scenario, maintainer: Maintainer, clock: VirtualClock) -> tuple[list[float], float]:
    """The seconds of each tick, the query's own included, and the mean accuracy."""
    seconds, shares = [], []
    for tick, window in zip(scenario.ticks, scenario.windows, strict=True):
        clock.move_to(tick)
        quality = maintainer.tick(window, SLIDE)
        clock.pass_seconds(QUERY_SECONDS)
        maintainer.record_query_time(QUERY_SECONDS)
        seconds.append(quality.seconds + QUERY_SECONDS)
        right = [maintainer.view.rows(key.key) == scenario.log.rows_at(key.key, tick) for key in window]
        shares.append(fmean(right) if right else 1.0)
    return seconds, fmean(shares)
