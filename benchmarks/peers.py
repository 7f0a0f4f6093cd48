"""Three queries that one would otherwise write in polars: `python -m benchmarks.peers [--triples N]`.

    star       a star of four patterns, tumbling windows of 10 s
    means      AVG and COUNT for each of 1,000 sensors, 60 s by 1 s
    pairs      temperatures and wind speeds of a sensor, joined with a comparison, 30 s by 5 s

An observation is five triples; each of the sensors observes something every five seconds. All read the same file of
timed N-Quads. Headwater runs in process; the rows of all answers are counted in Arrow tables (`AnswerBatch.to_arrow`).
Polars has the triples as columns, or makes a wide table of them by hand (a row for each observation, by the known order
of its triples), and evaluates each window anew. Rows and sums are compared with what the generator says. Prints one
JSON object last:

- `triples_per_s`: by query and way (`headwater`, `polars_triples`, `polars_wide`), the best of three turns
- `vs_polars_triples`, `vs_polars_wide`: how many times as fast Headwater is
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc

import headwater as hw
from benchmarks.peers_polars import PER_OBSERVATION, POLARS_QUERIES, read_triples, read_wide
from benchmarks.pipeline_data import DATA, OM, WEATHER
from benchmarks.reporting import machine, print_result, progress, rounded

_TRIPLES = 1_000_000
_TURNS = 3
_SENSORS = 1000
_APART_MS = 5
KINDS = ("Rainfall", "Temperature", "WindSpeed", "Pressure", "Snowfall")
STREAM = "http://data.example/observations"
_TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
_DOUBLE = "<http://www.w3.org/2001/XMLSchema#double>"
_PREFIXES = f"PREFIX om: <{OM}> PREFIX w: <{WEATHER}> PREFIX d: <{DATA}>\n"

Checksum = tuple[int, float]
"""How many rows all answers have, and the sum of the values in them."""


@dataclass(frozen=True)
class Observations:
    """What the generator made, as columns."""

    times: npt.NDArray[np.int64]
    sensors: npt.NDArray[np.int64]
    kinds: npt.NDArray[np.int64]
    values: npt.NDArray[np.float64]

    @classmethod
    def draw(cls, count: int) -> Observations:
        chance = random.Random(11)
        return cls(
            np.arange(1, count + 1) * _APART_MS,
            np.array([chance.randrange(_SENSORS) for _ in range(count)]),
            np.array([chance.randrange(len(KINDS)) for _ in range(count)]),
            np.array([chance.randrange(4, 40_000) / 4 for _ in range(count)]),
        )

    def write(self, path: Path) -> None:
        """The observations as timed N-Quads."""
        with open(path, "w", encoding="ascii") as stream:
            for number, (when, sensor, kind, value) in enumerate(self._rows()):
                subject = f"<{DATA}o{number}>"
                for predicate, term in (
                    (_TYPE, f"<{WEATHER}{KINDS[kind]}Observation>"),
                    (f"<{OM}procedure>", f"<{DATA}sensor{sensor}>"),
                    (f"<{OM}floatValue>", f'"{value}"^^{_DOUBLE}'),
                    (f"<{OM}uom>", f"<{WEATHER}unit{kind}>"),
                    (f"<{OM}generatedBy>", f"<{DATA}network{sensor % 10}>"),
                ):
                    stream.write(f"{when}\t{subject} {predicate} {term} .\n")

    def _rows(self) -> Iterator[tuple[int, int, int, float]]:
        columns = (self.times, self.sensors, self.kinds, self.values)
        return zip(*(column.tolist() for column in columns), strict=True)

    def windows(self, width_ms: int, slide_ms: int) -> Iterator[slice]:
        """The observations of each window `(t - width, t]` that Headwater answers, t a multiple of the slide."""
        last = int(self.times[-1])
        for end in range(width_ms, last + width_ms + slide_ms, slide_ms):
            low, high = self.times.searchsorted([end - width_ms, end], side="right").tolist()
            if high > low:
                yield slice(low, high)

    def checksum(self, name: str) -> Checksum:
        """What all answers of a query have together."""
        rows, total = 0, 0.0
        for window in self.windows(*WINDOWS[name]):
            sensors, kinds, values = self.sensors[window], self.kinds[window], self.values[window]
            if name == "star":
                chosen = values[kinds == 0]
                rows, total = rows + chosen.shape[0], total + float(chosen.sum())
            elif name == "means":
                counts = np.bincount(sensors, minlength=_SENSORS)
                sums = np.bincount(sensors, weights=values, minlength=_SENSORS)
                some = counts > 0
                rows, total = rows + int(some.sum()), total + float((sums[some] / counts[some]).sum())
            else:
                is_warm, is_windy = kinds == 1, kinds == 2
                order = np.argsort(sensors[is_windy], kind="stable")
                others, speeds = sensors[is_windy][order], values[is_windy][order]
                for sensor, value in zip(sensors[is_warm], values[is_warm], strict=True):
                    low, high = others.searchsorted([sensor, sensor + 1])
                    below = int((speeds[low:high] < value).sum())
                    rows, total = rows + below, total + below * float(value)
        return rows, total


WINDOWS = {"star": (10_000, 10_000), "means": (60_000, 1_000), "pairs": (30_000, 5_000)}
"""Width and slide in milliseconds."""

_BODIES = {
    "star": (
        "SELECT ?sensor ?value ?unit",
        "?o a w:RainfallObservation ; om:procedure ?sensor ; om:floatValue ?value ; om:uom ?unit",
        "",
    ),
    "means": (
        "SELECT ?sensor (AVG(?value) AS ?mean) (COUNT(*) AS ?n)",
        "?o om:procedure ?sensor ; om:floatValue ?value",
        "GROUP BY ?sensor",
    ),
    "pairs": (
        "SELECT ?sensor ?value ?speed",
        "?o a w:TemperatureObservation ; om:procedure ?sensor ; om:floatValue ?value . "
        "?p a w:WindSpeedObservation ; om:procedure ?sensor ; om:floatValue ?speed . FILTER(?speed < ?value)",
        "",
    ),
}


def query_text(name: str) -> str:
    """The query in RSP-QL."""
    (head, body, tail), (width, slide) = _BODIES[name], WINDOWS[name]
    window = f"FROM NAMED WINDOW d:w ON <{STREAM}> [RANGE PT{width // 1000}S STEP PT{slide // 1000}S]"
    return f"{_PREFIXES}{head}\n{window}\nWHERE {{ WINDOW d:w {{ {body} }} }} {tail}"


def run_headwater(name: str, path: Path) -> Checksum:
    """The query in process, its answers as Arrow tables."""
    engine = hw.Engine(in_process=True, batch_bytes=8 << 20)
    engine.stream(STREAM, hw.files(path))
    engine.register(query_text(name), emit="rstream", t0=0)
    rows, total = 0, 0.0

    def count(answers: hw.AnswerBatch) -> None:
        nonlocal rows, total
        table = answers.to_arrow()
        if table.num_rows:
            rows += table.num_rows
            total += pc.sum(table.column(3)).as_py()

    engine.run(on_batch=count)
    return rows, total


def measure(triples: int) -> dict[str, object]:
    """The rates of all queries in all ways."""
    count = triples // PER_OBSERVATION
    observations = Observations.draw(count)
    rates: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory(prefix="headwater-benchmark-") as folder:
        path = Path(folder, "observations.tnq")
        observations.write(path)
        for name in WINDOWS:
            expected = observations.checksum(name)
            on_triples, on_wide = POLARS_QUERIES[name]
            ways: dict[str, Callable[[], Checksum]] = {
                "headwater": lambda name=name: run_headwater(name, path),  # type: ignore[misc]
                "polars_triples": lambda name=name, run=on_triples: run(read_triples(path), *WINDOWS[name]),  # type: ignore[misc]
                "polars_wide": lambda name=name, run=on_wide: run(read_wide(path), *WINDOWS[name]),  # type: ignore[misc]
            }
            seconds = dict.fromkeys(ways, float("inf"))
            for _ in range(_TURNS):
                for way, run in ways.items():
                    begin = time.perf_counter()
                    found = run()
                    seconds[way] = min(seconds[way], time.perf_counter() - begin)
                    if found[0] != expected[0] or abs(found[1] - expected[1]) > 1e-6 * abs(expected[1]):
                        raise AssertionError(f"{name}, {way}: {found} instead of {expected}")
            rates[name] = {way: PER_OBSERVATION * count / best for way, best in seconds.items()}
            progress(f"{name}: {expected[0]} rows; " + ", ".join(f"{way} {r:,.0f}" for way, r in rates[name].items()))
    return {
        "triples_per_s": {name: {way: rounded(rate) for way, rate in own.items()} for name, own in rates.items()},
        **{
            f"vs_{way}": {name: rounded(own["headwater"] / own[way]) for name, own in rates.items()}
            for way in ("polars_triples", "polars_wide")
        },
        "triples": triples,
        "machine": machine(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--triples", type=int, default=_TRIPLES)
    print_result(measure(parser.parse_args().triples))


if __name__ == "__main__":
    main()
