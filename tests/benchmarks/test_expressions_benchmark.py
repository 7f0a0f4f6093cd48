"""The benchmark of expressions on a few rows: it compares the two ways, and gives the keys that it promises."""

from __future__ import annotations

from typing import Any

from benchmarks import expressions


def test_the_benchmark_says_what_it_measured() -> None:
    found: dict[str, Any] = expressions.measure(50)
    assert found["rows"] == 50
    for key in ("ns_per_row", "vs_general"):
        assert set(found[key]) == set(expressions.CONDITIONS)
        assert all(set(by_type) == set(expressions.TYPES) for by_type in found[key].values())
        assert all(value > 0 for by_type in found[key].values() for value in by_type.values())
