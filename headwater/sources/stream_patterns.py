"""What the sources need to read for some queries: triple patterns by stream (`execution.stream_reads`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from headwater.algebra.wanted_patterns import WantedPattern
from headwater.execution.stream_reads import EVERYTHING, Patterns
from headwater.terms.ids.term_ids import encode
from headwater.terms.model import Term

if TYPE_CHECKING:
    from headwater.terms.scanning.pattern_tables import ScanPatterns


@dataclass(frozen=True)
class WantedPatterns:
    """The triple patterns that some query reads, by stream; of a stream that is not here every triple is read."""

    patterns: Mapping[str, frozenset[WantedPattern]] = field(default_factory=dict)

    @classmethod
    def of_patterns(cls, patterns: Patterns) -> WantedPatterns:
        """These patterns, without the streams of which every triple is read."""
        return cls({stream: some for stream, some in patterns.items() if EVERYTHING not in some})

    def of(self, stream: str) -> frozenset[WantedPattern] | None:
        """The patterns of a stream; None where every triple is read."""
        return self.patterns.get(stream)


ALL_TRIPLES = WantedPatterns()


def compile_patterns(patterns: frozenset[WantedPattern] | None) -> ScanPatterns | None:
    """Patterns as the scanner takes them."""
    if patterns is None:
        return None
    from headwater.terms.scanning.pattern_tables import ANY, ScanPattern, ScanPatterns

    def id_of(term: Term | None) -> int:
        return ANY if term is None else encode(term)

    return ScanPatterns(
        (
            ScanPattern(id_of(one.subject), id_of(one.predicate), id_of(one.object), one.texts.replace("g", ""))
            for one in patterns
        ),
        has_graphs=any("g" in one.texts for one in patterns),
    )
