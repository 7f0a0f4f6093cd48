"""What the sources need to read for some queries: patterns by stream, or everything.

Where a window counts triples, where a report looks for a change of content, or where the time is in the data, every
triple matters; otherwise those that match a pattern of some query do.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from headwater.algebra.wanted import WantedPattern, wanted_by
from headwater.reference import Program, ReferenceEvaluator, Registered
from headwater.terms.ids import encode
from headwater.terms.model import Term
from headwater.terms.scanning import ANY, Pattern, Patterns
from headwater.windows import CountWindow, Report, timestamp_predicate


@dataclass(frozen=True)
class Wanted:
    """The patterns that matter, by stream; a stream that is not here is read whole."""

    patterns: Mapping[str, frozenset[WantedPattern]] = field(default_factory=dict)

    def of(self, stream: str) -> frozenset[WantedPattern] | None:
        """The patterns of a stream; None where every triple matters."""
        return self.patterns.get(stream)


EVERYTHING = Wanted()


def wanted(queries: Iterable[Registered], program: Program) -> Wanted:
    """What the queries of a program need to know of their streams."""
    found: dict[str, frozenset[WantedPattern] | None] = {}
    for query in queries:
        evaluator = program.evaluators[query.plan.name]
        # The evaluator of many queries has a plan of its own, in which constants have become variables.
        plan = evaluator.plan if len(evaluator.names) == 1 else query.plan
        patterns = wanted_by(plan, all_texts=isinstance(evaluator, ReferenceEvaluator))
        if query.settings.report is Report.CHANGE:
            patterns = None
        for source, window in zip(query.plan.windows, query.settings.windows, strict=True):
            stream = source.stream.value
            whole = isinstance(window, CountWindow) or timestamp_predicate(source.spec) is not None
            known = found.get(stream, frozenset())
            found[stream] = None if whole or patterns is None or known is None else known | patterns
    return Wanted({stream: patterns for stream, patterns in found.items() if patterns is not None})


def compiled(patterns: frozenset[WantedPattern] | None) -> Patterns | None:
    """Patterns as the scanner takes them."""
    if patterns is None:
        return None
    return Patterns(Pattern(_id(one.subject), _id(one.predicate), _id(one.object), one.texts) for one in patterns)


def _id(term: Term | None) -> int:
    return ANY if term is None else encode(term)
