"""How a command starts: until it is at work, Ctrl-C and SIGTERM end its process at once and without a word.

Importing its parts and reading its options takes a second, in which nothing has been begun that must be put in order.
The exit codes are those of `ending`.
"""

from __future__ import annotations

import os
import signal

_BEFORE: dict[signal.Signals, object] = {}
"""The handlers that hold when the command is at work."""


def end_at_once_on_signals() -> None:
    """From now on signals end the process."""
    for number in (signal.SIGINT, signal.SIGTERM):
        handler = signal.getsignal(number)
        # A process in the background of a shell may have been told to ignore Ctrl-C.
        if handler != signal.SIG_IGN:
            _BEFORE[number] = handler
            signal.signal(number, lambda received, _: os._exit(128 + received))


def begin_work() -> None:
    """From now on signals do what they did before."""
    while _BEFORE:
        number, handler = _BEFORE.popitem()
        signal.signal(number, handler)  # type: ignore[arg-type]
