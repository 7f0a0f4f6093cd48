"""The cap on the number of triples in one window, for windows without a bound of their own, such as ALL.

An unbounded window over an endless stream would fill the memory. The cap ends the run before, with an error that says
what to do. It counts the content of the window at a tick, so a long batch over a short window does no harm.
"""

from __future__ import annotations

from headwater.errors import HeadwaterError

DEFAULT_CAP = 20_000_000
"""In triples. The kernel keeps some hundred bytes for each of them in a query of average size."""


class WindowCapError(HeadwaterError, RuntimeError):
    """A window holds more triples than the cap allows."""


def check_cap(label: str, triples: int, cap: int) -> None:
    """Raise `WindowCapError` if a window holds more triples than the cap."""
    if triples > cap:
        raise WindowCapError(
            f"the window {label} holds {triples} triples, of at most {cap}: bound it with RANGE or TRIPLES in the "
            "query, or allow more with window_cap=… (on the command line: --window-cap)"
        )
