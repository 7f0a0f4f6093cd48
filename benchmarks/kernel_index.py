"""The ring index alone: inserts per second and nanoseconds per probe (figures 9 to 12 of the paper)."""

from __future__ import annotations

from functools import partial

import numpy as np

from benchmarks.kernel_feeding import draw_values, hashed_ids, pairs
from benchmarks.kernel_sizes import Sizes
from benchmarks.reporting import Figure, Findings, Points, progress, rounded, seconds
from headwater.kernel.columns.ring_index import Ints, RingIndex

_PROBE_KEY = np.zeros(1, dtype=np.int32)


def measure(sizes: Sizes) -> Findings:
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
    findings = Findings(
        {
            "index_insert_per_s": rounded(n / fill),
            "index_insert_per_s_by_batch": by_batch,
            "index_insert_per_s_full_window": rounded(_replaced_per_second(random, rows)),
            "index_probe_ns": rounded(probe / n * 1e9),
        }
    )
    findings.figures = _series(random, sizes)
    return findings


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


def _series(random: np.random.Generator, sizes: Sizes) -> list[Figure]:
    inserts: dict[str, Points] = {}
    probes: dict[str, Points] = {}
    for keys in sizes.index_series:
        name = f"{keys} keys"
        for mappings in sizes.index_series:
            rows = _rows(random, mappings, keys)
            fill, probe = _fill_seconds(rows, mappings), _probe_seconds(random, rows)
            inserts.setdefault(name, []).append((mappings, mappings / fill))
            probes.setdefault(name, []).append((mappings, probe / mappings * 1e9))
    return [
        Figure("index-insert", "Ring index: insert", "mappings in the window", "inserts per second", inserts),
        Figure("index-probe", "Ring index: probe", "mappings in the window", "nanoseconds per probe", probes),
    ]
