"""What a result says at a tick: the rows that the streaming operator lets through, or a verdict.

A `Result` is the bag of rows of one query, kept up from the differences of its plan's root. Where only changes are
asked for and they are changes of a bag, what is kept is the net change since the last time it spoke; everything else
needs the whole bag.

    counts   (a) 2   (b) 1    − (b)    →    RSTREAM says (a) (a)        ISTREAM nothing        DSTREAM (b)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np

from headwater.algebra.plan import QueryKind
from headwater.kernel.columns.ordered_rows import sort_rows
from headwater.kernel.columns.ring_index import Ints
from headwater.kernel.columns.vocabulary import Vocabulary
from headwater.language.stream_clauses import StreamOperator
from headwater.windows.stream_operators import emitted

Sequenced = Callable[[Ints], list[object]]
"""What ORDER BY and LIMIT make of the rows of a result."""


@dataclass(slots=True)
class Result:
    """The rows of a query with their counts, and what is known of the last time it spoke."""

    counts: dict[tuple[int, ...], int] = field(default_factory=dict)
    verdict: bool | None = None
    shown: list[object] | None = None
    """The rows as they were said, while nothing has changed since."""

    def change(self, row: tuple[int, ...], difference: int) -> None:
        count = self.counts.get(row, 0) + difference
        if count:
            self.counts[row] = count
        else:
            del self.counts[row]


class Speech:
    """How the results of a query, or of several alike, are said."""

    def __init__(
        self, kind: QueryKind, emit: StreamOperator, vocabulary: Vocabulary, sequenced: Sequenced | None = None
    ) -> None:
        self._kind = kind
        self._emit = emit
        self._vocabulary = vocabulary
        self._sequenced = sequenced
        only_change = emit is not StreamOperator.RSTREAM
        self._follows_change = only_change and sequenced is None and kind is not QueryKind.ASK

    def said(self, result: Result, *, has_changed: bool) -> list[object]:
        """What a result says now; `has_changed` tells whether it is another one than when it spoke last."""
        if self._kind is QueryKind.ASK:
            return self._verdict(result)
        if self._follows_change:
            sign = -1 if self._emit is StreamOperator.DSTREAM else 1
            changed, result.counts = result.counts, {}
            return self._in_order([row for row, n in changed.items() for _ in range(n * sign)])
        before = result.shown
        if before is None or has_changed:
            result.shown = self._whole(result)
        return emitted(self._emit, cast("list[object]", result.shown), before or [])

    def settle(self, result: Result) -> None:
        """Take a result as said."""
        if self._kind is QueryKind.ASK:
            result.verdict = bool(result.counts)
        elif self._follows_change:
            result.counts = {}
        elif self._emit is not StreamOperator.RSTREAM:
            result.shown = self._whole(result)

    def unsaid(self, result: Result) -> object:
        """What the bag of rows does not tell, for a result that is another one than when it spoke last."""
        if not self._follows_change:
            return result.verdict, None if self._emit is StreamOperator.RSTREAM else result.shown
        term_of = self._vocabulary.term_of
        return [(tuple(map(term_of, row)), n) for row, n in result.counts.items()]

    def recall(self, result: Result, unsaid: Any) -> None:
        """Take over what `unsaid` told."""
        if not self._follows_change:
            result.verdict, result.shown = unsaid
            return
        id_of = self._vocabulary.id_of
        result.counts = {tuple(map(id_of, row)): n for row, n in unsaid}

    def _whole(self, result: Result) -> list[object]:
        rows = [row for row, n in result.counts.items() for _ in range(n)]
        if self._sequenced is None:
            return self._in_order(rows)
        return self._sequenced(np.array(rows, dtype=np.int64)) if rows else []

    def _in_order(self, rows: list[tuple[int, ...]]) -> list[object]:
        return cast("list[object]", sort_rows(rows, self._vocabulary)) if rows else []

    def _verdict(self, result: Result) -> list[object]:
        before, result.verdict = result.verdict, bool(result.counts)
        match self._emit:
            case StreamOperator.ISTREAM:
                return [] if before == result.verdict else [result.verdict]
            case StreamOperator.DSTREAM:
                return [] if before is None or before == result.verdict else [before]
        return [result.verdict]
