"""How large each measurement is: what the figures are about, and a form for a quick look."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Sizes:
    """All sizes of one run of the kernel benchmark."""

    index_mappings: int = 1_000_000
    index_keys: int = 1_000_000
    index_series: tuple[int, ...] = (10_000, 100_000, 1_000_000)
    index_rounds: int = 5
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
    index_series=(10_000, 1_000_000),
    index_rounds=3,
    join_windows=(10_000, 100_000),
    join_slides=15,
    reference_slides=2,
    memory_ways=(2, 5, 8),
    aggregate_window=100_000,
    aggregate_groups=(10, 10_000),
    selectivity_window=5_000,
    selectivities=(0.01, 1.0, 100.0),
    aggregate_slides=5,
    latency_elements=600,
    latency_warm_up=100,
    adaptive_slides=20,
    range_window=2_000,
    range_slides=10,
)
