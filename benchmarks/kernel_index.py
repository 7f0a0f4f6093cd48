"""The index of a window: inserts per second and nanoseconds per probe (figures 9 to 12 of the paper).

Figures 9 and 10 compare the ring index, which is a hash table, with the ordered index, which is a tree as the paper's
AVL and red-black trees are. Figures 11 and 12 are maps of the ring index. The paper inserts into full windows, one
mapping at a time, and so do `loop` and `calls` (`indexed_window` explains the ways); `batches` is our own workload.
Besides, an empty ring index is filled.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from itertools import product

import numpy as np

from benchmarks.indexed_window import BATCH, WAYS, IndexedWindow, draw_rows
from benchmarks.kernel_feeding import draw_values, hashed_ids, pairs
from benchmarks.kernel_sizes import Sizes
from benchmarks.reporting import ContourFigure, Figure, Findings, Points, progress, rounded, seconds
from headwater.kernel.columns.ring_index import Ints, RingIndex

_PROBE_KEY = np.zeros(1, dtype=np.int32)
_PAPER_INSERTS_PER_S = 800_000
"""The paper has 400,000 to 800,000, by the size of the window."""
_PAPER_PROBE_NS = 600
"""The paper has 600 to 800, by the number of keys."""
_TURNS = 2
_PAPER_WAYS = ("loop", "calls")
_ORDERED = "ordered_loop"
_LINE_NAMES = {
    "loop": "ring index, one at a time, compiled",
    "calls": "ring index, one at a time, calls",
    "batches": f"ring index, batches of {BATCH}",
    _ORDERED: "ordered index, one at a time, compiled",
}

Cell = tuple[int, int]
"""A number of keys and the size of a window."""
Measured = Mapping[str, Mapping[Cell, float]]
"""Seconds for each row or key, by way."""


def measure(sizes: Sizes) -> Findings:
    findings = _measure_filling(sizes)
    inserts, probes = _measure_windows(sizes)
    findings.values |= _describe(sizes, inserts, probes)
    findings.figures = _make_figures(sizes, inserts, probes)
    findings.maps = _make_maps(sizes, inserts, probes)
    return findings


def _measure_filling(sizes: Sizes) -> Findings:
    """An index is filled, and probed by as many mappings; the best of some rounds, since others use the machine too."""
    random = np.random.default_rng(1)
    rows = _rows(random, sizes.index_mappings, sizes.index_keys)
    _fill_seconds(rows[:1000], 1000)
    _probe_seconds(random, rows[:1000])
    progress(f"index: {sizes.index_mappings} mappings, {sizes.index_keys} keys")
    n = sizes.index_mappings
    fill = min(_fill_seconds(rows, n) for _ in range(sizes.index_rounds))
    by_batch = {str(n // part): rounded(n / _fill_seconds(rows, n // part)) for part in (10, 100, 1000)}
    probe = min(_probe_seconds(random, rows) for _ in range(sizes.index_rounds))
    return Findings(
        {
            "index_insert_per_s": rounded(n / fill),
            "index_insert_per_s_by_batch": by_batch,
            "index_insert_per_s_full_window": rounded(_replaced_per_second(random, rows)),
            "index_probe_ns": rounded(probe / n * 1e9),
        }
    )


def _rows(random: np.random.Generator, mappings: int, keys: int) -> Ints:
    return pairs(draw_values(random, hashed_ids(random, keys), mappings), np.arange(mappings))


def _fill_seconds(rows: Ints, batch: int) -> float:
    """The time to index all rows, growth included."""
    index = RingIndex((0,))
    row_ids = np.arange(rows.shape[0])

    def fill() -> None:
        for start in range(0, rows.shape[0], batch):
            index.insert(rows, row_ids[start : start + batch])

    return seconds(fill)


def _probe_seconds(random: np.random.Generator, rows: Ints) -> float:
    index = RingIndex((0,))
    index.insert(rows, np.arange(rows.shape[0]))
    probes = random.permutation(rows)
    return seconds(lambda: index.probe(rows, probes, _PROBE_KEY))


def _replaced_per_second(random: np.random.Generator, rows: Ints) -> float:
    """Inserts per second while a full window slides by 1 %: removed rows make room for new ones."""
    n = rows.shape[0]
    slide = max(1, n // 100)
    index = RingIndex((0,))
    index.insert(rows, np.arange(n))
    spent = 0.0
    for start in range(0, 20 * slide, slide):
        row_ids = np.arange(start, start + slide)
        index.remove(rows, row_ids)
        rows[row_ids, 0] = hashed_ids(random, slide)
        spent += seconds(partial(index.insert, rows, row_ids))
    return float(20 * slide / spent)


def _measure_windows(sizes: Sizes) -> tuple[Measured, Measured]:
    """The inserts and the probes of all windows, by way."""
    random = np.random.default_rng(6)
    for is_ordered in (False, True):
        _measure_window(random, sizes, (10, 10), is_ordered=is_ordered)
    inserts: dict[str, dict[Cell, float]] = {way: {} for way in _LINE_NAMES}
    probes: dict[str, dict[Cell, float]] = {way: {} for way in _LINE_NAMES}
    compared = set(product(sizes.index_key_counts, sizes.index_windows))
    for cell in sorted(compared | set(product(sizes.map_key_counts, sizes.map_windows))):
        progress(f"index: {cell[0]} keys in a window of {cell[1]}")
        for is_ordered in (False, True) if cell in compared else (False,):
            for way, (insert, probe) in _measure_window(random, sizes, cell, is_ordered=is_ordered).items():
                inserts[way][cell], probes[way][cell] = insert, probe
    return inserts, probes


def _measure_window(
    random: np.random.Generator, sizes: Sizes, cell: Cell, *, is_ordered: bool
) -> dict[str, tuple[float, float]]:
    """Seconds for each insert and each probe of one window, by way; the better of two turns."""
    keys, size = cell
    counts = {way: sizes.index_calls if way == "calls" else sizes.index_inserts for way in WAYS}
    needed = IndexedWindow.rows_for(size, _TURNS * sizes.index_inserts, _TURNS * sizes.index_calls)
    rows = draw_rows(random, needed, keys)
    window = IndexedWindow(rows, size, is_ordered=is_ordered)
    ways = {"loop": _ORDERED} if is_ordered else {way: way for way in WAYS}
    inserts = {way: min(window.replace(way, counts[way]) for _ in range(_TURNS)) for way in ways}
    probed = window.content[random.integers(0, size, sizes.index_inserts), 0]
    probes = {way: min(window.probe(way, probed[: counts[way]]) for _ in range(_TURNS)) for way in ways}
    return {name: (inserts[way], probes[way]) for way, name in ways.items()}


def _describe(sizes: Sizes, inserts: Measured, probes: Measured) -> dict[str, object]:
    """Inserts by way, number of keys and window; probes by way and number of keys; and how these are to the paper."""

    def by_cell(number: Callable[[float], float], way: str) -> dict[str, dict[str, float]]:
        return {
            str(keys): {str(size): rounded(number(inserts[way][keys, size])) for size in sizes.index_windows}
            for keys in sizes.index_key_counts
        }

    def by_keys(number: Callable[[float], float], way: str) -> dict[str, float]:
        return {str(int(keys)): rounded(number(taken)) for keys, taken in _probes_by_keys(sizes, probes, way)}

    return {
        "index_inserts_per_s_by_way": {way: by_cell(lambda taken: 1 / taken, way) for way in inserts},
        "index_inserts_vs_paper": {
            way: by_cell(lambda taken: 1 / taken / _PAPER_INSERTS_PER_S, way) for way in _PAPER_WAYS
        },
        "index_probe_ns_by_way": {way: by_keys(lambda taken: taken * 1e9, way) for way in probes},
        "index_probe_vs_paper": {
            way: by_keys(lambda taken: _PAPER_PROBE_NS / (taken * 1e9), way) for way in _PAPER_WAYS
        },
    }


def _probes_by_keys(sizes: Sizes, probes: Measured, way: str) -> Points:
    """The number of keys and the seconds for each probe, of all windows of the size that figure 10 has."""
    return [(keys, taken) for (keys, size), taken in sorted(probes[way].items()) if size == sizes.index_probed_window]


def _make_figures(sizes: Sizes, inserts: Measured, probes: Measured) -> list[Figure]:
    figures = []
    for keys in sizes.index_key_counts:
        lines = {
            name: [(float(size), 1 / inserts[way][keys, size]) for size in sizes.index_windows]
            for way, name in _LINE_NAMES.items()
        }
        title = f"Inserts into a full window, {keys:,} keys"
        figures.append(Figure(f"index-insert-{keys}", title, "mappings in the window", "inserts per second", lines))
    size = sizes.index_probed_window
    probe_lines = {
        name: [(keys, taken * 1e9) for keys, taken in _probes_by_keys(sizes, probes, way)]
        for way, name in _LINE_NAMES.items()
    }
    figures.append(
        Figure("index-probe", f"Probes of a window of {size:,}", "keys", "nanoseconds per probe", probe_lines)
    )
    return figures


def _make_maps(sizes: Sizes, inserts: Measured, probes: Measured) -> list[ContourFigure]:
    maps = []
    for what, measured in (("insert", inserts), ("probe", probes)):
        for way, how in (("loop", "one at a time"), ("batches", f"batches of {BATCH}")):
            rates = [[1e-6 / measured[way][keys, size] for size in sizes.map_windows] for keys in sizes.map_key_counts]
            maps.append(
                ContourFigure(
                    f"index-{what}-map-{way}",
                    f"{what.capitalize()}s, ring index, {how}",
                    "mappings in the window",
                    "keys",
                    f"million {what}s per second",
                    sizes.map_windows,
                    sizes.map_key_counts,
                    rates,
                )
            )
    return maps
