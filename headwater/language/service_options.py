"""What a query may ask of a SERVICE clause besides its rows: `OPTION (…)`, ours, before or after the braces.

    SERVICE <http://example.org/sparql> { ?user :followers ?n } OPTION (ACCURACY 0.75, LATENCY 500ms, BUDGET 10)

    ACCURACY 0.75           the share of rows that the endpoint would give now, as estimated (α)
    LATENCY 500ms           how long an evaluation may take (ρ)
    BUDGET 10               how many keys may be refreshed at a tick (γ)
    PREFER LATENCY          which of the two holds where both cannot; LATENCY by default
    POLICY WBM              who is refreshed first; a bare word or a string
    RATES <graph>           how often entities change, for WBM: a graph of the linked data, or a file, "rates.csv"
    STRATEGY VIEW           VIEW keeps a local view, LOOP asks for the window's keys at each tick, HASH for everything
    ENTRIES 10000           how many keys the view may hold
    CLOCK STREAM            what ages are measured by: WALL, the machine's clock, or STREAM, the stream's, for replays
    FILL                    take everything into the view before the first tick, not as keys turn up

They stand in any order, with commas between them. What they mean is in docs/how-to/service.md.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from enum import Enum

from headwater.errors import SettingError
from headwater.terms.arguments import check_number, check_type, check_whole
from headwater.terms.model import NamedNode

DEFAULT_POLICY = "LEARNT"
POLICY_NAMES = ("LEARNT", "WBM", "LRU", "RND", "GNR-LRU", "GNR-RND", "WST")

RatesSource = NamedNode | str
"""Where change rates are: the graph of that name, or the file at that path."""


class Strategy(Enum):
    """How the rows of a SERVICE clause are had."""

    VIEW = "local view"
    LOOP = "nested loop"
    HASH = "hash join"


class Preference(Enum):
    """Which goal holds where both cannot."""

    ACCURACY = "accuracy"
    LATENCY = "latency"


class ServiceClock(Enum):
    """What the ages of a view are measured by."""

    WALL = "the machine's clock"
    STREAM = "the stream's clock"


@dataclass(frozen=True, slots=True)
class ServiceOptions:
    """The goals of a SERVICE clause; None leaves one open. `latency` is in microseconds.

    >>> ServiceOptions(accuracy=0.75, latency=500_000, budget=10).chosen_strategy
    <Strategy.VIEW: 'local view'>
    """

    accuracy: float | None = None
    latency: int | None = None
    budget: int | None = None
    prefer: Preference | None = None
    policy: str | None = None
    strategy: Strategy | None = None
    entries: int | None = None
    fill: bool | None = None
    rates: RatesSource | None = None
    clock: ServiceClock | None = None

    def __post_init__(self) -> None:
        if self.accuracy is not None and check_number("accuracy", self.accuracy) > 1.0:
            raise SettingError(f"an accuracy is a share between 0 and 1, not {self.accuracy}")
        for name, least in (("latency", 1), ("budget", 0), ("entries", 1)):
            if (number := getattr(self, name)) is not None:
                check_whole(name, number, least)
        if self.policy is not None and not is_policy(str(self.policy)):
            raise SettingError(f"no policy is called {self.policy!r}; choose one of {', '.join(POLICY_NAMES)}")
        if self.rates is not None:
            self._check_rates()

    def _check_rates(self) -> None:
        if not check_type("rates", self.rates, (NamedNode, str), "NamedNode(…) for a graph, or the path of a file"):
            raise SettingError("rates must be a graph or the path of a file, and the path is empty")
        if not is_wbm(self.chosen_policy):
            raise SettingError(f"only WBM takes rates; {self.policy} has no use for them")
        if self.chosen_strategy is not Strategy.VIEW:
            raise SettingError(f"STRATEGY {self.chosen_strategy.name} keeps no view: it has no use for rates")

    @property
    def chosen_policy(self) -> str:
        """The policy that was chosen; WBM where rates are given, LEARNT otherwise."""
        return self.policy or (DEFAULT_POLICY if self.rates is None else "WBM")

    @property
    def chosen_strategy(self) -> Strategy:
        """The strategy that was chosen; a local view by default."""
        return Strategy.VIEW if self.strategy is None else self.strategy

    def over(self, defaults: ServiceOptions | None) -> ServiceOptions:
        """These options, and those of the defaults that they leave open and that do not contradict them."""
        if defaults is None:
            return self
        own = {field.name: value for field in fields(self) if (value := getattr(self, field.name)) is not None}
        if self.rates is not None:
            defaults = replace(defaults, policy=None, strategy=None, rates=None)
        elif not is_wbm(self.policy or "WBM") or self.strategy not in (None, Strategy.VIEW):
            defaults = replace(defaults, rates=None)
        return replace(defaults, **own)


def is_policy(name: str) -> bool:
    """Whether a policy has that name, in whatever case; `WSJ-` may stand before it."""
    return name.upper().removeprefix("WSJ-") in POLICY_NAMES


def is_wbm(policy: str) -> bool:
    """Whether a policy is WBM, the one that can be given change rates."""
    return policy.upper().removeprefix("WSJ-") == "WBM"


def strategy_of(options: ServiceOptions | None) -> Strategy:
    """A clause without options asks its endpoint at each tick, as SPARQL has it."""
    return Strategy.LOOP if options is None else options.chosen_strategy
