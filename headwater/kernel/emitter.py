"""The streaming operators RSTREAM, ISTREAM and DSTREAM over results that deltas keep up to date.

A `ResultState` holds what must be known of the result of one query. Where only the changes of a bag are asked for, that
is the net change since the last answer; everything else needs the whole bag. An `Emitter` applies deltas to such states
and turns them into what an answer carries.

    counts   (a) 2   (b) 1    − (b)    →    RSTREAM emits (a) (a)        ISTREAM nothing        DSTREAM (b)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain, pairwise, repeat
from typing import cast

import numpy as np

from headwater.algebra.plan import QueryKind
from headwater.kernel.columns.delta import Delta, stack_rows
from headwater.kernel.columns.delta_run import DeltaRun
from headwater.kernel.columns.ring_index import Ints
from headwater.kernel.columns.row_counts import RowCounts
from headwater.kernel.columns.vocabulary import Vocabulary
from headwater.language.stream_clauses import StreamOperator
from headwater.terms.ids.encoded_rows import EncodedRows
from headwater.terms.packing import Plain
from headwater.values.ordered_rows import sort_rows, sort_tables
from headwater.windows.settings import QuerySettings, Report
from headwater.windows.stream_operators import apply_stream_operator

_FEW_ROWS = 24

IdRow = tuple[int, ...]
MakeResult = Callable[[Ints], list[object]]
"""What ORDER BY and LIMIT, or DESCRIBE, make of the rows of a result."""


@dataclass(slots=True)
class ResultState:
    """The rows of one query's result with their counts, or how much each count has changed since the last answer."""

    counts: dict[IdRow, int] = field(default_factory=dict)
    bag: RowCounts | None = None
    """The whole result, in place of counts, once many ticks were taken in one step."""
    rows: Ints | None = None
    """The whole result, in place of counts, where it need not be counted: its rows are handed on as ids."""
    answered: list[object] | None = None
    """The whole result as it was at the last answer, where it is needed again."""

    @property
    def size(self) -> int:
        """About how many different rows it has."""
        return len(self.counts) if self.bag is None else self.bag.top

    def add(self, rows: Iterable[IdRow], difference: int) -> None:
        """Change the count of each of some rows."""
        counts = self.counts
        for row in rows:
            count = counts.get(row, 0) + difference
            if count:
                counts[row] = count
            else:
                del counts[row]

    def ids(self) -> Iterator[Ints]:
        """Every id that is held."""
        yield np.array([i for row in self.counts for i in row], dtype=np.int64)
        if self.bag is not None:
            yield self.bag.ids()
        if self.rows is not None:
            yield self.rows


class Emitter:
    """Applies the streaming operator of a query, or of several alike, to their results.

    Rows have `width` columns. `make_result` is given where a result is more than a bag of rows. With `keeps_answers`
    a whole result is made once and kept until it changes.
    """

    def __init__(
        self,
        kind: QueryKind,
        settings: QuerySettings,
        vocabulary: Vocabulary,
        width: int,
        make_result: MakeResult | None = None,
        *,
        keeps_answers: bool = False,
    ) -> None:
        self._is_ask = kind is QueryKind.ASK
        self._operator = settings.emit
        self._vocabulary = vocabulary
        self._width = width
        self._make_result = make_result
        emits_changes = settings.emit is not StreamOperator.RSTREAM
        self._keeps_answers = keeps_answers or emits_changes
        self.counts_changes = emits_changes and make_result is None and not self._is_ask
        """Whether results are kept as net changes since the last answer."""
        self._can_skip = self.counts_changes and settings.report not in (Report.CHANGE, Report.NONEMPTY)
        self.lists_bags = not emits_changes and make_result is None and not self._is_ask and not keeps_answers
        """Whether an answer has all rows of the result, and no other has to be known."""
        self._can_encode = kind is QueryKind.SELECT and make_result is None and not keeps_answers

    def change_width(self, width: int) -> None:
        """Take rows of another number of columns from now on; what results hold is to be reset."""
        self._width = width

    def can_skip(self, delta: Delta) -> bool:
        """Whether the streaming operator lets nothing of a tick through, and no later tick needs to know of it.

        That holds for results without pending changes only.
        """
        if not self._can_skip:
            return False
        return not (delta.removed if self._operator is StreamOperator.DSTREAM else delta.added).shape[0]

    def apply(self, result: ResultState, delta: Delta) -> None:
        """Follow a change of the result."""
        if delta.is_empty:
            return
        if result.bag is not None:
            if delta.is_reset:
                result.bag = RowCounts(self._width)
            else:
                result.bag.compact()
                result.bag.change(delta.removed, -1)
            result.bag.change(delta.added, 1)
            return
        if delta.is_reset and not self.counts_changes:
            if self._encodes(delta.added.shape[0]):
                result.rows, result.counts = delta.added, {}
            else:
                result.rows, result.counts = None, Counter(_tuples(delta.added))
            return
        if result.rows is not None:
            result.counts, result.rows = Counter(_tuples(result.rows)), None
        if not result.counts and not delta.removed.shape[0]:
            once = dict.fromkeys(_tuples(delta.added), 1)
            if len(once) == delta.added.shape[0]:
                result.counts = once
                return
        result.add(_tuples(delta.added), 1)
        result.add(_tuples(delta.removed), -1)

    def emit(self, result: ResultState, *, has_changed: bool = True) -> list[object] | EncodedRows:
        """What an answer carries now: rows, or triples for DESCRIBE, or a verdict for ASK.

        `has_changed` says whether the result may differ from the one of the last answer.
        """
        if result.bag is not None:
            return self._emit_rows(result.bag.bag())
        if result.rows is not None:
            return self._emit_rows(result.rows)
        if self.counts_changes or self.lists_bags:
            return self._emit_rows(self._take_rows(result)) if result.counts else []
        before = result.answered
        now = self._whole(result) if has_changed or before is None else before
        if not self._keeps_answers:
            return now
        result.answered = now
        if now == before and self._operator is not StreamOperator.RSTREAM:
            return []
        return apply_stream_operator(self._operator, now, before or [])

    def emit_run(self, result: ResultState, deltas: DeltaRun | list[Delta], tick_count: int) -> tuple[Ints, Ints, Ints]:
        """What answers carry at some ticks, where nothing was pending before.

        Gives the ticks that emit something, for each of them where its rows begin (and last, where they end), and the
        rows. Only for results that are kept as changes, or answered as they are: see `counts_changes`, `lists_bags`.
        """
        if self.lists_bags and isinstance(deltas, list) and all([delta.is_reset for delta in deltas]):
            return np.arange(tick_count), *self._list_resets(result, deltas)
        run = deltas if isinstance(deltas, DeltaRun) else DeltaRun.of_deltas(list(enumerate(deltas)), self._width)
        if self.lists_bags:
            return np.arange(tick_count), *self._list_bags(result, run, tick_count)
        net = run.select(run.net_places(-1 if self._operator is StreamOperator.DSTREAM else 1))
        is_first = np.ones(len(net), dtype=np.bool_)
        np.not_equal(net.ticks[1:], net.ticks[:-1], out=is_first[1:])
        starts = np.flatnonzero(is_first)
        return net.ticks[starts], np.append(starts, len(net)), net.rows

    def _list_resets(self, result: ResultState, deltas: list[Delta]) -> tuple[Ints, Ints]:
        """The whole result after each of some ticks that all begin anew: the rows that they add."""
        result.rows, result.counts, result.bag = deltas[-1].added, {}, None
        offsets = np.zeros(len(deltas) + 1, dtype=np.int64)
        np.cumsum([delta.added.shape[0] for delta in deltas], out=offsets[1:])
        return offsets, stack_rows([delta.added for delta in deltas], self._width)

    def order_tables(self, offsets: Ints, rows: Ints) -> list[list[object]]:
        """The terms of some tables of rows, each in order."""
        tables = [rows[low:high] for low, high in pairwise(offsets.tolist())]
        return cast("list[list[object]]", sort_tables(tables, self._vocabulary.sort_texts)) if tables else []

    def _encodes(self, count: int) -> bool:
        """Whether so many rows are emitted as ids: few are terms and in order sooner."""
        return self._can_encode and count > _FEW_ROWS

    def _emit_rows(self, rows: list[IdRow] | Ints) -> list[object] | EncodedRows:
        if not self._encodes(len(rows)):
            return cast("list[object]", sort_rows(rows, self._vocabulary.sort_texts)) if len(rows) else []
        return self._vocabulary.encode_rows(self._array(rows) if isinstance(rows, list) else rows)

    def _list_bags(self, result: ResultState, run: DeltaRun, tick_count: int) -> tuple[Ints, Ints]:
        """The whole result after each tick of a run: where the rows of each tick begin, and the rows."""
        if result.bag is None:
            result.bag = RowCounts(self._width)
            before = self._array(self._take_rows(result)) if result.rows is None else result.rows
            result.bag.change(before, 1)
            result.counts, result.rows = {}, None
        return result.bag.list_bags(run, tick_count)

    def pending(self, result: ResultState) -> Plain:
        """What the windows do not determine, for a result that may have changed since the last answer.

        As plain values: the rows that have changed and how much the count of each has, or the last answer.
        """
        if not self.counts_changes:
            return (None if self._operator is StreamOperator.RSTREAM else result.answered,)
        terms = self._vocabulary.terms_of_rows(self._array(list(result.counts)))
        return [list(terms), list(result.counts.values())]

    def restore(self, result: ResultState, pending: Plain = None) -> None:
        """Go on from what `pending` gave, with the rows in place; without it, from a result as it was answered."""
        if self.counts_changes:
            rows, counts = pending or ((), ())
            result.counts = dict(zip(_tuples(self._vocabulary.ids_of_rows(rows, self._width)), counts, strict=True))
        elif self._operator is not StreamOperator.RSTREAM:
            (result.answered,) = (self._whole(result),) if pending is None else pending

    def _take_rows(self, result: ResultState) -> list[IdRow]:
        """The rows that pass, each as often as it does; changes pass once."""
        counts: Iterable[int] = result.counts.values()
        if self._operator is StreamOperator.DSTREAM:
            counts = [-n for n in counts]
        rows = list(chain.from_iterable(map(repeat, result.counts, counts)))
        if self.counts_changes:
            result.counts = {}
        return rows

    def _whole(self, result: ResultState) -> list[object]:
        if self._is_ask:
            return [bool(result.counts)]
        rows = list(chain.from_iterable(map(repeat, result.counts, result.counts.values())))
        if self._make_result is not None:
            return self._make_result(self._array(rows))
        return cast("list[object]", sort_rows(rows, self._vocabulary.sort_texts)) if rows else []

    def _array(self, rows: list[IdRow]) -> Ints:
        return np.array(rows, dtype=np.int64).reshape(len(rows), self._width)


def _tuples(rows: Ints) -> Iterator[IdRow]:
    return map(tuple, rows.tolist())
