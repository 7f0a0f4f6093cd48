"""How the cost of a slide grows with what is in a window, with the slide, with keys and with patterns.

aggregate   AVG and COUNT by sensor over a star of two patterns
join        a chain of two patterns, whose triples have one partner each in the mean
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain

import numpy as np

from benchmarks.growth_points import Axis, GrowthPoint, in_new_process, report_point, resident_mb
from benchmarks.growth_streams import (
    SECOND,
    STREAM,
    VOCABULARY,
    Batch,
    columns_of,
    make_program,
    measure_batches,
    numbers,
    predicate,
    register,
    resources,
)
from headwater.terms.ids.term_texts import Ints

_PREFIX = f"PREFIX : <{VOCABULARY}> "
_SLIDE = 1_000
_SLIDES = 40
_WARM_UP = 3
_SENSORS = 100


def _window(width: int) -> str:
    return f"FROM NAMED WINDOW :w ON <{STREAM}> [RANGE PT{width}S STEP PT1S]"


def aggregate_text(width: int, operator: str = "RSTREAM") -> str:
    """The mean by sensor over the last seconds."""
    head = f"REGISTER {operator} :out AS SELECT ?s (AVG(?v) AS ?mean) (COUNT(*) AS ?n) {_window(width)}"
    return f"{_PREFIX}{head} WHERE {{ WINDOW :w {{ ?o :by ?s . ?o :value ?v }} }} GROUP BY ?s"


def chain_text(width: int, patterns: int) -> str:
    """Patterns each of which has one variable in common with the next one."""
    chain = " . ".join(f"?x{number} :p{number} ?x{number + 1}" for number in range(patterns))
    head = f"REGISTER ISTREAM :out AS SELECT ?x0 ?x{patterns} {_window(width)}"
    return f"{_PREFIX}{head} WHERE {{ WINDOW :w {{ {chain} }} }}"


def star_text(width: int, patterns: int) -> str:
    """Patterns about one subject."""
    star = " ; ".join(f":p{number} ?x{number}" for number in range(patterns))
    head = f"REGISTER ISTREAM :out AS SELECT ?s ?x0 {_window(width)}"
    return f"{_PREFIX}{head} WHERE {{ WINDOW :w {{ ?s {star} }} }}"


class ReadingMaker:
    """Readings of sensors, two triples each: by which sensor, and the value."""

    def __init__(self, sensors: int) -> None:
        self._random = np.random.default_rng(5)
        self._sensors = resources(sensors, 1)
        self._values = numbers()
        self._count = 0

    def slide(self, triples: int) -> tuple[Ints, Ints]:
        """The triples of one slide, and the terms that answers can have."""
        count = max(1, triples // 2)
        rows = np.empty((count, 2, 3), dtype=np.int64)
        subjects = (1 << 61) + np.arange(self._count, self._count + count) * 7919
        self._count += count
        rows[:, :, 0] = subjects[:, None]
        rows[:, 0, 1], rows[:, 1, 1] = predicate("by"), predicate("value")
        rows[:, 0, 2] = self._random.choice(self._sensors, count)
        rows[:, 1, 2] = self._random.choice(self._values, count)
        return rows.reshape(-1, 3), rows[:, 0, 2]


class LinkMaker:
    """Links of a chain: triple `i` of each pattern leads from its key to one key of the next pattern."""

    def __init__(self, patterns: int, keys: int) -> None:
        self._random = np.random.default_rng(6)
        self._keys = resources(max(2, keys), 2)
        self._predicates = np.array([predicate(f"p{number}") for number in range(patterns)], dtype=np.int64)

    def slide(self, triples: int) -> tuple[Ints, Ints]:
        """The triples of one slide, of each pattern equally many, and the terms that answers can have."""
        count = max(1, triples // len(self._predicates)) * len(self._predicates)
        rows = np.empty((count, 3), dtype=np.int64)
        rows[:, 0] = self._random.choice(self._keys, count)
        rows[:, 1] = np.resize(self._predicates, count)
        rows[:, 2] = self._random.choice(self._keys, count)
        return rows, np.concatenate(
            (rows[:: len(self._predicates), 0], rows[len(self._predicates) - 1 :: len(self._predicates), 2])
        )


class StarMaker:
    """Elements that have a triple for each pattern, about a subject of their own."""

    def __init__(self, patterns: int) -> None:
        self._random = np.random.default_rng(4)
        self._predicates = np.array([predicate(f"p{number}") for number in range(patterns)], dtype=np.int64)
        self._values = numbers()
        self._count = 0

    def slide(self, triples: int) -> tuple[Ints, Ints]:
        """The triples of one slide, and the terms that answers can have."""
        width = len(self._predicates)
        count = max(1, triples // width)
        rows = np.empty((count, width, 3), dtype=np.int64)
        rows[:, :, 0] = ((1 << 61) + np.arange(self._count, self._count + count) * 7919)[:, None]
        self._count += count
        rows[:, :, 1] = self._predicates
        rows[:, :, 2] = self._random.choice(self._values, (count, width))
        return rows.reshape(-1, 3), rows[:, 0, 0]


Maker = ReadingMaker | LinkMaker | StarMaker


class Slides:
    """Batches of a stream: each slide is one second long and has equally many triples."""

    def __init__(self, maker: Maker, triples: int, per_element: int) -> None:
        self._maker = maker
        self._triples = triples
        self._per_element = per_element
        self._second = self._elements = 0

    def take(self, slides: int, at_once: int = 1) -> Iterator[Batch]:
        """The next slides; so many of them in one batch."""
        while slides > 0:
            seconds = min(at_once, slides)
            made = [self._maker.slide(self._triples) for _ in range(seconds)]
            triples, named = (np.concatenate([one[part] for one in made]) for part in (0, 1))
            begin, end = self._second * SECOND, (self._second + seconds) * SECOND
            columns = columns_of(triples, named, self._per_element, begin + 1, end, self._elements)
            self._elements += len(columns)
            self._second += seconds
            slides -= seconds
            yield {STREAM: columns}


@dataclass(frozen=True, slots=True)
class SlidingCase:
    """One query over one stream: its window in slides, and what comes with each of them."""

    size: float
    text: str
    width: int
    slide: int
    maker: str
    argument: tuple[int, ...]
    per_element: int

    def measure(self, slides: int) -> GrowthPoint:
        """The cost of a slide once the window is full."""
        warm = make_program([register(self.text, "out")])
        for batch in self._slides(200).take(self.width + 2, 100):
            warm.advance(batch)
        del warm
        before = resident_mb()
        query = register(self.text, "out")
        begun = time.process_time()
        program = make_program([query])
        planning = time.process_time() - begun
        stream = self._slides(self.slide)
        filling = chain(stream.take(self.width, max(1, 100_000 // self.slide)), stream.take(_WARM_UP))
        point = measure_batches(self.size, program, filling, stream.take(slides), before)
        point.more["plan_ms"] = planning * 1e3
        return point

    def _slides(self, triples: int) -> Slides:
        return Slides(_MAKERS[self.maker](*self.argument), triples, self.per_element)


_MAKERS: dict[str, Callable[..., Maker]] = {"readings": ReadingMaker, "links": LinkMaker, "stars": StarMaker}


def measure_axis(
    name: str, size: str, workloads: dict[str, list[SlidingCase]], limit: float | None, slides: int
) -> Axis:
    """All points of an axis, each in a process of its own."""
    found: dict[str, list[GrowthPoint]] = {}
    for workload, cases in workloads.items():
        for case in cases:
            with report_point(name, workload) as said:
                said.append(in_new_process(case.measure, slides))
            found.setdefault(workload, []).append(said[0])
    return Axis(name, size, "a slide", found, limit)


def measure_window(quick: bool) -> Axis:
    """The content of the window, at a slide of 1,000 triples."""
    sizes = [10**power for power in range(3, 6 if quick else 8)]
    workloads = {
        "aggregate": [
            SlidingCase(n, aggregate_text(n // _SLIDE), n // _SLIDE, _SLIDE, "readings", (_SENSORS,), 2) for n in sizes
        ],
        "join": [
            # Where the window is one slide, half as many keys give as many answers.
            SlidingCase(
                n, chain_text(n // _SLIDE, 2), n // _SLIDE, _SLIDE, "links", (2, n // (4 if n == _SLIDE else 2)), 1
            )
            for n in sizes
        ],
    }
    return measure_axis("window", "triples in the window", workloads, 0.1, _SLIDES)


def measure_slide(quick: bool) -> Axis:
    """The triples of a slide, of which the window has ten."""
    sizes = [10**power for power in range(2, 5 if quick else 6)]
    workloads = {
        "aggregate": [SlidingCase(n, aggregate_text(10), 10, n, "readings", (_SENSORS,), 2) for n in sizes],
        "join": [SlidingCase(n, chain_text(10, 2), 10, n, "links", (2, 5 * n), 1) for n in sizes],
    }
    return measure_axis("slide", "triples in a slide", workloads, 1.0, 10)


def measure_keys(quick: bool) -> Axis:
    """The sensors of a window of 10^6 triples that slides by 10,000: only groups that change are answered."""
    sizes = [10**power for power in range(1, 5 if quick else 7)]
    content, slide = (100_000, 1_000) if quick else (1_000_000, 10_000)
    width = content // slide
    text = aggregate_text(width, "ISTREAM")
    workloads = {"aggregate": [SlidingCase(n, text, width, slide, "readings", (n,), 2) for n in sizes]}
    return measure_axis("keys", "sensors", workloads, None, _SLIDES)


def measure_patterns(quick: bool) -> Axis:
    """The patterns of a query, of each of which 500 triples come with a slide and 10,000 are in the window."""
    sizes = [2, 4, 8, 12] if quick else [2, 3, 4, 6, 8, 12]
    each, width = 500, 20
    workloads = {
        "star": [SlidingCase(n, star_text(width, n), width, each * n, "stars", (n,), n) for n in sizes],
        "chain": [SlidingCase(n, chain_text(width, n), width, each * n, "links", (n, each * width), 1) for n in sizes],
    }
    return measure_axis("patterns", "patterns", workloads, 1.5, _SLIDES)
