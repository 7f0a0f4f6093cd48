"""What the sources need to read for some queries: patterns by stream, or everything (`reference.reading`)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from headwater.algebra.wanted_patterns import WantedPattern
from headwater.execution.stream_reads import EVERYTHING as EVERY_TRIPLE
from headwater.execution.stream_reads import union
from headwater.terms.ids.term_ids import encode
from headwater.terms.model import Term

if TYPE_CHECKING:
    from headwater.execution.program import Program
    from headwater.execution.registered import Registered
    from headwater.terms.scanning.pattern_tables import Patterns


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
    needed = union(program.patterns(query.plan.name) for query in queries)
    return Wanted({stream: patterns for stream, patterns in needed.items() if EVERY_TRIPLE not in patterns})


def compiled(patterns: frozenset[WantedPattern] | None) -> Patterns | None:
    """Patterns as the scanner takes them."""
    if patterns is None:
        return None
    from headwater.terms.scanning.pattern_tables import ANY, Pattern, Patterns

    def number(term: Term | None) -> int:
        return ANY if term is None else encode(term)

    return Patterns(
        Pattern(number(one.subject), number(one.predicate), number(one.object), one.texts) for one in patterns
    )
