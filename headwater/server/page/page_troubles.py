"""What is wrong at the moment, as sentences that say what to look at."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from headwater.server.page.page_access import PageOverview, QueryState
from headwater.server.page.share_links import query_path, stream_path

_MANY_LATE = 0.01


class Severity(IntEnum):
    """How bad it is."""

    NOTICE = 1
    WARNING = 2
    FAILURE = 3


@dataclass(frozen=True, slots=True)
class Trouble:
    """Something that is wrong: a sentence, how bad it is, and the path of the view that shows more."""

    text: str
    severity: Severity
    path: str = ""


def find_troubles(overview: PageOverview) -> list[Trouble]:
    """What is wrong, the worst first."""
    found: list[Trouble] = []
    if overview.failure:
        found.append(Trouble(f"Nothing is answered any more: {overview.failure}", Severity.FAILURE))
    elif not overview.is_running:
        found.append(Trouble("The engine is not running.", Severity.FAILURE))
    for query in overview.queries:
        path = query_path(query.name)
        if query.state is QueryState.SUSPENDED:
            found.append(Trouble(f"{query.title} is suspended: {query.reason}", Severity.FAILURE, path))
        for silent in query.waits_for:
            found.append(Trouble(f"{query.title} waits for the silent stream {silent}.", Severity.WARNING, path))
        if query.state is QueryState.PAUSED:
            found.append(Trouble(f"{query.title} is paused.", Severity.NOTICE, path))
    for stream in overview.streams:
        if stream.bad:
            text = f"{_elements(stream.bad)} of {stream.name} could not be read."
            found.append(Trouble(text, Severity.WARNING, stream_path(stream.name)))
        if stream.ahead:
            text = f"{_elements(stream.ahead)} of {stream.name} jumped ahead in time."
            found.append(Trouble(text, Severity.WARNING, stream_path(stream.name)))
        if stream.late and stream.late >= _MANY_LATE * stream.elements:
            text = f"{_elements(stream.late)} of {stream.name} came late."
            found.append(Trouble(text, Severity.WARNING, stream_path(stream.name)))
    return sorted(found, key=lambda one: -one.severity)


def _elements(count: int) -> str:
    return "1 element" if count == 1 else f"{count:,} elements"
