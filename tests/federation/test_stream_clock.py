"""CLOCK STREAM: a recording that is replayed at any speed has the refreshes and answers that it had live."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from benchmarks.simulated_remote import Behaviour, Outage, SimulatedRemote
from benchmarks.virtual_time import VirtualClock, VirtualRequestRunner
from headwater.federation.endpoint.remote import FetchResult
from headwater.federation.service_settings import ServiceSettings
from headwater.federation.services import Services
from headwater.federation.view.given_rates import GivenRates
from headwater.terms.model import SECOND, Row
from tests.federation.service_runs import Run, heartbeat, mention, shown
from tests.federation.small_world import counting_log, key

NAMES = "abcdefgh"
SECONDS = 60
EVERY = {name: (2 + 3 * number) * SECOND for number, name in enumerate(NAMES)}
"""How often each key changes on the endpoint."""


class RecordedRemote(SimulatedRemote):
    """Answers as the endpoint did at that time of the stream, and remembers when it was asked for what."""

    def __init__(self, stream_time: VirtualClock, outages: tuple[Outage, ...]) -> None:
        super().__init__(counting_log(NAMES, EVERY, SECONDS * SECOND), stream_time, Behaviour(outages=outages))
        self.asked: list[tuple[int, tuple[Row, ...]]] = []

    def fetch(self, keys: Sequence[Row]) -> FetchResult:
        self.asked.append((self._clock.now(), tuple(keys)))
        return super().fetch(keys)


@dataclass(frozen=True)
class Replay:
    """What a run asked the endpoint for and when, its answers, and how good it said they were."""

    asked: list[tuple[int, tuple[Row, ...]]]
    answers: list[list[tuple[str, ...]]]
    accuracies: list[float]


def replay(option: str, speed: float, *, after_restart: str | None = None, outages: tuple[Outage, ...] = ()) -> Replay:
    """Replay the same recording, `speed` times as fast as it was live; with a restart, perhaps with another option."""
    chance = random.Random(5)
    stream_time, machine = VirtualClock(0), VirtualClock(10**15)
    remote = RecordedRemote(stream_time, outages)
    rates = GivenRates("rates", None, {key(name): SECOND / period for name, period in EVERY.items()})

    def start(option: str) -> Run:
        services = Services(
            ServiceSettings(rates=(("rates.csv", rates),)),
            clock=machine,
            runner=lambda: VirtualRequestRunner(machine),
            remote=lambda node, keys: remote,
        )
        return Run(
            f"""SELECT ?who ?n FROM STREAM :mentions [RANGE 6s STEP 2s]
                WHERE {{ ?who :mentionedIn ?p . SERVICE <http://example.org/sparql> {{ ?who :followers ?n }}
                         OPTION ({option}) }}""",
            services,
        )

    run, found = start(option), []
    for second in range(SECONDS):
        machine.pass_seconds(1 / speed)
        stream_time.move_to(second * SECOND)
        if after_restart is not None and second == SECONDS // 2:
            saved = run.program.snapshot()
            run = start(after_restart)
            run.program.restore(saved)
        whom = [mention(second + 0.5, who, f"post{second}") for who in chance.sample(NAMES, 3)]
        found += run.feed([heartbeat(second), *whom])
    accuracies = [answer.quality.accuracy for answer in found if answer.quality is not None]
    return Replay(remote.asked, [sorted(rows) for rows in shown(found)], accuracies)


POLICIES = [
    "POLICY LEARNT, BUDGET 2",
    "POLICY WBM, BUDGET 2",
    'POLICY WBM, RATES "rates.csv", BUDGET 1',
    "ACCURACY 0.7",
]


@pytest.mark.parametrize("options", [*POLICIES, "STRATEGY HASH", "STRATEGY LOOP"])
def test_a_recording_replayed_at_any_speed_is_as_it_was_live(options: str) -> None:
    outages = (Outage(20 * SECOND, 27 * SECOND),)
    live = replay(f"{options}, CLOCK WALL", speed=1, outages=outages)
    assert len(live.answers) > 25
    for speed in (0.1, 1, 1000):
        again = replay(f"{options}, CLOCK STREAM", speed, outages=outages)
        assert again.asked == live.asked
        assert again.answers == live.answers
        assert again.accuracies == pytest.approx(live.accuracies)


@pytest.mark.parametrize("options", POLICIES)
def test_with_the_machines_clock_a_fast_replay_decides_otherwise(options: str) -> None:
    assert replay(options, speed=1000).asked != replay(options, speed=1).asked


@pytest.mark.parametrize("options", [POLICIES[0], POLICIES[2]])
def test_a_restart_goes_on_with_the_ages_of_the_stream(options: str) -> None:
    option = f"{options}, CLOCK STREAM"
    whole, interrupted = replay(option, speed=1), replay(option, speed=1000, after_restart=option)
    assert interrupted.asked == whole.asked
    assert interrupted.answers == whole.answers


def test_ages_of_another_clock_are_not_taken_over() -> None:
    changed = replay("POLICY WST, CLOCK WALL", speed=1, after_restart="POLICY WST, CLOCK STREAM")
    kept = replay("POLICY WST, CLOCK WALL", speed=1, after_restart="POLICY WST, CLOCK WALL")
    assert sorted(one for _, keys in kept.asked for one in keys) == [key(name) for name in NAMES]
    assert {one for instant, keys in changed.asked if instant >= SECONDS // 2 * SECOND for one in keys} == {
        key(name) for name in NAMES
    }
