"""What the sources need to read for some queries: patterns by stream, or everything (`reference.reading`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from headwater.algebra.wanted_patterns import WantedPattern
from headwater.execution.stream_reads import EVERYTHING as EVERY_TRIPLE
from headwater.execution.stream_reads import Patterns
from headwater.terms.ids.term_ids import encode
from headwater.terms.model import Term

if TYPE_CHECKING:
    from headwater.terms.scanning.pattern_tables import Patterns as ScannedPatterns


@dataclass(frozen=True)
class Wanted:
    """The patterns that matter, by stream; a stream that is not here is read whole."""

    patterns: Mapping[str, frozenset[WantedPattern]] = field(default_factory=dict)

    @classmethod
    def of_patterns(cls, patterns: Patterns) -> Wanted:
        """What some queries need of their streams; a stream of which they need every triple is read whole."""
        return cls({stream: some for stream, some in patterns.items() if EVERY_TRIPLE not in some})

    def of(self, stream: str) -> frozenset[WantedPattern] | None:
        """The patterns of a stream; None where every triple matters."""
        return self.patterns.get(stream)


EVERYTHING = Wanted()


def compiled(patterns: frozenset[WantedPattern] | None) -> ScannedPatterns | None:
    """Patterns as the scanner takes them."""
    if patterns is None:
        return None
    from headwater.terms.scanning.pattern_tables import ANY, Pattern
    from headwater.terms.scanning.pattern_tables import Patterns as ScannedPatterns

    def number(term: Term | None) -> int:
        return ANY if term is None else encode(term)

    return ScannedPatterns(
        Pattern(number(one.subject), number(one.predicate), number(one.object), one.texts) for one in patterns
    )
