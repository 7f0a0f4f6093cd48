"""The worked example of the paper's figure 2, through a whole query with given rates: elected c, best before 11."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from benchmarks.virtual_time import VirtualClock, VirtualRequestRunner
from headwater.federation.policy.best_before import WindowBasedMaintenance
from headwater.federation.policy.candidates import Candidate, Tick
from headwater.federation.policy.policies import Policy, interval_from_view
from headwater.federation.policy.proposers import WindowServiceJoin
from headwater.federation.rate_reading import read_rates_file
from headwater.federation.service_settings import ServiceSettings
from headwater.federation.services import Services
from headwater.federation.view.local_view import LocalView
from headwater.terms.model import SECOND
from tests.federation.service_runs import Run, heartbeat, mention, shown
from tests.federation.small_world import ScriptedRemote, key

INTERVALS = {"a": 5, "b": 5, "c": 5, "d": 2}
MENTIONS = [(1, "c"), (2, "a"), (4, "a"), (4, "b"), (5, "b"), (5, "d"), (6, "c"), (6, "d")]
"""c, a, b and d are fetched when they first turn up; the second of these seconds is when they last enter the window."""
OUTAGE = (6, 7)
"""Otherwise c, which is possibly stale from 6 on, would be refreshed before time 8."""


class Observed(WindowBasedMaintenance):
    """WBM that remembers what it was shown."""

    def __init__(self, view: LocalView) -> None:
        super().__init__(interval_from_view(view))
        self.seen: list[tuple[str, int, int, float]] = []

    def rank(self, candidates: Sequence[Candidate], tick: Tick) -> list[Candidate]:
        stale = self.select_possibly_stale(candidates, tick)
        self.seen = [
            (name_of(one.entry.key), one.ticks, self.ticks_valid(one, tick), self.score(one, tick)) for one in stale
        ]
        return super().rank(candidates, tick)


def name_of(asked: tuple[object, ...]) -> str:
    return str(getattr(asked[0], "value", ""))[-1]


def test_figure_2_as_a_query(tmp_path: Path) -> None:
    path = tmp_path / "rates.csv"
    lines = [f"http://example.org/{name},{60 / interval}" for name, interval in INTERVALS.items()]
    path.write_text("\n".join(["who,per_minute", *lines]))
    clock = VirtualClock(0)
    remote = ScriptedRemote(clock)
    rankers: list[Observed] = []

    def policies(name: str, view: LocalView) -> Policy:
        assert name == "WBM"
        rankers.append(Observed(view))
        return WindowServiceJoin(), rankers[-1]

    services = Services(
        ServiceSettings(rates=((str(path), read_rates_file(str(path))),)),
        clock=clock,
        runner=lambda: VirtualRequestRunner(clock),
        remote=lambda node, keys: remote,
        policies=policies,
    )
    run = Run(
        f"""SELECT DISTINCT ?who ?n FROM STREAM :mentions [RANGE 5s STEP 1s]
            WHERE {{ ?who :mentionedIn ?p . SERVICE <http://example.org/sparql> {{ ?who :followers ?n }}
                     OPTION (POLICY WBM, RATES "{path}", BUDGET 1) }}""",
        services,
    )
    run.feed([heartbeat(0.5)])

    def tick(second: int) -> list[list[tuple[str, ...]]]:
        clock.move_to(second * SECOND)
        remote.error = "an outage" if second in OUTAGE else None
        elements = [mention(second, who, f"post{second}") for at, who in MENTIONS if at == second]
        return shown(run.feed([*elements, heartbeat(second + 0.5)]))

    for second in range(1, 8):
        tick(second)
    assert remote.keys_asked[:4] == [key(name) for name in "cabd"]
    view = run.maintained.maintainer.view
    assert {name_of(entry.key): entry.best_before // SECOND for entry in view} == {"a": 7, "b": 9, "c": 6, "d": 7}
    remote.asked.clear()
    remote.value = 3
    answers = tick(8)
    assert sorted(rankers[0].seen) == [("a", 1, 4, 1), ("c", 3, 3, 3), ("d", 3, 1, 1)]
    assert remote.asked == [[key("c")]]
    entry = view.get(key("c"))
    assert entry is not None
    assert entry.best_before == 11 * SECOND
    assert [sorted(rows) for rows in answers] == [[("a", "1"), ("b", "1"), ("c", "3"), ("d", "1")]]
