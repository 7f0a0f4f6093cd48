"""The steps of a plan as a Mermaid flowchart: how many rows enter each, and how many leave it, at one tick.

    graph pattern --9--> aggregation --2--> project

The numbers are counted when somebody asks, in an evaluation of its own beside the run: a query whose plan nobody looks
at counts nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from headwater.server.page.page_access import WhyStep

_LONGEST_TEXT = 90
_PLAIN = " _-.,:;+*=/(){}[]?!"
_ENDING = "classDef ending stroke:#b42318,stroke-width:2px"


def rows_graph(steps: Sequence[WhyStep]) -> str:
    """The flowchart of steps, each of which stands behind those that it reads; those are one deeper."""
    lines = ["flowchart BT"]
    for place, step in enumerate(steps):
        text = step.text if len(step.text) <= _LONGEST_TEXT else f"{step.text[:_LONGEST_TEXT]} …"
        read = [one.solutions for number, one in enumerate(steps[:place]) if _reader(steps, number) == place]
        entering = f"{sum(read):,} in, " if read else ""
        lines.append(f'n{place}["{_escape(text)}<br/>{entering}{step.solutions:,} out"]')
        if step.is_end:
            lines.append(f"class n{place} ending")
    for place, step in enumerate(steps):
        reader = _reader(steps, place)
        if reader is not None:
            lines.append(f'n{place} -->|"{step.solutions:,}"| n{reader}')
    return "\n".join([*lines, _ENDING])


def _reader(steps: Sequence[WhyStep], place: int) -> int | None:
    """The step that reads another one: the first behind it that is less deep."""
    depth = steps[place].depth
    return next((number for number in range(place + 1, len(steps)) if steps[number].depth < depth), None)


def _escape(text: str) -> str:
    """Text inside quotes; what Mermaid or HTML could read as their own is written by its number."""
    return "".join(one if one.isalnum() or one in _PLAIN else f"#{ord(one)};" for one in text)
