"""The strategies of SERVICE against a real endpoint: the oxigraph server on loopback, with 10^5 entries.

A stream mentions accounts, some far more often than others; the endpoint has their follower counts, of which some
change before every tick. Each request takes 20 ms longer than it would on loopback. One query, with five strategies:

    nested loop             every key of the window at every tick, one key per request
    nested loop, batches    the same with VALUES, as many keys per request as the endpoint takes
    hash                    everything, page by page, at every tick
    local view              one key per request, ρ = 200 ms
    local view, batches     with VALUES, ρ = 200 ms

Latency is that of a whole tick, from the arrival of what makes it due to the answer. Accuracy is the share of the
window's accounts that the answer has with the count of the tick; `estimated` is what the answers said of it themselves.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean, median

from pyoxigraph import Store

from benchmarks.oxigraph_server import Running, oxigraph
from benchmarks.reporting import progress, quantile, rounded
from headwater.algebra.build import plan_query
from headwater.algebra.nodes import Service
from headwater.execution.answers import Answer
from headwater.execution.program import Program
from headwater.execution.registered import RegisteredQuery
from headwater.federation.endpoint.bound_fetcher import BoundFetcher
from headwater.federation.endpoint.client import Endpoint
from headwater.federation.endpoint.endpoint_settings import EndpointSettings
from headwater.federation.endpoint.limits import Limits
from headwater.federation.endpoint.remote import FetchResult, Page, Remote
from headwater.federation.endpoint.request_queries import RequestQueries
from headwater.federation.service_evaluator import make_evaluator_factory
from headwater.federation.services import KeyVariables, Services
from headwater.language.parser import parse
from headwater.terms.model import SECOND, Element, Literal, NamedNode, Row, Triple
from headwater.windows.settings import resolve_settings

EX = "http://example.org/"
ENTRIES, QUICK_ENTRIES = 100_000, 10_000
TICKS, QUICK_TICKS = 200, 40
HASH_TICKS, QUICK_HASH_TICKS = 10, 4
GOAL = 0.2
DELAY = 0.02
MENTIONS = 20
"""How many accounts a second are mentioned."""
CHANGES = 5
"""How many accounts of the window have another count at the next tick."""

STRATEGIES = {
    "nested loop": ("OPTION (STRATEGY LOOP)", 1),
    "nested loop, batches": ("OPTION (STRATEGY LOOP)", 100),
    "hash": ("OPTION (STRATEGY HASH)", 100),
    "local view": ("OPTION (LATENCY 200ms)", 1),
    "local view, batches": ("OPTION (LATENCY 200ms)", 100),
}


class DelayedRemote:
    """A remote with a delay before each request."""

    def __init__(self, remote: Remote) -> None:
        self._remote = remote

    @property
    def name(self) -> str:
        return self._remote.name

    @property
    def keys_per_request(self) -> int:
        return self._remote.keys_per_request

    def fetch(self, keys: Sequence[Row]) -> FetchResult:
        time.sleep(DELAY)
        fetched = self._remote.fetch(keys)
        return replace(fetched, seconds=fetched.seconds + DELAY)

    def pages(self, limit: int) -> Iterator[Page]:
        for page in self._remote.pages(limit):
            time.sleep(DELAY)
            yield page


@dataclass
class Accounts:
    """The accounts at the endpoint, and their present counts."""

    running: Running
    counts: list[int]
    chance: random.Random = field(default_factory=lambda: random.Random(7))

    @classmethod
    def load(cls, running: Running, entries: int) -> Accounts:
        running.load("".join(f"<{EX}a{n}> <{EX}followers> {n} .\n" for n in range(entries)))
        return cls(running, list(range(entries)))

    def mentions_at(self, second: int) -> list[int]:
        """The accounts of one second: few are mentioned often, most hardly ever."""
        chance = random.Random(second)
        return [int(len(self.counts) * chance.random() ** 4) for _ in range(MENTIONS)]

    def change_counts(self, among: Sequence[int]) -> None:
        """Change the counts of some of these accounts."""
        chosen = {self.chance.choice(among) for _ in range(CHANGES)}
        for number in chosen:
            self.counts[number] += 1
        old = " ".join(f"<{EX}a{number}>" for number in chosen)
        new = " ".join(f"<{EX}a{number}> <{EX}followers> {self.counts[number]} ." for number in chosen)
        self.running.update(
            f"DELETE {{ ?a <{EX}followers> ?n }} WHERE {{ VALUES ?a {{ {old} }} ?a <{EX}followers> ?n }} ;"
            f"INSERT DATA {{ {new} }}"
        )

    def accuracy_of(self, answer: Answer, expected_rows: int) -> float:
        """The share of the expected rows that the answer has with the present count."""
        right = [
            isinstance(who, NamedNode)
            and isinstance(count, Literal)
            and self.counts[int(who.value.removeprefix(f"{EX}a"))] == int(count.value)
            for who, count in answer.rows
        ]
        return sum(right) / expected_rows if expected_rows else 1.0


@dataclass
class StrategyRun:
    """The measurements of one strategy, tick by tick."""

    seconds: list[float] = field(default_factory=list)
    requests: list[int] = field(default_factory=list)
    accuracies: list[float] = field(default_factory=list)
    estimates: list[float] = field(default_factory=list)
    keys: list[int] = field(default_factory=list)

    def values(self) -> dict[str, object]:
        taken = sorted(self.seconds)
        return {
            "ticks": len(taken),
            "keys_per_tick": rounded(median(self.keys)),
            "requests_per_tick": rounded(fmean(self.requests)),
            "latency_ms": {
                "median": rounded(1000 * median(taken)),
                "p99": rounded(1000 * quantile(taken, 0.99)),
                "longest": rounded(1000 * taken[-1]),
            },
            "latency_share_within": rounded(fmean(one <= GOAL for one in taken)),
            "accuracy": rounded(fmean(self.accuracies)),
            "estimated": rounded(fmean(self.estimates)),
        }


def measure(quick: bool = False, entries: int | None = None, ticks: int | None = None) -> dict[str, object]:
    """The keys of the result: `strategies`, and `latency_share_within` for the local view at one key per request."""
    size = entries or (QUICK_ENTRIES if quick else ENTRIES)
    rounds = ticks or (QUICK_TICKS if quick else TICKS)
    found: dict[str, StrategyRun] = {}
    with oxigraph() as running:
        accounts = Accounts.load(running, size)
        run(accounts, "local view", 3)
        for name in STRATEGIES:
            hashed = min(rounds, QUICK_HASH_TICKS if quick else HASH_TICKS)
            found[name] = run(accounts, name, hashed if name == "hash" else rounds)
            progress(f"{name}: {found[name].values()}")
    within = found["local view"].values()["latency_share_within"]
    return {
        "endpoint_entries": size,
        "latency_share_within": within,
        "strategies": {name: one.values() for name, one in found.items()},
    }


def run(accounts: Accounts, name: str, ticks: int) -> StrategyRun:
    """Run one strategy, from an empty view."""
    options, batch = STRATEGIES[name]
    # As many requests at once as a view has workers, so that only DELAY and not the limit is measured.
    settings = EndpointSettings(accounts.running.url, limits=Limits(concurrent=8))
    endpoint = Endpoint(settings)

    def remote(node: Service, keys: KeyVariables) -> Remote:
        largest = 1 if batch == 1 else 1_000
        return DelayedRemote(BoundFetcher(endpoint, RequestQueries.for_pattern(node.inner, keys), batch, largest))

    text = f"""PREFIX : <{EX}> SELECT DISTINCT ?who ?n FROM STREAM :mentions [RANGE 10s STEP 1s]
               WHERE {{ ?who :mentionedIn ?post .
                        SERVICE <{accounts.running.url}> {{ ?who :followers ?n }} {options} }}"""
    plan = plan_query(parse(text), streams=[f"{EX}mentions"])
    program = Program(
        [RegisteredQuery(plan, resolve_settings(plan))], Store(), 0, make_evaluator_factory(Services(remote=remote))
    )
    measured = StrategyRun()
    window: list[list[int]] = []
    for second in range(ticks + 10):
        window = [*window[-9:], accounts.mentions_at(second)]
        accounts.change_counts([number for one in window for number in one])
        before = endpoint.measures.requests
        begun = time.perf_counter()
        answers = program.advance({f"{EX}mentions": _elements(second, window[-1])}).answers
        taken = time.perf_counter() - begun
        # The view starts empty: the first window is a warm-up.
        keys = len({number for one in window for number in one})
        for answer in answers if second >= 10 else ():
            measured.seconds.append(taken)
            measured.requests.append(endpoint.measures.requests - before)
            measured.accuracies.append(accounts.accuracy_of(answer, keys))
            measured.estimates.append(answer.quality.accuracy if answer.quality else 1.0)
            measured.keys.append(keys)
    endpoint.close()
    return measured


def _elements(second: int, accounts: Sequence[int]) -> list[Element]:
    """The mentions of a second, and what makes its tick due."""
    where = NamedNode(f"{EX}mentionedIn")
    step = SECOND // (len(accounts) + 1)
    found = [
        Element(second * SECOND + (place + 1) * step, (Triple(NamedNode(f"{EX}a{n}"), where, NamedNode(f"{EX}post")),))
        for place, n in enumerate(accounts)
    ]
    beat = Triple(NamedNode(f"{EX}heart"), NamedNode(f"{EX}beats"), NamedNode(f"{EX}on"))
    return [*found, Element((second + 1) * SECOND + 1, (beat,))]
