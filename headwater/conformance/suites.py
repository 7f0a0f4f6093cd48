"""Conformance: public test suites run against Headwater.

    headwater conformance w3c rdf-tests
    headwater conformance csrbench csrbench

The folders are a copy of https://github.com/w3c/rdf-tests, and one of CSRBench with its queries, data and answers. Each
prints a line per folder or query, then what failed and why, and last `N passed, M failed`.
"""

from __future__ import annotations

from pathlib import Path
from typing import TextIO

from headwater.conformance.csrbench import run_csrbench
from headwater.conformance.w3c_report import run_w3c
from headwater.errors import SettingError

SUITES = {"w3c": run_w3c, "csrbench": run_csrbench}
"""The suites by name."""


def run(suite: str, folder: Path, out: TextIO) -> int:
    """Runs a suite over the files in a folder; 0 when nothing failed but what is known to, 1 otherwise."""
    if suite not in SUITES:
        raise SettingError(f"no suite {suite!r}; there are {', '.join(SUITES)}")
    return SUITES[suite](folder, out)
