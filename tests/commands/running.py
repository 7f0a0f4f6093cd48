"""Runs the command line: in this process where that will do, in one of its own where signals or pipes matter."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from typer.testing import CliRunner, Result

from headwater.cli import app

PROJECT = Path(__file__).resolve().parents[2]
EXAMPLES = PROJECT / "examples"
COMMAND = (sys.executable, "-m", "headwater")

TOLLGATES = ("--stream", f"http://city/tollgates={EXAMPLES / 'tollgates.tnq'}")
CAMERAS = ("--stream", f"http://city/cameras={EXAMPLES / 'cameras.tnq'}")
CITY = ("--data", str(EXAMPLES / "city.ttl"))


def headwater(*arguments: object, stdin: str | None = None) -> Result:
    """The command in this process."""
    return CliRunner().invoke(app, [str(argument) for argument in arguments], input=stdin)


def run_example(name: str, *arguments: object) -> Result:
    """`headwater run` in process with an example over the tollgates and the city."""
    return headwater("run", EXAMPLES / f"{name}.rq", "--in-process", *TOLLGATES, *CITY, *arguments)


def environment(**extra: str) -> dict[str, str]:
    """The environment of a process of its own."""
    return {**os.environ, "PYTHONPATH": str(PROJECT), **extra}


@contextmanager
def process(*arguments: object, **extra: str) -> Iterator[subprocess.Popen[str]]:
    """The command in a process of its own, with pipes; it is ended when the test is done with it."""
    command = subprocess.Popen(
        [*COMMAND, *map(str, arguments)],
        cwd=PROJECT,
        env=environment(**extra),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # Tests that run in the background inherit that interrupts are ignored.
        preexec_fn=_take_interrupts,
    )
    with command:
        try:
            yield command
        finally:
            command.kill()


def _take_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
