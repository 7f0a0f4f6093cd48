"""What a query may ask of a SERVICE clause besides its rows: `OPTION (…)`, ours, before or after the braces.

    SERVICE <http://example.org/sparql> { ?user :followers ?n } OPTION (ACCURACY 0.75, LATENCY 500ms, BUDGET 10)

    ACCURACY 0.75           the share of rows that the endpoint would give now, as estimated (α)
    LATENCY 500ms           how long an evaluation may take (ρ)
    BUDGET 10               how many keys may be refreshed at a tick (γ)
    PREFER LATENCY          which of the two holds where both cannot; LATENCY by default
    POLICY WBM              who is refreshed first; a bare word or a string
    STRATEGY VIEW           VIEW keeps a local view, LOOP asks for the window's keys at each tick, HASH for everything
    ENTRIES 10000           how many keys the view may hold
    FILL                    take everything into the view before the first tick, not as keys turn up

They stand in any order, with commas between them. What they mean is in docs/how-to/service.md.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from enum import Enum

from headwater.errors import SettingError
from headwater.terms.arguments import check_number, check_whole

POLICY_NAMES = ("LEARNT", "WBM", "LRU", "RND", "GNR-LRU", "GNR-RND", "WST")


class Strategy(Enum):
    """How the rows of a SERVICE clause are had."""

    VIEW = "local view"
    LOOP = "nested loop"
    HASH = "hash join"


class Preference(Enum):
    """Which goal holds where both cannot."""

    ACCURACY = "accuracy"
    LATENCY = "latency"


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

    def __post_init__(self) -> None:
        if self.accuracy is not None and check_number("accuracy", self.accuracy) > 1.0:
            raise SettingError(f"an accuracy is a share between 0 and 1, not {self.accuracy}")
        for name, least in (("latency", 1), ("budget", 0), ("entries", 1)):
            if (number := getattr(self, name)) is not None:
                check_whole(name, number, least)
        if self.policy is not None and not is_policy(str(self.policy)):
            raise SettingError(f"no policy is called {self.policy!r}; choose one of {', '.join(POLICY_NAMES)}")

    @property
    def chosen_strategy(self) -> Strategy:
        """The strategy that was chosen; a local view by default."""
        return Strategy.VIEW if self.strategy is None else self.strategy

    def over(self, defaults: ServiceOptions | None) -> ServiceOptions:
        """These options, and those of the defaults that they leave open."""
        if defaults is None:
            return self
        own = {field.name: getattr(self, field.name) for field in fields(self)}
        return replace(defaults, **{name: value for name, value in own.items() if value is not None})


def is_policy(name: str) -> bool:
    """Whether a policy has that name, in whatever case; `WSJ-` may stand before it."""
    return name.upper().removeprefix("WSJ-") in POLICY_NAMES


def strategy_of(options: ServiceOptions | None) -> Strategy:
    """A clause without options asks its endpoint at each tick, as SPARQL has it."""
    return Strategy.LOOP if options is None else options.chosen_strategy
