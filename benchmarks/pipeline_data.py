"""Sensor streams of any size for the pipeline's benchmarks, as timed N-Quads in the vocabulary of SRBench.

An observation is an element of four triples: its kind, its sensor, its value and its unit. Kinds and sensors are drawn
at random, values have two decimals; observations are a millisecond apart.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path

_OBSERVATION_TRIPLES = 4
_BLOCK = 10_000
KINDS = ("Rainfall", "Temperature", "WindSpeed", "Pressure", "RelativeHumidity")
OM = "http://knoesis.wright.edu/ssw/ont/sensor-observation.owl#"
WEATHER = "http://knoesis.wright.edu/ssw/ont/weather.owl#"
_TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
_DOUBLE = "http://www.w3.org/2001/XMLSchema#double"
_DATA = "http://data.example/"


@dataclass(frozen=True)
class Shape:
    """How many triples, over how many files and sensors; `apart` is the time between observations in microseconds."""

    triples: int
    files: int = 8
    sensors: int = 1000
    apart: int = 1000
    seed: int = 7


def write_observations(folder: Path, shape: Shape, *, name: str = "observations") -> int:
    """Write the stream; gives how many triples it has."""
    folder.mkdir(parents=True, exist_ok=True)
    chance = random.Random(shape.seed)
    observations = shape.triples // _OBSERVATION_TRIPLES
    kinds = [f"\t<{_DATA}o{{n}}> <{_TYPE}> <{WEATHER}{kind}Observation> .\n" for kind in KINDS]
    per_file = -(-observations // shape.files)
    number = 0
    for file in range(shape.files):
        with open(folder / f"{name}-{file:03d}.tnq", "w", encoding="ascii") as stream:
            for begin in range(number, min(number + per_file, observations), _BLOCK):
                end = min(begin + _BLOCK, number + per_file, observations)
                stream.write("".join(_observation(n, shape, chance, kinds) for n in range(begin, end)))
            number = min(number + per_file, observations)
    return observations * _OBSERVATION_TRIPLES


def _observation(number: int, shape: Shape, chance: random.Random, kinds: list[str]) -> str:
    time = str(number * shape.apart // 1000)
    subject = f"{_DATA}o{number}"
    sensor = int(chance.random() * shape.sensors)
    kind = kinds[int(chance.random() * len(kinds))].replace("{n}", str(number))
    return (
        f"{time}{kind}"
        f"{time}\t<{subject}> <{OM}procedure> <{_DATA}sensor{sensor}> .\n"
        f'{time}\t<{subject}> <{OM}floatValue> "{int(chance.random() * 10000) / 100}"^^<{_DOUBLE}> .\n'
        f"{time}\t<{subject}> <{OM}uom> <{WEATHER}unit{sensor % 7}> .\n"
    )


_PREFIXES = f"PREFIX om: <{OM}> PREFIX w: <{WEATHER}>\n"

STAR = (
    "REGISTER QUERY star AS "
    + _PREFIXES
    + """SELECT ?sensor ?value ?unit
FROM NAMED WINDOW <w> ON <observations> [RANGE PT10S STEP PT10S]
WHERE { WINDOW <w> { ?o a w:RainfallObservation ; om:procedure ?sensor ; om:floatValue ?value ; om:uom ?unit } }"""
)
