"""The benchmark of small slides on a short stream: it runs, and small slides have more answers."""

from __future__ import annotations

from benchmarks import slides


def test_the_figures() -> None:
    found = slides.measure(20_000)
    rates, rows = found["triples_per_s"], found["rows"]
    assert isinstance(rates, dict) and set(rates) == {"1s", "10ms"} and all(rate > 0 for rate in rates.values())
    assert isinstance(rows, dict) and rows["10ms"] > rows["1s"] > 0
    assert isinstance(found["cost_of_small_slides"], float)
