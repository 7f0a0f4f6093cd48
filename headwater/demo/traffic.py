"""A morning's traffic, invented: cars enter the city by tollgates and are seen by cameras on their way.

The same seed gives the same cars at the same instants on every machine. Traffic swells to a rush hour in the middle of
the morning and falls again. The morning is cut into minutes, each with what both streams registered, in time order:

>>> first = morning(City.read(), minutes=40, seed=1)[0].tollgates[0]
>>> first.instant - BEGIN, first.device, first.car
(8805, 'http://linkedurbandata.org/city#gate1', 'HW 100')
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from random import Random

from pyoxigraph import NamedNode, RdfFormat, Store

from headwater.terms.rdf_documents import read_quads

CITY = "http://linkedurbandata.org/city#"
REGISTERS = "http://linkedurbandata.org/traffic#registers"

BEGIN = 1_772_434_800_000
"""2026-03-02T07:00:00Z in milliseconds: when the morning begins."""
MINUTE = 60_000

_QUIET_CARS_A_MINUTE = 4
_RUSH_CARS_A_MINUTE = 18
_SHORTEST_LEG = MINUTE // 2
_LONGEST_LEG = 4 * MINUTE
_CAMERAS_ON_THE_WAY = (0, 1, 1, 2, 3)


def city_text() -> str:
    """The static city, as Turtle."""
    return (files("headwater.demo") / "city.ttl").read_text("utf-8")


@dataclass(frozen=True, slots=True)
class City:
    """The IRIs of all that registers cars."""

    tollgates: tuple[str, ...]
    cameras: tuple[str, ...]

    @classmethod
    def read(cls) -> City:
        """The city of `city.ttl`."""
        store = Store()
        store.extend(read_quads(city_text().encode(), format=RdfFormat.TURTLE))
        return cls(_subjects_with(store, "placedIn"), _subjects_with(store, "monitors"))


def _subjects_with(store: Store, property_name: str) -> tuple[str, ...]:
    quads = store.quads_for_pattern(None, NamedNode(CITY + property_name), None)
    return tuple(sorted({quad.subject.value for quad in quads if isinstance(quad.subject, NamedNode)}))


@dataclass(frozen=True, order=True, slots=True)
class CarSighting:
    """A tollgate or a camera registers a car; `instant` is in milliseconds."""

    instant: int
    device: str
    car: str

    @property
    def line(self) -> str:
        """As timed N-Quads."""
        return f'{self.instant}\t<{self.device}> <{REGISTERS}> "{self.car}" .'


@dataclass(frozen=True, slots=True)
class Minute:
    """What the two streams of the city registered in one minute."""

    tollgates: tuple[CarSighting, ...]
    cameras: tuple[CarSighting, ...]


def morning(city: City, minutes: int, seed: int) -> list[Minute]:
    """The minutes of a morning, one after the other."""
    chance = Random(seed)
    plate = 100
    ahead: list[CarSighting] = []
    result: list[Minute] = []
    for number in range(minutes):
        begin = BEGIN + number * MINUTE
        entries: list[CarSighting] = []
        for instant in sorted(begin + chance.randrange(MINUTE) for _ in range(_cars(number, minutes))):
            car, plate = f"HW {plate}", plate + 1
            entries.append(CarSighting(instant, chance.choice(city.tollgates), car))
            for sighting in _journey(city, chance, instant, car):
                heapq.heappush(ahead, sighting)
        seen: list[CarSighting] = []
        while ahead and ahead[0].instant < begin + MINUTE:
            seen.append(heapq.heappop(ahead))
        result.append(Minute(tuple(entries), tuple(seen)))
    return result


def _cars(minute: int, minutes: int) -> int:
    """How many cars enter in a minute: few at both ends of the morning, most in its middle."""
    rush = math.sin(math.pi * (minute + 0.5) / minutes) ** 2
    return round(_QUIET_CARS_A_MINUTE + (_RUSH_CARS_A_MINUTE - _QUIET_CARS_A_MINUTE) * rush)


def _journey(city: City, chance: Random, entered: int, car: str) -> Iterator[CarSighting]:
    instant = entered
    for _ in range(chance.choice(_CAMERAS_ON_THE_WAY)):
        instant += chance.randrange(_SHORTEST_LEG, _LONGEST_LEG)
        yield CarSighting(instant, chance.choice(city.cameras), car)
