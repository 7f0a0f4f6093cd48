"""How much one window may hold: a bound for those that have none of their own, such as ALL.

An unbounded window over an endless stream must end somewhere. It ends with an error that says what to do, before the
machine does. The cap counts what the window shows at a tick, so a long batch over a short window is no matter.
"""

from __future__ import annotations

from headwater.errors import HeadwaterError

DEFAULT_CAP = 20_000_000
"""Triples. The kernel keeps some hundred bytes for each of them in a query of average size."""


class WindowCapError(HeadwaterError, RuntimeError):
    """A window that holds more than it may."""


def check_cap(label: str, triples: int, cap: int) -> None:
    """An error where a window holds more triples than the cap allows."""
    if triples > cap:
        raise WindowCapError(
            f"the window {label} holds {triples} triples, of at most {cap}: bound it with RANGE or TRIPLES in the "
            "query, or allow more with window_cap=… (on the command line: --window-cap)"
        )
