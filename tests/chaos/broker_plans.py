"""What happens to a broker, and around it, while a part of the streams comes in: chosen by a seed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from random import Random

BROKER_FAULTS = ("kill", "stop", "cut", "cut", "tear", "tear", "delay", "twice")
DOUBLING = ("kill", "cut", "tear", "twice")
"""The faults after which a message may be delivered a second time."""
_SLEEPS = (0.0, 0.0, 0.01, 0.1, 0.3)


@dataclass(frozen=True)
class Send:
    """A message for the topic of a stream."""

    stream: str
    payload: str


@dataclass(frozen=True)
class BrokerFault:
    """An order for the keeper of the broker, with its value; `twice` sends the message before it again."""

    kind: str
    value: float = 0.0
    sleep: float = 0.0
    """How long before it nothing is done, so that the messages before it are on their way, or have arrived."""


Step = Send | BrokerFault


def a_broker_fault(random: Random) -> BrokerFault:
    kind = random.choice(BROKER_FAULTS)
    value = {
        "kill": random.choice([0.0, 0.3, 1.5]),
        "stop": random.choice([0.2, 1.0, 2.5]),
        "tear": float(round(2 ** random.uniform(0, 9))),
        "delay": random.choice([0.3, 1.0]),
    }.get(kind, 0.0)
    return BrokerFault(kind, value, random.choice(_SLEEPS))


def a_plan(random: Random, lines: Iterable[Send], most: int = 2) -> tuple[Step, ...]:
    """The messages of a part in their order, with some faults among them."""
    steps: list[Step] = list(lines)
    for _ in range(random.choice([0, *range(1, most + 1), *range(1, most + 1)])):
        steps.insert(random.randint(0, len(steps)), a_broker_fault(random))
    if random.randrange(2):
        # What a broker has saved it has to deliver; what came behind that is sent again when it was killed.
        steps.insert(random.randint(0, len(steps)), BrokerFault("save"))
    return tuple(steps)


def interleave(random: Random, streams: Sequence[Sequence[Send]]) -> list[Send]:
    """The messages of several streams by chance among each other, those of each in their order."""
    left = [list(one) for one in streams]
    found: list[Send] = []
    while waiting := [one for one in left if one]:
        found.append(random.choice(waiting).pop(0))
    return found


def kinds_of(plans: Iterable[Iterable[Step]]) -> Counter[str]:
    """The faults of plans, each as often as it happens."""
    return Counter(step.kind for plan in plans for step in plan if isinstance(step, BrokerFault))
