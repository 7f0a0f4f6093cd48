"""Which names queries and streams may have that are made over HTTP: those that their paths can be reached by."""

from __future__ import annotations

import unicodedata

from headwater.server.problems import Problem

_LONGEST = 500
_TAKEN = {
    "query": (("validate", "preview"), ("/answers", "/answers/latest", "/plan", "/why")),
    "stream": ((), ("/dead-letters",)),
}
"""Names, and ends of names, that are paths of their own."""
_CONTROLS = ("Cc", "Cs", "Zl", "Zp")
_DIRECTIONS = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
"""Characters that let a name be shown as another one."""


def check_name(kind: str, name: str) -> None:
    """Raise a `Problem` where a query or a stream (`kind`) cannot have this name."""
    names, ends = _TAKEN[kind]
    if not name or len(name) > _LONGEST:
        reason = f"it has at least one character, and at most {_LONGEST}"
    elif name in names or name.endswith(ends):
        reason = "a path of the server is called so"
    elif any(part in (".", "..") for part in name.split("/")):
        reason = "clients leave . and .. out of paths"
    elif any(mark in _DIRECTIONS or unicodedata.category(mark) in _CONTROLS for mark in name):
        reason = "it has no control characters, and none that change the direction of writing"
    else:
        return
    raise Problem(400, f"This is no name for a {kind}", f"Give it another one: {reason}")
