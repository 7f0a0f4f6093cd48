"""`headwater conformance`: a public test suite, run and counted."""

from __future__ import annotations

import sys
from pathlib import Path

import typer

from headwater.conformance.suites import run as run_suite


def conformance(suite: str, folder: Path) -> None:
    """Prints a line per folder of the suite and what passed; ends with the suite's own exit code."""
    code = run_suite(suite, folder, sys.stdout)
    if code:
        raise typer.Exit(code)
