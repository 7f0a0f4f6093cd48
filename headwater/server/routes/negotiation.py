"""Which form of an answer a client wants, by its header `Accept`.

>>> choose_form("text/csv;q=0.5, application/json", ["text/csv", "application/json"])
'application/json'
>>> choose_form("image/png", ["text/csv"]) is None
True
"""

from __future__ import annotations

from collections.abc import Sequence


def choose_form(accept: str | None, offered: Sequence[str]) -> str | None:
    """The media type among those that are offered that a client wants most; None where it wants none of them.

    Of those that it wants equally, the first one that is offered.
    """
    if not accept or not accept.strip():
        return offered[0]
    ranges: list[tuple[str, float]] = []
    for part in accept.split(","):
        name, *parameters = (one.strip().lower() for one in part.split(";"))
        quality = 1.0
        for parameter in parameters:
            if parameter.startswith("q="):
                try:
                    quality = float(parameter[2:])
                except ValueError:
                    quality = 0.0
        ranges.append((name, quality))

    def quality_of(form: str) -> float:
        """By the most specific range that has the form."""
        kind = form.partition("/")[0]
        for wanted in (form, f"{kind}/*", "*/*"):
            found = [quality for name, quality in ranges if name == wanted]
            if found:
                return max(found)
        return 0.0

    best = max(offered, key=quality_of)
    return best if quality_of(best) > 0 else None
