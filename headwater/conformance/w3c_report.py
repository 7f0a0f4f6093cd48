"""What `headwater conformance w3c` prints."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from pathlib import Path
from typing import TextIO

from headwater.conformance.w3c import CaseOutcome, cases, run_case
from headwater.errors import SettingError


def run_w3c(folder: Path, out: TextIO) -> int:
    """Runs every test and prints how it went; 1 where a test failed."""
    failed: list[CaseOutcome] = []
    passed = 0
    for name, group in groupby(cases(folder), key=lambda case: case.folder):
        outcomes = [run_case(case) for case in group]
        bad = [outcome for outcome in outcomes if outcome.problem is not None]
        good = [outcome for outcome in outcomes if outcome.problem is None and outcome.skipped is None]
        passed += len(good)
        failed += bad
        print(f"{name:<34}{len(good):>4} passed, {len(bad)} failed{_count_skipped(outcomes)}", file=out)
    if not passed and not failed:
        raise SettingError(f"no W3C tests below {folder}: expected sparql/sparql11/*/manifest.ttl")
    for outcome in failed:
        print(f"\n{outcome.case.key}: {outcome.problem}", file=out)
    print(f"\n{passed} passed, {len(failed)} failed", file=out)
    return 1 if failed else 0


def _count_skipped(outcomes: Iterable[CaseOutcome]) -> str:
    reasons = [outcome.skipped for outcome in outcomes if outcome.skipped is not None]
    return f", {len(reasons)} skipped: {reasons[0]}" if reasons else ""
