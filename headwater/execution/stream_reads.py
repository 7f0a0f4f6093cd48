"""Which triples of its streams a query must be told of, and since when a stream has been read for them.

Sources leave out what no query asks for, so the log of a stream knows a triple only if some query wanted it when it was
read. A query that comes later is told by `Reads` how far back the log can serve it:

    read since ever     ?s :value ?v
    read since 12:00    ?s :unit ?u          a new query over :value and :unit has complete windows after 12:00
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from headwater.algebra.plan import QueryPlan
from headwater.algebra.wanted_patterns import WantedPattern, wanted_by
from headwater.windows.model import CountWindow
from headwater.windows.settings import QuerySettings, Report, timestamp_predicate

EVERYTHING = WantedPattern(None, None, None)
"""The pattern of all triples, with the texts of all terms."""

Patterns = Mapping[str, frozenset[WantedPattern]]
"""By stream, the patterns that cover every triple that matters."""


def patterns_of(plan: QueryPlan, settings: QuerySettings, *, all_texts: bool) -> Patterns:
    """What a query must be told of its streams.

    Where a window counts triples, where a report looks for a change of content, or where the time is in the data,
    every triple matters; otherwise those that match a pattern do.
    """
    patterns = None if settings.report is Report.CHANGE else wanted_by(plan, all_texts=all_texts)
    found: dict[str, frozenset[WantedPattern]] = {}
    for source, window in zip(plan.windows, settings.windows, strict=True):
        whole = isinstance(window, CountWindow) or timestamp_predicate(source.spec) is not None
        mine = frozenset({EVERYTHING}) if whole or patterns is None else patterns
        found[source.stream.value] = found.get(source.stream.value, frozenset()) | mine
    return found


def union(all_patterns: Iterable[Patterns]) -> dict[str, frozenset[WantedPattern]]:
    """What several queries together must be told."""
    found: dict[str, frozenset[WantedPattern]] = {}
    for patterns in all_patterns:
        for stream, mine in patterns.items():
            found[stream] = found.get(stream, frozenset()) | mine
    return found


def covers(one: WantedPattern, other: WantedPattern) -> bool:
    """Whether whoever reads for one pattern has all that another one needs."""
    places = ((one.subject, other.subject), (one.predicate, other.predicate), (one.object, other.object))
    return all(mine is None or mine == yours for mine, yours in places) and set(other.texts) <= set(one.texts)


class Reads:
    """By stream and pattern, the instant since which it is read; None where that is since ever."""

    def __init__(self, patterns: Patterns) -> None:
        self._since: dict[str, dict[WantedPattern, int | None]] = {
            stream: dict.fromkeys(mine) for stream, mine in patterns.items()
        }

    def continued(self, patterns: Patterns, now: Mapping[str, int | None]) -> Reads:
        """The same streams read for other patterns from `now` on, which is None for one that has shown nothing."""
        changed = Reads(patterns)
        for stream, mine in changed._since.items():
            if now.get(stream) is not None:
                known = self._since.get(stream, {})
                for pattern in mine:
                    sinces = [since for other, since in known.items() if covers(other, pattern)]
                    mine[pattern] = (
                        None if None in sinces else min((s for s in sinces if s is not None), default=now[stream])
                    )
        return changed

    def since(self, stream: str, patterns: Iterable[WantedPattern]) -> int | None:
        """Since when all of some patterns are read; None where that is since ever."""
        known = self._since.get(stream, {})
        return max((since for pattern in patterns if (since := known.get(pattern)) is not None), default=None)
