"""The scanner benchmark on a tiny file: it runs, checks what was read, and gives the keys it promises."""

from __future__ import annotations

from pathlib import Path

from benchmarks import scanner


def test_the_figures(tmp_path: Path) -> None:
    found = scanner.measure(2_000, 1, tmp_path)
    for key in ("triples_per_s", "mb_per_s", "vs_pyoxigraph", "vs_reader", "with_texts", "with_pattern"):
        value = found[key]
        assert isinstance(value, float) and value > 0
    assert set(found) >= {"by_kind", "parsed_share"}
    assert found["parsed_share"] == dict.fromkeys(scanner._KINDS, 0.0)
