"""How cost grows with the number of queries of different shapes, and with the number of streams that are read.

No two queries differ in constants only: each has another set of patterns, another aggregate, another comparison or
another window, so none of them is a member of a family. What they read of the stream is the same.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import chain, islice, product

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
    register,
)
from benchmarks.growth_windows import ReadingMaker, Slides, StarMaker
from headwater.execution.registered import RegisteredQuery

_PREFIX = f"PREFIX : <{VOCABULARY}> "
_PREDICATES = 8
_AGGREGATES = ("COUNT(?x0)", "SUM(?x0)", "AVG(?x0)", "MIN(?x0)", "MAX(?x0)")
_COMPARISONS = ("", "FILTER(?x0 > 1)", "FILTER(?x0 != 2)", "FILTER(?x0 <= 900 && ?x0 >= 0)")
_WIDTHS = (10, 20)
_SLIDES = 8


def shapes() -> Iterator[str]:
    """Texts of queries of different shapes, about 10,000 of them: the first ones differ in everything."""
    subsets = [[0, *(n for n in range(1, _PREDICATES) if mask >> n & 1)] for mask in range(0, 1 << _PREDICATES, 2)]
    order = np.random.default_rng(3).permutation(len(subsets) * len(_AGGREGATES) * len(_COMPARISONS) * len(_WIDTHS) * 2)
    every = list(product(subsets, _AGGREGATES, _COMPARISONS, _WIDTHS, (False, True)))
    for place in order.tolist():
        patterns, aggregate, comparison, width, is_grouped = every[place]
        star = " ; ".join(f":p{number} ?x{number}" for number in patterns)
        window = f"FROM NAMED WINDOW :w ON <{STREAM}> [RANGE PT{width}S STEP PT1S]"
        key = f"?x{patterns[-1]} " if is_grouped else ""
        grouping = f"GROUP BY ?x{patterns[-1]}" if is_grouped else ""
        head = f"REGISTER RSTREAM :out AS SELECT {key}({aggregate} AS ?n) {window}"
        yield f"{_PREFIX}{head} WHERE {{ WINDOW :w {{ ?s {star} {comparison} }} }} {grouping}"


def _measure_shapes(count: int) -> GrowthPoint:
    """The cost of a slide of 160 triples with so many queries."""
    maker = StarMaker(_PREDICATES)
    stream = Slides(maker, 20 * _PREDICATES, _PREDICATES)
    warm = make_program([register(text, f"w{n}") for n, text in enumerate(islice(shapes(), 40))])
    for batch in Slides(StarMaker(_PREDICATES), 20 * _PREDICATES, _PREDICATES).take(12):
        warm.advance(batch)
    del warm
    before = resident_mb()
    begun = time.process_time()
    queries = [register(text, f"q{number}") for number, text in enumerate(islice(shapes(), count))]
    program = make_program(queries)
    planning = time.process_time() - begun
    filling = chain(stream.take(max(_WIDTHS), 10), stream.take(1))
    point = measure_batches(count, program, filling, stream.take(_SLIDES if count < 1_000 else 3), before)
    point.more["plan_ms_per_query"] = planning / count * 1e3
    point.more["kb_per_query"] = point.memory_mb * 1024 / count
    point.more["evaluators"] = len(set(program.evaluators.values()))
    return point


def measure_queries(quick: bool) -> Axis:
    """Queries of different shapes over one stream."""
    found: list[GrowthPoint] = []
    for count in (1, 10, 100) if quick else (1, 10, 100, 1_000, 10_000):
        with report_point("queries", "shapes") as said:
            said.append(in_new_process(_measure_shapes, count))
        found += said
    return Axis("queries", "queries of different shapes", "a slide", {"shapes": found}, 1.0)


def _stream_query(number: int) -> RegisteredQuery:
    window = f"FROM NAMED WINDOW :w ON <{STREAM}/{number}> [RANGE PT10S STEP PT1S]"
    head = f"REGISTER RSTREAM :out AS SELECT ?s (AVG(?v) AS ?mean) {window}"
    text = f"{_PREFIX}{head} WHERE {{ WINDOW :w {{ ?o :by ?s . ?o :value ?v }} }} GROUP BY ?s"
    return register(text, f"q{number}")


def _stream_batches(count: int, triples: int, slides: int) -> Iterator[Batch]:
    """Batches in which each of the streams has its share of the triples, two at the least."""
    makers = [ReadingMaker(4) for _ in range(count)]
    share = max(2, triples // count)
    for second in range(slides):
        batch: Batch = {}
        for number, maker in enumerate(makers):
            rows, named = maker.slide(share)
            begin, end = second * SECOND, (second + 1) * SECOND
            batch[f"{STREAM}/{number}"] = columns_of(rows, named, 2, begin + 1, end, second * share)
        yield batch


def _measure_streams(count: int, triples: int) -> GrowthPoint:
    """The cost of a slide, for each stream of which there is a query."""
    warm = make_program([_stream_query(0)])
    for batch in _stream_batches(1, 100, 12):
        warm.advance(batch)
    before = resident_mb()
    program = make_program([_stream_query(number) for number in range(count)])
    batches = _stream_batches(count, triples, 11 + _SLIDES)
    return measure_batches(count, program, islice(batches, 11), batches, before)


def measure_streams(quick: bool) -> Axis:
    """Streams with a query each; together they bring 10,000 triples with a slide."""
    found: list[GrowthPoint] = []
    for count in (1, 10, 100) if quick else (1, 10, 100, 1_000):
        with report_point("streams", "a query each") as said:
            said.append(in_new_process(_measure_streams, count, 10_000))
        found += said
    return Axis("streams", "streams", "a slide", {"a query each": found}, 1.0)
