"""The progress line: on a terminal, repainted in place; in a pipe, a line now and then."""

from __future__ import annotations

import io
import time

import pytest

from headwater.commands.progress_line import ProgressLine, progress_text, status_text, summary_text
from headwater.running.progress import Progress, QueryProgress, RunSummary
from headwater.terms import compiled_code

PROGRESS = Progress(elements=12_400, late=2, bad=1, ticks=12, rate=3_100.4, watermarks={"a": 5_000_000, "b": 9_000_000})
SHOWN = "12,400 elements (3,100/s) · watermark 1970-01-01T00:00:05Z · 12 ticks · 2 late · 1 bad"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_the_line_says_how_far_the_slowest_stream_is() -> None:
    assert progress_text(PROGRESS) == SHOWN
    assert "watermark none yet" in progress_text(Progress(watermarks={"a": None}))


def test_the_line_says_when_functions_are_compiled_at_the_first_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        compiled_code, "COMPILATIONS", compiled_code.Compilations(functions=28, compiled=7, begun=9, done=8)
    )
    bar = "▰▰" + "▱" * 8
    assert status_text(PROGRESS, 0.0) == f"{bar} compiling, at the first use only: 7 of up to 28 functions · {SHOWN}"
    compiled_code.COMPILATIONS.done += 1
    assert status_text(PROGRESS, 0.0) == SHOWN


def test_the_summary_tells_stopped_from_done() -> None:
    assert summary_text(RunSummary(seconds=1.25)).startswith("done in 1.2 s: 0 elements")
    assert summary_text(RunSummary(stopped=True)).startswith("stopped in 0.0 s: ")


def test_a_terminal_gets_the_line_again_and_again_in_one_place() -> None:
    terminal, clock = Terminal(), Clock()
    line = ProgressLine(terminal, clock)
    line.update(Progress())
    clock.now = 1.0
    line.update(PROGRESS)
    first, second = terminal.getvalue().split("\r\x1b[2K")[1:]
    assert first.startswith("0 elements")
    assert SHOWN.startswith(second)
    assert "\n" not in terminal.getvalue()


def test_many_updates_in_a_moment_are_painted_once() -> None:
    terminal, clock = Terminal(), Clock()
    line = ProgressLine(terminal, clock)
    for _ in range(100):
        line.update(PROGRESS)
    assert terminal.getvalue().count("elements") == 1


def test_clearing_leaves_nothing_behind() -> None:
    terminal = Terminal()
    line = ProgressLine(terminal)
    line.clear()
    assert terminal.getvalue() == ""
    line.update(PROGRESS)
    line.clear()
    assert terminal.getvalue().endswith("\r\x1b[2K")


def test_a_pipe_gets_nothing() -> None:
    pipe = io.StringIO()
    line = ProgressLine(pipe)
    line.update(PROGRESS)
    line.paint()
    line.clear()
    assert pipe.getvalue() == ""


def waiting(*names: str) -> Progress:
    queries = {name: QueryProgress(waits_for={"http://city/gates": 5_000_000}) for name in names}
    return Progress(queries=queries)


def test_the_status_says_who_waits_for_which_stream_and_since_when() -> None:
    assert status_text(waiting("busy"), 9.0) == progress_text(Progress()), "that is a pause between two elements"
    assert status_text(waiting("busy"), 47.0).endswith(
        "· busy waits for http://city/gates, silent for 42 s since 1970-01-01T00:00:05Z (--idle goes on without it)"
    )
    assert "2 queries wait for http://city/gates" in status_text(waiting("busy", "full"), 47.0)


def test_a_pipe_gets_a_line_now_and_then() -> None:
    pipe = io.StringIO()
    with ProgressLine(pipe).repeat(lambda: PROGRESS, seconds=0.02):
        end = time.monotonic() + 20
        while pipe.getvalue().count("\n") < 2 and time.monotonic() < end:
            time.sleep(0.01)
    lines = pipe.getvalue().splitlines()
    assert len(lines) >= 2
    assert set(lines) == {SHOWN}


def test_a_terminal_shows_that_a_run_waits_although_nothing_is_counted() -> None:
    terminal = Terminal()
    line = ProgressLine(terminal, day=lambda: 47.0)
    with line.repeat(lambda: waiting("busy"), seconds=0.01):
        time.sleep(1.3)
    assert "elements" in terminal.getvalue()
    assert "\n" not in terminal.getvalue()


def test_who_is_quiet_says_nothing() -> None:
    for stream in (Terminal(), io.StringIO()):
        line = ProgressLine(stream, quiet=True)
        with line.repeat(lambda: PROGRESS, seconds=0.01):
            line.update(PROGRESS)
            time.sleep(0.1)
        assert stream.getvalue() == ""
