"""Small streams and queries that the tests of both runners share."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import headwater as hw
from headwater.execution.answers import Answer

EX = "http://ex/"
SENSORS = EX + "sensors"
ROOMS = EX + "rooms"

SLIDING = """
PREFIX : <http://ex/>
REGISTER QUERY sliding AS
SELECT ?sensor (COUNT(?value) AS ?n) (SUM(?value) AS ?sum)
FROM STREAM <http://ex/sensors> [RANGE 20s STEP 5s]
WHERE { ?sensor :value ?value } GROUP BY ?sensor
"""
TUMBLING = """
PREFIX : <http://ex/>
REGISTER QUERY tumbling AS
SELECT ?sensor ?value FROM STREAM <http://ex/sensors> [RANGE 10s TUMBLING]
WHERE { ?sensor :value ?value FILTER(?value > 80) }
"""
JOINED = """
PREFIX : <http://ex/>
REGISTER QUERY joined AS
SELECT ?sensor ?room ?floor ?value
FROM NAMED WINDOW <http://ex/w1> ON <http://ex/sensors> [RANGE PT10S STEP PT10S]
FROM NAMED WINDOW <http://ex/w2> ON <http://ex/rooms> [RANGE PT30S STEP PT10S]
WHERE {
  WINDOW <http://ex/w1> { ?sensor :value ?value }
  WINDOW <http://ex/w2> { ?sensor :in ?room }
  ?room :floor ?floor
}
"""
HOT = """
PREFIX : <http://ex/>
REGISTER STREAM hot COMPUTED EVERY 5s AS
CONSTRUCT { ?sensor :hot ?value } FROM STREAM <http://ex/sensors> [RANGE 5s STEP 5s]
WHERE { ?sensor :value ?value FILTER(?value > 60) }
"""
HOT_COUNT = """
PREFIX : <http://ex/>
REGISTER QUERY hot-count AS
SELECT (COUNT(*) AS ?n) FROM STREAM <hot> [RANGE 20s STEP 10s] WHERE { ?sensor :hot ?value }
"""
EAGER = """
PREFIX : <http://ex/>
SELECT ?sensor ?room WHERE { STREAM <http://ex/rooms> [RANGE 15s] { ?sensor :in ?room } }
"""
ANY = """
PREFIX : <http://ex/>
REGISTER QUERY any AS
ASK FROM STREAM <http://ex/sensors> [RANGE 10s STEP 10s] WHERE { ?sensor :value ?value FILTER(?value > 95) }
"""
QUERIES = (HOT_COUNT, SLIDING, TUMBLING, JOINED, HOT, EAGER, ANY)
STATIC = b"""
<http://ex/kitchen> <http://ex/floor> 1 .
<http://ex/attic> <http://ex/floor> 3 .
"""

FIRST = -30_000
"""The streams begin half a minute before 1970, in milliseconds."""


def sensor_lines(count: int = 120, *, late_every: int = 17, bad_every: int = 10, seed: int = 7) -> list[str]:
    """Timed N-Quads: one reading a second; some of them late, every tenth line broken."""
    generator = random.Random(seed)
    lines = []
    for number in range(count):
        time = FIRST + number * 1000
        if late_every and number % late_every == late_every - 1:
            time -= 7000
        if bad_every and number % bad_every == bad_every - 1:
            lines.append(f"{time}\t<http://ex/s1> <http://ex/value> oops .")
            continue
        value = generator.randrange(100)
        lines.append(f"{time}\t<http://ex/s{number % 4}> <http://ex/value> {integer(value)} .")
        if number % 6 == 0:
            lines.append(f'{time}\t<http://ex/s{number % 4}> <http://ex/unit> "C" .')
    return lines


def room_lines(count: int = 24) -> list[str]:
    """Where the sensors are, every five seconds."""
    rooms = ("kitchen", "attic", "cellar")
    return [
        f"{FIRST + number * 5000 + 500}\t<http://ex/s{number % 4}> <http://ex/in> <http://ex/{rooms[number % 3]}> ."
        for number in range(count)
    ]


def integer(value: int) -> str:
    return f'"{value}"^^<http://www.w3.org/2001/XMLSchema#integer>'


def write(path: Path, lines: Iterable[str], *, append: bool = False) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "a" if append else "w", encoding="utf-8") as stream:
        stream.writelines(f"{line}\n" for line in lines)
    return path


def comparable(answers: Iterable[Answer]) -> list[object]:
    """Answers such that two runs can be compared: rows and triples of one answer have no order."""
    return [
        (
            answer.query,
            answer.time,
            answer.part,
            Counter(answer.rows),
            Counter(answer.triples),
            answer.boolean,
        )
        for answer in answers
    ]


def by_query(answers: Iterable[Answer]) -> dict[str, list[object]]:
    """Answers of each query in their order; across queries a batch decides the order."""
    found: dict[str, list[object]] = {}
    for answer, key in zip(listed := list(answers), comparable(listed), strict=True):
        found.setdefault(answer.query, []).append(key)
    return found


def with_queries(engine: hw.Engine, texts: Iterable[str] = QUERIES) -> hw.Engine:
    for text in texts:
        engine.register(text)
    return engine


def with_city(engine: hw.Engine, folder: Path, static: Path | None = None) -> hw.Engine:
    """The engine with both streams, read from a folder that `write_city` filled, and the static rooms."""
    engine.stream(SENSORS, hw.files(folder / "sensors*.tnq"))
    engine.stream(ROOMS, hw.files(folder / "rooms*.tnq"))
    engine.dataset(static or folder / "static.ttl")
    return engine


def write_city(folder: Path) -> Path:
    write(folder / "sensors.tnq", sensor_lines())
    write(folder / "rooms.tnq", room_lines())
    (folder / "static.ttl").write_bytes(STATIC)
    return folder
