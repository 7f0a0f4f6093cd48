"""The worked example of the paper's figure 2, through a whole query: scores 1, 3, 1, elected c, best before 11."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.virtual_time import VirtualClock, VirtualRequestRunner
from headwater.federation.policy.best_before import WindowBasedMaintenance
from headwater.federation.policy.candidates import Candidate, Tick
from headwater.federation.policy.policies import Policy
from headwater.federation.policy.proposers import WindowServiceJoin
from headwater.federation.services import Services
from headwater.federation.view.local_view import LocalView
from headwater.terms.model import SECOND
from tests.federation.service_runs import Run, heartbeat, mention, shown
from tests.federation.small_world import ScriptedRemote, key, rows

BEST_BEFORE = {"a": 7, "b": 9, "c": 6, "d": 7, "e": 5, "f": 8}
INTERVALS = {"a": 5, "b": 5, "c": 5, "d": 2, "e": 5, "f": 5}
QUERY = """SELECT ?who ?n FROM STREAM :mentions [RANGE 5s STEP 1s]
           WHERE { ?who :mentionedIn ?p . SERVICE <http://example.org/sparql> { ?who :followers ?n }
                   OPTION (POLICY WBM, BUDGET 1) }"""


class Observed(WindowBasedMaintenance):
    """WBM that remembers what it was shown."""

    def __init__(self, view: LocalView) -> None:
        super().__init__(lambda entry: INTERVALS[name_of(entry.key)] * SECOND)
        self.seen: list[tuple[str, int, float]] = []

    def rank(self, candidates: Sequence[Candidate], tick: Tick) -> list[Candidate]:
        stale = self.select_possibly_stale(candidates, tick)
        self.seen = [(name_of(one.entry.key), one.ticks, self.score(one, tick)) for one in stale]
        return super().rank(candidates, tick)


def name_of(asked: tuple[object, ...]) -> str:
    return str(getattr(asked[0], "value", ""))[-1]


def test_figure_2_as_a_query() -> None:
    clock = VirtualClock(0)
    remote = ScriptedRemote(clock)
    rankers: list[Observed] = []

    def policies(name: str, view: LocalView) -> Policy:
        assert name == "WBM"
        rankers.append(Observed(view))
        return WindowServiceJoin(), rankers[-1]

    services = Services(
        clock=clock, runner=lambda: VirtualRequestRunner(clock), remote=lambda node, keys: remote, policies=policies
    )
    run = Run(QUERY, services)
    run.feed([mention(4, "a"), mention(5, "b"), mention(6, "c"), mention(6, "d"), heartbeat(8)])
    view = run.maintained.maintainer.view
    clock.move_to(7 * SECOND)
    for name, instant in BEST_BEFORE.items():
        view.store(key(name), rows(name, 0), clock.now(), instant * SECOND)
    remote.asked.clear()
    remote.value = 3
    clock.move_to(8 * SECOND)
    (answer,) = run.feed([heartbeat(9)])[:1]
    assert answer.time == 8 * SECOND
    assert rankers[0].seen == [("a", 1, 1), ("c", 3, 3), ("d", 3, 1)]
    assert remote.asked == [[key("c")]]
    entry = view.get(key("c"))
    assert entry is not None
    assert entry.best_before == 11 * SECOND
    assert shown([answer]) == [[("a", "0"), ("b", "0"), ("c", "3"), ("d", "0")]]
    assert answer.quality is not None
    assert answer.quality.refreshes == 1
