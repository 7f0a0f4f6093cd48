"""What a query says at a tick."""

from __future__ import annotations

from dataclasses import dataclass, field

from headwater.algebra.plan import QueryKind
from headwater.language.stream_clauses import StreamOperator
from headwater.terms.model import Row, Triple


@dataclass(frozen=True, slots=True)
class WindowView:
    """What one window held when an answer was made: its name, the timestamps it covered and how many items."""

    label: str
    low: int
    high: int
    items: int


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of one query at one tick, as its streaming operator lets it through.

    SELECT fills `rows` (in the order of `variables`), CONSTRUCT and DESCRIBE fill `triples`, ASK fills `boolean`.
    `part` numbers answers of one instant where a count window closed more than once in it. `inputs` and `watermark`
    say what the answer was made from; they take no part in comparisons.
    """

    query: str
    time: int
    kind: QueryKind
    operator: StreamOperator = StreamOperator.RSTREAM
    variables: tuple[str, ...] = ()
    rows: tuple[Row, ...] = ()
    triples: tuple[Triple, ...] = ()
    boolean: bool | None = None
    part: int = 0
    inputs: tuple[WindowView, ...] = field(default=(), compare=False)
    watermark: int | None = field(default=None, compare=False)

    @property
    def is_empty(self) -> bool:
        """Nothing to say: no row, no triple and no verdict."""
        return not self.rows and not self.triples and self.boolean is None
