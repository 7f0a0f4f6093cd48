"""A plan evaluated by following the differences: what entered the windows, what left them, what that changes.

The durable state is the log of the windows (the items that are still in view or to come) with the terms of their ids;
everything else is derived from it, and a restored evaluator derives it again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
from pyoxigraph import Store

from headwater.algebra.plan import QueryKind, QueryPlan
from headwater.kernel.buffers import TripleBuffer
from headwater.kernel.compiling import Compiler, NotForTheKernel
from headwater.kernel.delta import Delta, no_rows
from headwater.kernel.index import Ints
from headwater.kernel.operator import Operator
from headwater.kernel.vocabulary import Vocabulary
from headwater.language.stream_clauses import StreamOperator
from headwater.reference.answers import WindowView
from headwater.reference.ordering import row_text
from headwater.reference.ticking import Evaluator, StreamKey
from headwater.terms.model import Element, Row, Term
from headwater.windows import Content, CountWindow, QuerySettings, Report, Ticker, emitted

DEFAULT_CAP = 20_000_000
"""How many triples a window may hold before the evaluator says that it needs a bound."""


@dataclass
class KernelState:
    """What outlives the process."""

    ticker: Ticker
    waiting: dict[StreamKey, list[Element]]
    buffers: list[TripleBuffer]
    terms: dict[int, Term]
    answered_once: bool


class KernelEvaluator(Evaluator):
    """Evaluates one plan incrementally; `NotForTheKernel` where it cannot."""

    def __init__(self, plan: QueryPlan, settings: QuerySettings, static: Store, *, cap: int = DEFAULT_CAP) -> None:
        super().__init__(plan, settings)
        if plan.kind is QueryKind.DESCRIBE:
            raise NotForTheKernel("DESCRIBE")
        self.vocabulary = Vocabulary()
        compiler = Compiler(plan, settings, static, self.vocabulary)
        self.root: Operator
        self.root, self._presenter = compiler.compile()
        self._clock = compiler.clock
        self._sources = compiler.sources
        self._buffers = [TripleBuffer(window, cap) for window in settings.windows]
        watched = settings.windows if settings.report is Report.CHANGE else ()
        self._contents: list[Counter[tuple[int, ...]]] = [Counter() for _ in watched]
        shown = list(range(len(self.root.variables)))
        columns = shown if self._presenter else [self.root.variables.index(v.value) for v in plan.variables]
        self._columns = None if columns == shown else columns
        self._presented: list[object] = []
        only_change = settings.emit is not StreamOperator.RSTREAM
        self._follows_change = only_change and self._presenter is None and plan.kind is not QueryKind.ASK
        self._counts: dict[tuple[int, ...], int] = {}
        """How often each row is in the result, or how much more often than at the last tick that was reported."""
        self._verdict: bool | None = None

    def _add(self, number: int, elements: Sequence[Element]) -> Sequence[int]:
        if not elements:
            return ()
        buffer = self._buffers[number]
        id_of = self.vocabulary.id_of
        items = [
            (e.time, [(id_of(t.subject), id_of(t.predicate), id_of(t.object)) for t in e.triples])
            for e in self._ordered(buffer, elements)
        ]
        if isinstance(buffer.definition, CountWindow) and buffer.definition.unit == "triples":
            items = [(time, [triple]) for time, triples in items for triple in triples]
        times = [time for time, _ in items]
        flat = [triple for _, triples in items for triple in triples]
        buffer.add(times, [len(triples) for _, triples in items], np.array(flat, dtype=np.int64).reshape(-1, 3))
        return times

    def _ordered(self, buffer: TripleBuffer, elements: Sequence[Element]) -> Sequence[Element]:
        """Items of one instant in the order of their text, where a window counts them."""
        window = buffer.definition
        if not isinstance(window, CountWindow):
            return elements
        if window.unit == "elements":
            return sorted(elements, key=lambda e: (e.time, "\n".join(sorted(map(str, e.triples)))))
        single = [Element(e.time, (t,)) for e in elements for t in e.triples]
        return sorted(single, key=lambda e: (e.time, str(e.triples[0])))

    def _closings(self, tick: int) -> int:
        return max(buffer.closings(tick) for buffer in self._buffers)

    def _move(self, tick: int, part: int) -> bool:
        self._clock.tick += 1
        changed = False
        for number, buffer in enumerate(self._buffers):
            delta = buffer.move(tick, part)
            self._sources[number].delta = delta
            if self._contents and not delta.is_empty:
                changed |= self._content_changed(number, delta)
        self._follow(self.root.advance())
        if self.vocabulary.wants_sweep:
            self.vocabulary.sweep(self._used())
        return changed

    def _content_changed(self, number: int, delta: Delta) -> bool:
        content = self._contents[number]
        net = Counter(map(tuple, delta.added.tolist()))
        net.subtract(map(tuple, delta.removed.tolist()))
        changed = False
        for triple, difference in net.items():
            if difference:
                before, after = content[triple], content[triple] + difference
                content[triple] = after
                if not after:
                    del content[triple]
                changed |= self.settings.content is Content.BAG or (before == 0) != (after == 0)
        return changed

    def _follow(self, delta: Delta) -> None:
        """Count the rows that are asked for: the result, or its net change since the last tick that was reported."""
        if delta.is_empty:
            return
        counts = self._counts
        for rows, difference in ((delta.added, 1), (delta.removed, -1)):
            if not rows.shape[0]:
                continue
            for row in map(tuple, self._shown(rows)):
                count = counts.get(row, 0) + difference
                if count:
                    counts[row] = count
                else:
                    del counts[row]

    def _shown(self, rows: Ints) -> list[list[int]]:
        listed: list[list[int]] = (rows if self._columns is None else rows[:, self._columns]).tolist()
        return listed

    def _holds_something(self) -> bool:
        return any(not buffer.is_empty for buffer in self._buffers)

    def _said(self, tick: int) -> list[object]:
        if self.plan.kind is QueryKind.ASK:
            return self._verdict_said()
        if self._presenter is not None:
            before, self._presented = self._presented, list(self._presenter.rows(self._rows()))
            return emitted(self.settings.emit, self._presented, before)
        sign = -1 if self.settings.emit is StreamOperator.DSTREAM else 1
        term_of = self.vocabulary.term_of
        rows: list[Row] = []
        for ids, n in self._counts.items():
            if n * sign > 0:
                rows.extend([tuple([term_of(i) for i in ids])] * (n * sign))
        if len(rows) > 1:
            rows.sort(key=row_text)
        if self._follows_change:
            self._counts.clear()
        return cast("list[object]", rows)

    def _rows(self) -> Ints:
        """The result as rows of ids, each as often as it is there."""
        rows = [row for row, n in self._counts.items() for _ in range(n)]
        return np.array(rows, dtype=np.int64).reshape(len(rows), len(self.root.variables))

    def _verdict_said(self) -> list[object]:
        before, self._verdict = self._verdict, bool(self._counts)
        match self.settings.emit:
            case StreamOperator.ISTREAM:
                return [] if before == self._verdict else [self._verdict]
            case StreamOperator.DSTREAM:
                return [] if before is None or before == self._verdict else [before]
        return [self._verdict]

    def _views(self, tick: int) -> tuple[WindowView, ...]:
        pairs = zip(self._buffers, self.plan.windows, strict=True)
        return tuple(buffer.view(source.label, tick) for buffer, source in pairs)

    def _used(self) -> Iterator[Ints]:
        """Every array of ids that is still in use."""
        for buffer in self._buffers:
            yield buffer.ids
        yield np.array([i for row in self._counts for i in row], dtype=np.int64)
        waiting = [self.root]
        while waiting:
            operator = waiting.pop()
            yield from operator.ids()
            waiting.extend(operator.inputs)

    def state(self) -> KernelState:
        for buffer in self._buffers:
            buffer.trim()
        ids = {int(i) for buffer in self._buffers for i in np.unique(buffer.ids)}
        terms = {i: term for i in ids if (term := self.vocabulary.term_of(i)) is not None}
        return KernelState(self.ticker, self.waiting, self._buffers, terms, self.answered_once)

    def restore(self, state: KernelState) -> None:
        self.ticker, self.waiting, self.answered_once = state.ticker, state.waiting, state.answered_once
        for term in state.terms.values():
            self.vocabulary.id_of(term)
        self._buffers = state.buffers
        self._clock.tick += 1
        for number, buffer in enumerate(self._buffers):
            self._sources[number].delta = Delta(buffer.shown, no_rows(3))
            if self._contents:
                self._content_changed(number, self._sources[number].delta)
        self._follow(self.root.advance())
        if self.ticker.answered is not None:
            self._verdict = bool(self._counts)
            self._presented = [] if self._presenter is None else list(self._presenter.rows(self._rows()))
        if self._follows_change:
            self._counts.clear()
