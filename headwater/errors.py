"""The roots of all errors that a user can meet: `except headwater.HeadwaterError` catches each of them.

The errors themselves stand in the rooms that raise them. Each is also one of Python's own kinds (`ValueError`,
`RuntimeError`, `OSError`), so that code which knows nothing of Headwater can catch it.
"""

from __future__ import annotations


class HeadwaterError(Exception):
    """An error whose message was written for the person who meets it."""


class SettingError(HeadwaterError, ValueError):
    """A setting, an option or an argument that cannot be right; the message says what can."""


class StateError(HeadwaterError, RuntimeError):
    """A call that is not possible now: the engine runs already, or it has no Spark."""
