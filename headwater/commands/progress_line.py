"""The line that says how far a run has come: at the bottom of a terminal, or in a pipe every ten seconds.

12,400 elements (3,100/s) · watermark 2026-03-02T07:10:00Z · 12 ticks · 0 late · 1 bad
… · busy waits for http://city/gates, silent for 42 s since 2026-03-02T07:10:08Z (--idle goes on without it)
"""

from __future__ import annotations

import logging
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

from headwater.running.progress import Progress, RunSummary
from headwater.terms.timestamps import format_time

_SHORTEST_PAUSE = 0.1
_CLEAR_LINE = "\r\x1b[2K"
_SHORTEST_WAIT = 5.0
"""A query that waits for less, in seconds, waits for the next element."""
STATUS_SECONDS = 10.0
_REPAINT_SECONDS = 1.0
_BAR_WIDTH = 10


def progress_text(progress: Progress) -> str:
    """The counts in one line; the watermark is that of the stream that is furthest behind."""
    known = [mark for mark in progress.watermarks.values() if mark is not None]
    watermark = format_time(min(known)) if known else "none yet"
    text = (
        f"{progress.elements:,} elements ({progress.rate:,.0f}/s) · watermark {watermark} · "
        f"{progress.ticks:,} ticks · {progress.late:,} late · {progress.bad:,} bad"
    )
    if progress.ahead:
        text += f" · {progress.ahead:,} ahead"
    return f"{text} · {progress.collapsed:,} collapsed" if progress.collapsed else text


def status_text(progress: Progress, now: float) -> str:
    """The counts in one line, and which queries wait for which streams; `now` is the time of day in seconds."""
    waits: dict[tuple[str, int], list[str]] = {}
    for name, query in progress.queries.items():
        for stream, since in query.waits_for.items():
            if now - since / 1_000_000 >= _SHORTEST_WAIT:
                waits.setdefault((stream, since), []).append(name)
    from headwater.terms.compiled_code import COMPILATIONS

    text = progress_text(progress)
    if COMPILATIONS.is_at_work:
        text = f"{_bar(COMPILATIONS.compiled, COMPILATIONS.functions)} {COMPILATIONS.text()} · {text}"
    for (stream, since), names in waits.items():
        who = f"{names[0]} waits" if len(names) == 1 else f"{len(names):,} queries wait"
        seconds = now - since / 1_000_000
        when = format_time(since // 1_000_000 * 1_000_000)
        text += f" · {who} for {stream}, silent for {seconds:.0f} s since {when} (--idle goes on without it)"
    return text


def _bar(count: int, total: int) -> str:
    full = _BAR_WIDTH * count // max(total, 1)
    return "▰" * full + "▱" * (_BAR_WIDTH - full)


def summary_text(summary: RunSummary) -> str:
    """The last line of a run."""
    return f"{'stopped' if summary.stopped else 'done'} in {summary.seconds:.1f} s: {progress_text(summary)}"


class ProgressLine:
    """Paints the counts over and over on one line of a terminal; elsewhere, or if it is quiet, it does nothing."""

    def __init__(
        self,
        terminal: TextIO,
        clock: Callable[[], float] = time.monotonic,
        *,
        day: Callable[[], float] = time.time,
        quiet: bool = False,
    ) -> None:
        self._terminal = terminal
        self._clock = clock
        self._day = day
        self._quiet = quiet
        self._enabled = terminal.isatty() and not quiet
        self.writing = threading.RLock()
        """Held by whoever prints something in several steps."""
        self._painted_at: float | None = None
        self._shown = ""

    def say(self, words: str) -> None:
        """Words in place of counts, as long as there are none."""
        if self._enabled:
            self._shown = words
            self.paint()

    def update(self, progress: Progress) -> None:
        """New counts; painted unless the last painting was a moment ago."""
        if not self._enabled:
            return
        now = self._clock()
        if self._painted_at is None or now - self._painted_at >= _SHORTEST_PAUSE:
            self._painted_at = now
            # A line that wraps could not be taken back.
            self._shown = status_text(progress, self._day())[: shutil.get_terminal_size().columns - 1]
            self.paint()

    @contextmanager
    def repeat(self, read: Callable[[], Progress], seconds: float = STATUS_SECONDS) -> Iterator[None]:
        """A context in which the counts are shown again and again, because a run that waits has no new ones.

        In a pipe that is a line now and then.
        """
        if self._quiet:
            yield
            return
        # Commands that run nothing have no use for what compiles.
        from headwater.terms.compiled_code import COMPILATIONS

        COMPILATIONS.is_told = True
        done = threading.Event()

        def show() -> None:
            while not done.wait(_REPAINT_SECONDS if self._enabled else seconds):
                if self._enabled:
                    self.update(read())
                else:
                    self.print(status_text(read(), self._day()))

        thread = threading.Thread(target=show, name="headwater-status", daemon=True)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()

    def paint(self) -> None:
        """Puts the line (back) at the bottom."""
        self._write(self._shown)

    def clear(self) -> None:
        """Takes the line away, so that something else can be printed."""
        self._write("")

    def print(self, text: str) -> None:
        """Prints a line above it."""
        with self.writing:
            self.clear()
            self._terminal.write(text + "\n")
            self._terminal.flush()
            self.paint()

    def _write(self, text: str) -> None:
        with self.writing:
            if self._shown:
                self._terminal.write(_CLEAR_LINE + text)
                self._terminal.flush()


class _WarningPrinter(logging.Handler):
    """Prints what is logged above the progress line."""

    def __init__(self, line: ProgressLine) -> None:
        super().__init__(logging.WARNING)
        self._line = line

    def emit(self, record: logging.LogRecord) -> None:
        self._line.print(f"{record.levelname.lower()}: {record.getMessage()}")


@contextmanager
def show_warnings(line: ProgressLine) -> Iterator[None]:
    """A context in which the warnings of the project are printed above a progress line."""
    printer, logger = _WarningPrinter(line), logging.getLogger("headwater")
    logger.addHandler(printer)
    try:
        yield
    finally:
        logger.removeHandler(printer)
