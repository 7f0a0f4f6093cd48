"""The roots of all errors that a user can meet: `except headwater.HeadwaterError` catches each of them.

The errors themselves stand in the rooms that raise them. Each is also one of Python's own kinds (`ValueError`,
`RuntimeError`, `OSError`), so that code which knows nothing of Headwater can catch it.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager


class HeadwaterError(Exception):
    """An error whose message was written for the person who meets it."""


class SettingError(HeadwaterError, ValueError):
    """A setting, an option or an argument that cannot be right; the message says what can."""


class StateError(HeadwaterError, RuntimeError):
    """A call that is not possible now: the engine runs already, or it has no Spark."""


def warn_old_name(old: str, new: str) -> None:
    """Warn who calls a public method, or passes a parameter, by a name of 0.1; such names go after 0.2."""
    warnings.warn(f"{old} is deprecated and goes after 0.2: use {new}", DeprecationWarning, stacklevel=3)


@contextmanager
def report_file_errors(kind: type[HeadwaterError], name: str, remedy: str) -> Iterator[None]:
    """Turns what reading and writing files of our own raises into an error of a kind that says what to do."""
    try:
        yield
    except HeadwaterError:
        raise
    except OSError as error:
        raise kind(f"{name} cannot be read or written ({error.strerror}: {error.filename}): {remedy}") from error
    except Exception as error:
        # What is read from damaged files raises anything.
        raise kind(f"{name} is damaged ({type(error).__name__}: {error}): {remedy}") from error
