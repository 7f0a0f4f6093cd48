"""`headwater load`: RDF files into a data set on disk; progress to stderr, the counts to stdout."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path

import typer
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

from headwater.commands.ending import FAILED
from headwater.datasets.loading.bulk_load import LoadProgress, LoadReport, load

STANDARD_INPUT = "-"
"""Stands among the files for N-Triples or N-Quads on standard input."""


def load_files(sources: Sequence[str], into: Path, graph: str | None, strict: bool) -> None:
    """Loads the files and says what became of them; exit code 1 where nothing of one could be read."""
    start = time.monotonic()
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
        console=Console(file=sys.stderr),
        transient=True,
    ) as bar:
        task = bar.add_task("reading", total=None, rate="")

        def show(progress: LoadProgress) -> None:
            rate = progress.statements / max(1e-9, time.monotonic() - start)
            words = f"{progress.statements:,} statements ({rate:,.0f}/s), {progress.bad:,} bad"
            doing = Path(progress.file).name or progress.phase
            bar.update(
                task, total=progress.total_bytes or None, completed=progress.bytes_read, rate=words, description=doing
            )

        given = [sys.stdin.buffer if source == STANDARD_INPUT else source for source in sources]
        report = load(into, given, graph=graph, strict=strict, on_progress=show)
    print(report_text(report, into, time.monotonic() - start))
    if report.unreadable:
        first, *others = report.unreadable
        more = f" (and {len(others):,} other files)" if others else ""
        print(f"headwater: a file could not be read at all: {first}{more}", file=sys.stderr)
        raise typer.Exit(FAILED)
    if report.first_bad:
        print(f"warning: some lines could not be read; the first bad line is {report.first_bad}", file=sys.stderr)


def report_text(report: LoadReport, into: Path, seconds: float) -> str:
    """The last line of a load."""
    text = f"{into}: {report.statements:,} statements, version {report.version}"
    if report.files:
        rate = report.read / max(1e-9, seconds)
        text += f"; {report.read:,} read from {report.files:,} files in {seconds:.1f} s ({rate:,.0f}/s)"
    if report.known_files:
        text += f"; {report.known_files:,} files were loaded already"
    if report.bad:
        text += f"; {report.bad:,} bad lines are listed in {report.bad_lines}"
    return text
