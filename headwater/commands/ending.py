"""How a command ends: with an exit code that scripts can rely on and, where it failed, one line that says why.

| code | meaning                                                           |
|------|-------------------------------------------------------------------|
| 0    | done                                                              |
| 1    | it failed while running                                           |
| 2    | the query is wrong, or the command line                           |
| 130  | interrupted with Ctrl-C                                           |
| 141  | the reader of the output is gone (`headwater run … \\| head -1`)   |
| 143  | terminated (SIGTERM)                                              |

A run ends after the batch at work when Ctrl-C or SIGTERM comes, and prints its summary; a second one ends it at once.

With `HEADWATER_DEBUG=1` a failure shows its traceback, too.
"""

from __future__ import annotations

import functools
import os
import select
import signal
import sys
import textwrap
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import ParamSpec

import typer

from headwater import QueryError, RegistrationError, SettingError, SourceError, TemplateError
from headwater.commands.starting import begin_work
from headwater.datasets.errors import DataSetError
from headwater.errors import HeadwaterError, can_pass

FAILED = 1
WRONG = 2
INTERRUPTED = 130
READER_GONE = 141
TERMINATED = 143

_LONGEST_MESSAGE = 1_200
_WIDTH = 110
P = ParamSpec("P")


class WrongInput(HeadwaterError):
    """A query or an option that cannot be right, with the words for the person who wrote it."""


class Terminated(KeyboardInterrupt):
    """SIGTERM came where nothing could be ended in order."""


@contextmanager
def end_on_signals(stop: Callable[[], object]) -> Iterator[Callable[[], int | None]]:
    """A context in which Ctrl-C and SIGTERM call `stop` the first time, and interrupt the second time.

    It gives a function that says with which exit code the command ends; None where no signal came. `stop` is called in
    the midst of whatever the main thread does, so it must not take a lock that this thread may have.
    """
    received: list[int] = []

    def handle(number: int, _: FrameType | None) -> None:
        received.append(number)
        if len(received) > 1:
            raise Terminated if number == signal.SIGTERM else KeyboardInterrupt
        stop()

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: 128 + received[0] if received else None
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def report_failures(command: Callable[P, None]) -> Callable[P, None]:
    """Turns whatever a command raises into its exit code and, on stderr, the reason."""

    @functools.wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            begin_work()
            command(*args, **kwargs)
            sys.stdout.flush()
        except (typer.Exit, typer.Abort, typer.BadParameter):
            raise
        except BaseException as error:
            code = exit_code(error)
            if code == READER_GONE:
                _silence_stdout()
            elif code in (FAILED, WRONG):
                _print_failure(error, code)
            raise typer.Exit(code) from None

    return run


def exit_code(error: BaseException) -> int:
    """The exit code for an exception."""
    interrupt = _find_interrupt(error)
    if interrupt is not None:
        return TERMINATED if isinstance(interrupt, Terminated) else INTERRUPTED
    if isinstance(error, BrokenPipeError) and _reader_is_gone():
        return READER_GONE
    wrong = WrongInput | QueryError | RegistrationError | SettingError | TemplateError | SourceError | DataSetError
    # What a disk refuses for now is nobody's mistake.
    is_fault = isinstance(error.__cause__, OSError) and can_pass(error.__cause__)
    return WRONG if isinstance(error, wrong) and not is_fault else FAILED


def _find_interrupt(error: BaseException) -> KeyboardInterrupt | None:
    """The interrupt behind an exception, if there is one: what it interrupted may have raised another one."""
    seen: list[BaseException] = []
    link: BaseException | None = error
    while link is not None and link not in seen:
        if isinstance(link, KeyboardInterrupt):
            return link
        seen.append(link)
        link = link.__cause__ or link.__context__
    return None


def _reader_is_gone() -> bool:
    """Whether it is stdout that broke: Spark has pipes of its own, and those should not break in silence."""
    with suppress(OSError, ValueError):
        stdout = select.poll()
        stdout.register(sys.stdout.fileno(), select.POLLOUT)
        return any(event & select.POLLERR for _, event in stdout.poll(0))
    return False


def _print_failure(error: BaseException, code: int) -> None:
    if _is_debugging():
        traceback.print_exception(error, file=sys.stderr)
    # What was written for a person, carets included, keeps its lines.
    print(str(error) if code == WRONG else failure_text(error), file=sys.stderr)


def failure_text(error: BaseException) -> str:
    """What went wrong in one line: without the stack traces that Spark puts into its messages."""
    lines: list[str] = []
    for line in str(error).strip().splitlines():
        if line.lstrip().startswith(("at ", "Traceback (", "JVM stacktrace", "Driver stacktrace", "SQLSTATE")):
            break
        if not line.strip() and lines:
            break
        lines.append(line.strip())
    message = " ".join(lines)
    # Messages of the project and of the file system are written for people; anything else is a defect.
    if not isinstance(error, HeadwaterError | OSError) or not message:
        message = f"{type(error).__name__}: {message}".removesuffix(": ")
        message += "" if _is_debugging() else " (HEADWATER_DEBUG=1 shows where)"
    if len(message) > _LONGEST_MESSAGE:
        message = message[:_LONGEST_MESSAGE] + " …"
    return textwrap.fill(f"headwater: {message}", _WIDTH, break_long_words=False, break_on_hyphens=False)


def _is_debugging() -> bool:
    """Whether errors are shown with their stack (`HEADWATER_DEBUG=1`)."""
    return os.environ.get("HEADWATER_DEBUG") == "1"


def _silence_stdout() -> None:
    """Without this Python would try to write the rest when it ends, and complain."""
    with suppress(OSError, ValueError):
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, sys.stdout.fileno())
