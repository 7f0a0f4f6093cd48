"""Which triples of its streams a query needs, and since when a stream has been read for them.

Sources leave out triples that no query can match, so the window log has a triple only if some query needed it when it
was read. `ReadHistory` says how far back the log can serve a query that is registered later:

    read since the stream began    ?s :value ?v
    read since 12:00               ?s :unit ?u     a new query over :value and :unit has complete windows after 12:00
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from headwater.algebra.plan import QueryPlan
from headwater.algebra.wanted_patterns import WantedPattern, wanted_patterns_of
from headwater.terms.packing import Plain
from headwater.windows.model import CountWindow
from headwater.windows.settings import QuerySettings, Report, timestamp_predicate_of

EVERYTHING = WantedPattern(None, None, None)
"""The pattern of all triples, with the texts of all terms and the names of graphs."""

Patterns = Mapping[str, frozenset[WantedPattern]]
"""By stream, the patterns that cover every triple that matters."""


def needed_patterns(plan: QueryPlan, settings: QuerySettings, *, all_texts: bool) -> Patterns:
    """By stream, the patterns of the triples that a query needs.

    Where a window counts triples, where a report looks for a change of content, or where the time is in the data,
    every triple matters; otherwise those that match a pattern do.
    """
    patterns = None if settings.report is Report.CHANGE else wanted_patterns_of(plan, all_texts=all_texts)
    found: dict[str, frozenset[WantedPattern]] = {}
    for source, window in zip(plan.windows, settings.windows, strict=True):
        whole = isinstance(window, CountWindow) or timestamp_predicate_of(source.spec) is not None
        mine = frozenset({EVERYTHING}) if whole or patterns is None else patterns
        found[source.stream.value] = found.get(source.stream.value, frozenset()) | mine
    return found


def union_patterns(all_patterns: Iterable[Patterns]) -> dict[str, frozenset[WantedPattern]]:
    """By stream, the patterns of the triples that several queries need."""
    found: dict[str, frozenset[WantedPattern]] = {}
    for patterns in all_patterns:
        for stream, mine in patterns.items():
            found[stream] = found.get(stream, frozenset()) | mine
    return found


def covers(one: WantedPattern, other: WantedPattern) -> bool:
    """Whether a stream that is read for one pattern has everything that another one needs."""
    if one == EVERYTHING:
        return True
    places = ((one.subject, other.subject), (one.predicate, other.predicate), (one.object, other.object))
    return all(mine is None or mine == yours for mine, yours in places) and set(other.texts) <= set(one.texts)


class ReadHistory:
    """By stream and pattern, the time since which it is read; None: since the stream began."""

    def __init__(self, patterns: Patterns) -> None:
        self._since: dict[str, dict[WantedPattern, int | None]] = {
            stream: dict.fromkeys(mine) for stream, mine in patterns.items()
        }

    def to_plain(self) -> Plain:
        """For each stream, its patterns with the time since which each is read: values that `terms.packing` writes."""
        return {
            stream: [(one.subject, one.predicate, one.object, one.texts, since) for one, since in mine.items()]
            for stream, mine in self._since.items()
        }

    @classmethod
    def from_plain(cls, value: Plain) -> ReadHistory:
        """Make the history again from what `to_plain` gave."""
        history = cls({})
        history._since = {
            stream: {WantedPattern(*places): since for *places, since in mine} for stream, mine in value.items()
        }
        return history

    def continued_with(self, patterns: Patterns, now: Mapping[str, int | None]) -> ReadHistory:
        """The history when streams are read for other patterns from `now` on; None: the stream has brought nothing."""
        changed = ReadHistory(patterns)
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
        """The time since which all of some patterns are read; None: since the stream began."""
        known = self._since[stream]
        return max((since for pattern in patterns if (since := known[pattern]) is not None), default=None)
