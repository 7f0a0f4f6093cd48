"""Streams of any size for the pipeline's benchmarks, as timed N-Quads in the vocabularies of SRBench and LSBench.

An observation is an element: what was observed, by which sensor, with which result. Posts are elements of a social
network: who created them, with which tags. Everything is drawn from a seed; elements are evenly apart in time.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

OM = "http://knoesis.wright.edu/ssw/ont/sensor-observation.owl#"
WEATHER = "http://knoesis.wright.edu/ssw/ont/weather.owl#"
GEO = "http://www.w3.org/2003/01/geo/wgs84_pos#"
SIB = "http://www.ins.cwi.nl/sib/vocabulary/"
SIOC = "http://rdfs.org/sioc/ns#"
FOAF = "http://xmlns.com/foaf/0.1/"
USER = "http://www.ins.cwi.nl/sib/user/u"
PERSON = "http://www.ins.cwi.nl/sib/person/p"
DATA = "http://data.example/"
_TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
_FLOAT = "^^<http://www.w3.org/2001/XMLSchema#float>"
KINDS = ("Rainfall", "Temperature", "WindSpeed", "Pressure", "Snowfall")
_PROPERTIES = ("_Rainfall", "_AirTemperature", "_WindSpeed", "_Pressure", "_Snowfall")
_BLOCK = 4096

Statements = Callable[[int, random.Random], list[str]]
"""The statements of the element with a number."""


@dataclass(frozen=True)
class StreamShape:
    """A stream: what its elements say, and how many microseconds they are apart."""

    name: str
    statements: Statements
    per_element: int
    apart: int


def write_stream(folder: Path, shape: StreamShape, triples: int, files: int = 8, seed: int = 7) -> int:
    """Write about so many triples into files; gives how many they are."""
    folder.mkdir(parents=True, exist_ok=True)
    elements = triples // shape.per_element
    for number in range(files):
        begin, end = elements * number // files, elements * (number + 1) // files
        with open(folder / f"part-{number:03d}.tnq", "w", encoding="ascii") as stream:
            for block in range(begin, end, _BLOCK):
                stream.writelines(_lines(shape, range(block, min(block + _BLOCK, end)), seed))
    return elements * shape.per_element


def _lines(shape: StreamShape, numbers: range, seed: int) -> Iterator[str]:
    chance = random.Random(seed * 1_000_003 + numbers.start)
    for number in numbers:
        time = number * shape.apart // 1000
        for statement in shape.statements(number, chance):
            yield f"{time}\t{statement} .\n"


def observation(sensors: int) -> Statements:
    """Four triples: kind, sensor, value and unit, all about the observation."""

    def statements(number: int, chance: random.Random) -> list[str]:
        subject, sensor = f"<{DATA}o{number}>", int(chance.random() * sensors)
        kind, value = KINDS[int(chance.random() * len(KINDS))], int(chance.random() * 10_000) / 100
        return [
            f"{subject} {_TYPE} <{WEATHER}{kind}Observation>",
            f"{subject} <{OM}procedure> <{DATA}sensor{sensor}>",
            f'{subject} <{OM}floatValue> "{value}"{_FLOAT}',
            f"{subject} <{OM}uom> <{WEATHER}unit{sensor % 7}>",
        ]

    return statements


def readings(sensors: int) -> Statements:
    """Four triples: the values that four sensors have read at one instant."""

    def statements(number: int, chance: random.Random) -> list[str]:
        return [
            f"<{DATA}sensor{int(chance.random() * sensors)}> <{OM}floatValue> "
            f'"{int(chance.random() * 10_000) / 100}"{_FLOAT}'
            for _ in range(4)
        ]

    return statements


def linked_observation(sensors: int) -> Statements:
    """Seven triples, as in LinkedSensorData: the result is a resource of its own."""

    def statements(number: int, chance: random.Random) -> list[str]:
        subject, result = f"<{DATA}o{number}>", f"<{DATA}r{number}>"
        sensor = f"<{DATA}sensor{int(chance.random() * sensors)}>"
        kind, value = int(chance.random() * len(KINDS)), int(chance.random() * 10_000) / 100
        return [
            f"{sensor} <{OM}generatedObservation> {subject}",
            f"{subject} <{OM}procedure> {sensor}",
            f"{subject} {_TYPE} <{WEATHER}{KINDS[kind]}Observation>",
            f"{subject} <{OM}observedProperty> <{WEATHER}{_PROPERTIES[kind]}>",
            f"{subject} <{OM}result> {result}",
            f'{result} <{OM}floatValue> "{value}"{_FLOAT}',
            f"{result} <{OM}uom> <{WEATHER}unit{kind}>",
        ]

    return statements


def alert(sensors: int) -> Statements:
    """One triple: a sensor is looked at by somebody."""

    def statements(number: int, chance: random.Random) -> list[str]:
        return [f"<{DATA}sensor{int(chance.random() * sensors)}> <{DATA}checkedBy> <{DATA}person{number}>"]

    return statements


def post(users: int, tags: int) -> Statements:
    """Three triples: who created a post, and its two tags."""

    def statements(number: int, chance: random.Random) -> list[str]:
        subject = f"<{DATA}post{number}>"
        first, second = int(chance.random() * tags), int(chance.random() * tags)
        return [
            f"<{USER}{int(chance.random() * users)}> <{SIOC}creator_of> {subject}",
            f"{subject} <{SIB}hashtag> <{DATA}tag{first}>",
            f"{subject} <{SIB}hashtag> <{DATA}tag{second}>",
        ]

    return statements
