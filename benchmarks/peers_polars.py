"""The queries of `benchmarks.peers` in polars, over triples as columns and over a wide table: each window anew."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl

from benchmarks.pipeline_data import OM, WEATHER

_TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"

Frame = Any
"""A `polars.DataFrame`."""

PER_OBSERVATION = 5

Run = Callable[[Frame, int, int], tuple[int, float]]


def read_triples(path: Path) -> Frame:
    """Timed N-Quads as the columns time, subject, predicate and object."""
    lines = pl.read_csv(path, separator="\t", has_header=False, new_columns=["time", "statement"], quote_char=None)
    parts = pl.col("statement").str.split_exact(" ", 3).struct.rename_fields(["subject", "predicate", "object", "dot"])
    return lines.select("time", parts).unnest("statement").drop("dot")


def read_wide(path: Path) -> Frame:
    """A row for each observation, made by hand: it is known that each has five triples, in which order."""
    triples = read_triples(path)
    objects = triples["object"]
    columns = {
        name: objects.gather_every(PER_OBSERVATION, place)
        for place, name in enumerate(("kind", "sensor", "value", "unit", "network"))
    }
    table = pl.DataFrame({"time": triples["time"].gather_every(PER_OBSERVATION), **columns})
    return table.with_columns(_number("value"))


def _windows(frame: Frame, width: int, slide: int) -> Iterator[Frame]:
    """The rows of each window; times are sorted, so each is a slice."""
    times = frame["time"]
    for end in range(width, times[-1] + width + slide, slide):
        low, high = times.search_sorted(end - width, side="right"), times.search_sorted(end, side="right")
        if high > low:
            yield frame.slice(low, high - low)


def _of(frame: Frame, predicate: str, name: str) -> Frame:
    """The objects of a predicate, by subject."""
    return frame.filter(pl.col("predicate") == predicate).select("subject", pl.col("object").alias(name))


def _of_kind(frame: Frame, kind: str) -> Frame:
    is_kind = (pl.col("predicate") == _TYPE) & (pl.col("object") == f"<{WEATHER}{kind}Observation>")
    return frame.filter(is_kind).select("subject")


def _number(name: str) -> Any:
    """The number of a literal."""
    return pl.col(name).str.extract('^"([^"]*)"').cast(pl.Float64)


def _star_of_triples(triples: Frame, width: int, slide: int) -> tuple[int, float]:
    rows, total = 0, 0.0
    for window in _windows(triples, width, slide):
        found = _of_kind(window, "Rainfall")
        for predicate, name in (("procedure", "sensor"), ("floatValue", "value"), ("uom", "unit")):
            found = found.join(_of(window, f"<{OM}{predicate}>", name), on="subject")
        found = found.select("sensor", _number("value"), "unit")
        rows, total = rows + found.height, total + found["value"].sum()
    return rows, total


def _means_of_triples(triples: Frame, width: int, slide: int) -> tuple[int, float]:
    rows, total = 0, 0.0
    for window in _windows(triples, width, slide):
        found = _of(window, f"<{OM}procedure>", "sensor").join(_of(window, f"<{OM}floatValue>", "value"), on="subject")
        found = found.with_columns(_number("value")).group_by("sensor").agg(pl.col("value").mean(), pl.len())
        rows, total = rows + found.height, total + found["value"].sum()
    return rows, total


def _pairs_of_triples(triples: Frame, width: int, slide: int) -> tuple[int, float]:
    rows, total = 0, 0.0
    for window in _windows(triples, width, slide):
        sensors, values = _of(window, f"<{OM}procedure>", "sensor"), _of(window, f"<{OM}floatValue>", "value")
        warm, windy = (
            _of_kind(window, kind)
            .join(sensors, on="subject")
            .join(values, on="subject")
            .select("sensor", _number("value"))
            for kind in ("Temperature", "WindSpeed")
        )
        found = warm.join(windy.rename({"value": "speed"}), on="sensor").filter(pl.col("speed") < pl.col("value"))
        rows, total = rows + found.height, total + found["value"].sum()
    return rows, total


def _is_kind(kind: str) -> Any:
    return pl.col("kind") == f"<{WEATHER}{kind}Observation>"


def _star_of_table(table: Frame, width: int, slide: int) -> tuple[int, float]:
    rows, total = 0, 0.0
    for window in _windows(table, width, slide):
        found = window.filter(_is_kind("Rainfall")).select("sensor", "value", "unit")
        rows, total = rows + found.height, total + found["value"].sum()
    return rows, total


def _means_of_table(table: Frame, width: int, slide: int) -> tuple[int, float]:
    rows, total = 0, 0.0
    for window in _windows(table, width, slide):
        found = window.group_by("sensor").agg(pl.col("value").mean(), pl.len())
        rows, total = rows + found.height, total + found["value"].sum()
    return rows, total


def _pairs_of_table(table: Frame, width: int, slide: int) -> tuple[int, float]:
    rows, total = 0, 0.0
    for window in _windows(table, width, slide):
        warm, windy = (window.filter(_is_kind(kind)).select("sensor", "value") for kind in ("Temperature", "WindSpeed"))
        found = warm.join(windy.rename({"value": "speed"}), on="sensor").filter(pl.col("speed") < pl.col("value"))
        rows, total = rows + found.height, total + found["value"].sum()
    return rows, total


POLARS_QUERIES: dict[str, tuple[Run, Run]] = {
    "star": (_star_of_triples, _star_of_table),
    "means": (_means_of_triples, _means_of_table),
    "pairs": (_pairs_of_triples, _pairs_of_table),
}
"""For each query, over triples and over the wide table."""
