"""The roots of all errors that a user can meet: `except headwater.HeadwaterError` catches each of them.

The errors themselves stand in the rooms that raise them. Each is also one of Python's own kinds (`ValueError`,
`RuntimeError`, `OSError`), so that code which knows nothing of Headwater can catch it.
"""

from __future__ import annotations

import errno
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

_LASTING = {errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ELOOP, errno.ENAMETOOLONG, errno.EACCES, errno.EPERM}


class HeadwaterError(Exception):
    """An error whose message was written for the person who meets it."""


class SettingError(HeadwaterError, ValueError):
    """A setting, an option or an argument that cannot be right; the message says what can."""


class StateError(HeadwaterError, RuntimeError):
    """A call that is not possible now: the engine runs already, or it has no Spark."""


def warn_old_name(old: str, new: str) -> None:
    """Warn who calls a public method, or passes a parameter, by a name of 0.1; such names go after 0.2."""
    warnings.warn(f"{old} is deprecated and goes after 0.2: use {new}", DeprecationWarning, stacklevel=3)


def can_pass(error: OSError) -> bool:
    """Whether what the operating system refuses now may work later: the disk is full or fails, no memory is left.

    A file that is missing, or that nobody may read, is what it is. What decompresses a file raises an `OSError` without
    a number: the file is damaged.
    """
    return error.errno is not None and error.errno not in _LASTING


@contextmanager
def report_file_errors(kind: type[HeadwaterError], name: str, remedy: str) -> Iterator[None]:
    """Turns what reading and writing files of our own raises into an error of a kind that says what to do."""
    try:
        yield
    except HeadwaterError:
        raise
    except OSError as error:
        # Some calls know no file; `name` is all there is to say then.
        where = "" if error.filename is None else f": {error.filename}"
        reason = error.strerror or str(error) or type(error).__name__
        raise kind(f"{name} cannot be read or written ({reason}{where}): {remedy}") from error
    except Exception as error:
        # What is read from damaged files raises anything.
        raise kind(f"{name} is damaged ({type(error).__name__}: {error}): {remedy}") from error
