"""What `headwater conformance w3c` prints."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from pathlib import Path
from typing import TextIO

from headwater.conformance.known_failures import KNOWN_FAILURES
from headwater.conformance.w3c import CaseOutcome, cases, run_case
from headwater.errors import SettingError


def run_w3c(folder: Path, out: TextIO) -> int:
    """Runs every test and prints how it went; 1 where a test failed that is not known to."""
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
        reason = KNOWN_FAILURES.get(outcome.case.key)
        print(f"\n{outcome.case.key}: {outcome.problem}", file=out)
        print(f"  {'known: ' + reason if reason else 'NOT KNOWN to fail'}", file=out)
    outdated = sorted(set(KNOWN_FAILURES) - {outcome.case.key for outcome in failed})
    for key in outdated:
        print(f"\n{key}: passes or is absent, but stands in the list of known failures", file=out)
    print(f"\n{passed} passed, {len(failed)} failed", file=out)
    return 0 if all(outcome.case.key in KNOWN_FAILURES for outcome in failed) and not outdated else 1


def _count_skipped(outcomes: Iterable[CaseOutcome]) -> str:
    reasons = [outcome.skipped for outcome in outcomes if outcome.skipped is not None]
    return f", {len(reasons)} skipped: {reasons[0]}" if reasons else ""
