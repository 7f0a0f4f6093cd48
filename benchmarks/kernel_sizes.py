"""How large each measurement is: what the figures are about, and a form for a quick look."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Sizes:
    """All sizes of one run of the kernel benchmark."""

    index_mappings: int = 1_000_000
    index_keys: int = 1_000_000
    index_rounds: int = 5
    index_key_counts: tuple[int, ...] = (1_000, 10_000, 100_000, 1_000_000)
    index_windows: tuple[int, ...] = (10_000, 100_000, 1_000_000, 10_000_000)
    index_probed_window: int = 1_000_000
    """The window of figure 10, one of those before."""
    index_inserts: int = 200_000
    index_calls: int = 3_000
    """So many rows and keys where each has its own calls from Python."""
    map_key_counts: tuple[int, ...] = (10_000, 31_623, 100_000, 316_228, 1_000_000)
    map_windows: tuple[int, ...] = (10_000, 31_623, 100_000, 316_228, 1_000_000, 3_162_278, 10_000_000)
    """The grid of figures 11 and 12."""
    join_windows: tuple[int, ...] = (1_000, 10_000, 100_000)
    """Mappings per window of the three-way join; the last one is what the ratios are about."""
    join_slides: int = 40
    reference_slides: int = 3
    memory_ways: tuple[int, ...] = (2, 3, 4, 5, 6, 7, 8)
    memory_window: int = 10_000
    aggregate_window: int = 1_000_000
    aggregate_groups: tuple[int, ...] = (10, 1_000, 100_000)
    selectivity_window: int = 20_000
    selectivities: tuple[float, ...] = (0.01, 0.1, 1.0, 10.0, 100.0)
    aggregate_slides: int = 10
    ticks: int = 200_000
    """At most so many slides of one element are measured at each point of figure 13."""
    tick_keys: int = 10_000
    """Different values that the three windows are joined by."""
    tick_windows: tuple[int, ...] = (1_000, 10_000, 100_000, 1_000_000)
    tick_groups: tuple[int, ...] = (10, 100, 1_000, 10_000, 100_000)
    tick_selectivity_window: int = 1_000_000
    static_triples: int = 100_000
    latency_elements: int = 5_000
    latency_warm_up: int = 500
    """Elements before the clock runs, besides those that fill the longest window."""
    adaptive_window: int = 20_000
    adaptive_slides: int = 60
    range_window: int = 5_000
    range_slides: int = 20


FULL = Sizes()
QUICK = Sizes(
    index_rounds=3,
    index_key_counts=(1_000, 100_000),
    index_windows=(10_000, 100_000),
    index_probed_window=100_000,
    index_inserts=50_000,
    index_calls=1_000,
    map_key_counts=(10_000, 100_000),
    map_windows=(10_000, 100_000),
    join_windows=(10_000, 100_000),
    join_slides=15,
    reference_slides=2,
    memory_ways=(2, 5, 8),
    aggregate_window=100_000,
    aggregate_groups=(10, 10_000),
    selectivity_window=5_000,
    selectivities=(0.01, 1.0, 100.0),
    aggregate_slides=5,
    ticks=20_000,
    tick_windows=(1_000, 10_000, 100_000),
    tick_groups=(10, 10_000),
    tick_selectivity_window=20_000,
    latency_elements=600,
    latency_warm_up=100,
    adaptive_slides=20,
    range_window=2_000,
    range_slides=10,
)
