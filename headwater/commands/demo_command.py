"""`headwater demo`: a city's morning in a minute, and three queries over it, one in each language."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import threading
import time
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.console import Console

import headwater as hw
from headwater.commands.answer_tables import Screen
from headwater.commands.demo_board import Board, Panel
from headwater.commands.progress_line import progress_text
from headwater.demo.traffic import City, morning
from headwater.demo.traffic_feed import FOLDERS, TrafficFeed, last_instants, write_city
from headwater.running.progress import Progress

QUERIES = ("entering-cars", "full-districts", "fast-cars")
MINUTES = 41
SEED = 2010

_TRIGGER_SECONDS = 0.5
_SPARK_STOPS_SECONDS = 4.0
_SHORTEST_PAUSE_ON_SPARK = 0.35
"""A minute of the city takes at least so long, however long Spark took to start: there should be something to watch."""
_GRACE_SECONDS = 60.0
"""How long a slow machine may take beyond what was asked, before the demonstration is cut short."""


def demo(seconds: float, in_process: bool) -> None:
    """Runs the demonstration; about so many seconds in all, start-up included."""
    begun = time.monotonic()
    console = Screen()
    console.print(f"{MINUTES} minutes of a city's morning in about {seconds:g} s; cars pass tollgates and cameras.")
    engine = hw.Engine(in_process=in_process)
    if not in_process:
        console.print("Starting embedded Spark …")
        engine.session()
        console.print(f"Spark is up after {time.monotonic() - begun:.0f} s; its first batch takes a while.")
    with TemporaryDirectory(prefix="headwater-demo-", ignore_cleanup_errors=True) as folder:
        pace = (
            Pace(begun + seconds)
            if in_process
            else Pace(begun + seconds - _SPARK_STOPS_SECONDS, _SHORTEST_PAUSE_ON_SPARK)
        )
        summary, whole = _run(engine, Path(folder), pace, console)
    seconds_taken = f"{time.monotonic() - begun:.0f} s"
    print(f"{'Done in' if whole else 'Cut short after'} {seconds_taken}: {progress_text(summary)}")
    print("Look at it in a browser: headwater demo --page")
    print(f"Try next: {suggest_command()}")


@dataclass(frozen=True)
class Pace:
    """How fast the city's time passes: such that the morning is over at `end`, by the monotonic clock."""

    end: float
    shortest_pause: float = 0.0

    def pause(self, minutes: int) -> float:
        """Seconds between one minute of the city and the next, from now on."""
        return max(self.shortest_pause, (self.end - time.monotonic()) / minutes)

    @property
    def patience(self) -> float:
        """Seconds from now after which the demonstration must be over."""
        return max(0.0, self.end - time.monotonic()) + _GRACE_SECONDS


def _run(engine: hw.Engine, folder: Path, pace: Pace, console: Console) -> tuple[hw.RunSummary, bool]:
    """The summary, and whether the whole morning was seen."""
    minutes = morning(City.read(), MINUTES, SEED)
    last = last_instants(minutes)
    engine.dataset(write_city(folder))
    feed = TrafficFeed(folder, minutes)
    feed.begin()
    for stream, name in FOLDERS.items():
        engine.stream(stream, hw.files(folder / name))
    board = Board({query.name: Panel.of(_heading(query), query.plan) for query in _register(engine)}, console)

    def has_read_all(progress: Progress) -> bool:
        return all((progress.watermarks.get(stream) or 0) >= last[stream] for stream in last)

    def on_progress(progress: Progress) -> None:
        board.progress(progress)
        if not feed.going:
            feed.go_on(pace.pause(len(minutes)))
        if feed.failure is not None or has_read_all(progress):
            engine.stop()

    out_of_patience = threading.Timer(pace.patience, engine.stop)
    out_of_patience.daemon = True
    out_of_patience.start()
    try:
        with board:
            summary = engine.run(
                follow=True, on_answer=board.answer, on_progress=on_progress, trigger_seconds=_TRIGGER_SECONDS
            )
    finally:
        out_of_patience.cancel()
        feed.stop()
    if feed.failure is not None:
        raise feed.failure
    return summary, has_read_all(summary)


def _register(engine: hw.Engine) -> list[hw.Query]:
    folder = files("headwater.demo") / "queries"
    return [engine.register((folder / f"{name}.rq").read_text("utf-8")) for name in QUERIES]


def _heading(query: hw.Query) -> str:
    """The comment at the top of a query."""
    return query.text.partition("\n")[0].removeprefix("# ")


def suggest_command() -> str:
    """A command that works from here: on the examples of the project where it is a clone."""
    command = "headwater"
    if shutil.which(command) is None and Path(sys.argv[0]).name == command:
        command = _from_here(Path(sys.argv[0]))
    examples = Path(hw.__file__).parent.parent / "examples"
    if not (examples / "city.ttl").is_file():
        return f"{command} run --help"
    shown = _from_here(examples)
    return (
        f"{command} run {shown}/cars-per-district.rq --in-process "
        f"--stream http://city/tollgates={shown}/tollgates.tnq --data {shown}/city.ttl"
    )


def _from_here(path: Path) -> str:
    absolute, here = Path(os.path.abspath(path)), Path.cwd()
    return shlex.quote(str(absolute.relative_to(here) if absolute.is_relative_to(here) else absolute))
