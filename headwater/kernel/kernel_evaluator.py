"""A plan evaluated by following the differences: what entered the windows, what left them, what that changes.

The durable state is the log of the windows (`execution.window_log`); everything here is derived from it, and a
restored evaluator derives it again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from itertools import chain, pairwise, repeat
from typing import Any, cast

import numpy as np

from headwater.algebra.plan import QueryKind, QueryPlan
from headwater.execution.answers import WindowView
from headwater.execution.evaluator import Choice, Evaluator
from headwater.execution.static_data import StaticData
from headwater.execution.window_log import Size
from headwater.kernel.columns.delta import Delta
from headwater.kernel.columns.ordered_rows import sort_rows
from headwater.kernel.columns.ring_index import Ints
from headwater.kernel.columns.vocabulary import Vocabulary
from headwater.kernel.columns.window_buffers import TripleBuffer
from headwater.kernel.compiling.compiler import Compiler
from headwater.kernel.compiling.static_views import ViewData, texts_outside
from headwater.kernel.describe import Description
from headwater.kernel.join_measures import JoinMeasures, fix_orders, joins_of, operators, state_bytes
from headwater.kernel.operators.operator import Operator
from headwater.language.stream_clauses import StreamOperator
from headwater.terms.element_columns import ElementColumns
from headwater.terms.ids.encoded_rows import EncodedRows
from headwater.windows.element_sequences import Elements
from headwater.windows.model import CountWindow
from headwater.windows.settings import Content, QuerySettings, Report
from headwater.windows.stream_operators import emitted

_MOST_PASSED_OVER = 256
"""After so many ticks windows are moved on all the same, and forget what left them."""


class KernelEvaluator(Evaluator):
    """Evaluates one plan incrementally; `NotForTheKernel` where it cannot."""

    kind = "kernel"

    def __init__(self, plan: QueryPlan, settings: QuerySettings, static: StaticData) -> None:
        super().__init__(plan, settings)
        self._static = static
        self._may_follow = False
        self.vocabulary = Vocabulary(texts_outside(static))
        self._passed_over = 0
        """How many ticks were passed over since the windows were moved: see `_needed_windows`."""
        self.root: Operator
        is_timed = self._build()
        labelled = zip(settings.windows, (source.label for source in plan.windows), strict=True)
        self._buffers = [TripleBuffer(*one, settings.cap, has_times=is_timed) for one in labelled]
        self._has_steps = any(isinstance(one, CountWindow) and one.step is not None for one in settings.windows)
        watched = settings.windows if settings.report is Report.CHANGE else ()
        self._contents: list[Counter[tuple[int, ...]]] = [Counter() for _ in watched]
        shown = list(range(len(self.root.variables)))
        columns = shown if self._presenter else [self.root.variables.index(v.value) for v in plan.variables]
        self._columns = None if columns == shown else columns
        self._presented: list[object] = []
        self._description = Description(plan, static, self.vocabulary) if plan.kind is QueryKind.DESCRIBE else None
        only_change = settings.emit is not StreamOperator.RSTREAM
        whole = self._presenter is not None or plan.kind in (QueryKind.ASK, QueryKind.DESCRIBE)
        self._follows_change = only_change and not whole
        self._says_at_each_tick = settings.report not in (Report.CHANGE, Report.NONEMPTY)
        self._counts: dict[tuple[int, ...], int] = {}
        """How often each row is in the result, or how much more often than at the last tick that was reported."""
        self._fresh: Ints | None = None
        """The whole result where nobody had to count it: its rows are handed on as ids."""
        self._encodes = False
        self._verdict: bool | None = None
        self._is_said = True
        """Whether the last tick was reported: then all that was said before can be derived from the windows."""
        self._result_before: Ints | None = None

    @property
    def _passes_over(self) -> bool:
        """Whether ticks may be passed over: the only thing to say is what came, and silence where nothing did."""
        is_change = self.settings.emit is StreamOperator.ISTREAM and self._presenter is None
        is_plain = self.plan.kind in (QueryKind.SELECT, QueryKind.CONSTRUCT)
        return is_change and is_plain and self._is_silent_without_news and self.settings.report is Report.EAGER

    def _needed_windows(self, sources: Sequence[Operator]) -> list[int]:
        """The windows without which there is no result: while one of them is empty, nobody need look at the others."""
        return [number for number, source in enumerate(sources) if self.root.needs_rows_of(source)]

    def _catch_up(self) -> None:
        """Be where the last tick was, if it was passed over."""
        if self._passed_over:
            assert self.ticker.answered is not None
            self._moved(self.ticker.answered, 0)
            self._is_said = True

    def encode_rows(self) -> None:
        self._encodes = self.plan.kind is QueryKind.SELECT and self._presenter is None

    @property
    def joins(self) -> tuple[JoinMeasures, ...]:
        """Which ways the mappings took through each join, and which indexes are kept."""
        return joins_of(self.root)

    def choices(self) -> tuple[Choice, ...]:
        return tuple(asdict(join) for join in self.joins)

    def fix_orders(self) -> None:
        """Probe in the order of the plan from now on, for comparison."""
        fix_orders(self.root)

    def _build(self) -> bool:
        """Make the operators, with nothing in them; gives whether the windows have to tell when triples came."""
        compiler = self._compiler(self._static)
        compiler.static_parts.follows = self._may_follow
        self.root, self._presenter = compiler.compile()
        self._needed = self._needed_windows(compiler.sources) if self._passes_over else []
        self._is_following = self._may_follow and isinstance(self._static, ViewData) and not compiler.is_fixed
        self.vocabulary.pin_terms()
        self._clock = compiler.clock
        self._sources = compiler.sources
        return compiler.is_timed

    def _follow_static_data(self) -> None:
        """Take the differences of views in, while the windows stay as they are."""
        if self.ticker.answered is None:
            # Nothing was asked yet, and the views are given as they are when it is.
            return
        self._is_said = False
        self._clock.tick += 1
        self._follow(self.root.advance())

    def _derived(self) -> Delta:
        """What follows from what the windows show, for operators that have nothing in them."""
        assert self.ticker.answered is not None
        self._clock.tick += 1
        self._clock.now = self.ticker.answered
        for number, buffer in enumerate(self._buffers):
            shown = buffer.triples
            self._sources[number].delta = Delta(shown, shown[:0])
        return self.root.advance()

    def static_will_change(self) -> None:
        self._catch_up()
        if not self._is_following and self._follows_change and self.ticker.answered is not None:
            self._build()
            self._result_before = self._derived().added

    def static_changed(self) -> None:
        """Data that changed once may change again: from now on its differences come in like those of the windows.

        Before, joins read views where they are, and let in only what has a partner there.
        """
        self._catch_up()
        if self._is_following:
            self._follow_static_data()
            return
        self._may_follow = True
        self._build()
        if self.ticker.answered is None:
            return
        # What was said before does not follow from the data any more.
        self._is_said = False
        now = self._derived().added
        if self._result_before is None:
            self._follow(Delta(now, now[:0], is_reset=True))
        else:
            self._follow(Delta(now, self._result_before))
            self._result_before = None

    def _compiler(self, static: StaticData) -> Compiler:
        """What makes the operators of the plan."""
        return Compiler(self.plan, self.settings, static, self.vocabulary)

    def _converted(self, elements: Elements) -> ElementColumns:
        if isinstance(elements, ElementColumns):
            self.vocabulary.add_texts(elements.texts)
            return elements
        id_of = self.vocabulary.id_of
        flat = [id_of(term) for element in elements for triple in element.triples for term in triple]
        return ElementColumns.without_texts(elements, np.array(flat, dtype=np.int64).reshape(-1, 3))

    def _add(self, number: int, elements: ElementColumns) -> Ints:
        buffer = self._buffers[number]
        if isinstance(buffer.definition, CountWindow):
            elements = self._counted(buffer.definition, elements)
        buffer.add(elements.times, elements.starts, elements.triples)
        return elements.times

    def _counted(self, window: CountWindow, elements: ElementColumns) -> ElementColumns:
        """The items that a window counts, those of one instant in the order of their text."""
        if window.unit == "triples":
            elements = elements.triple_by_triple()
        if len(elements) < 2 or bool((elements.times[1:] > elements.times[:-1]).all()):
            return elements
        texts = [" ".join(map(str, row)) for row in self.vocabulary.terms_of_rows(elements.triples)]
        starts = elements.starts.tolist()
        graphs = ["\n".join(sorted(texts[low:high])) for low, high in pairwise(starts)]
        times = elements.times.tolist()
        order = sorted(range(len(elements)), key=lambda i: (times[i], graphs[i]))
        return elements.picked(np.array(order, dtype=np.int64))

    def _refill(self, number: int, elements: ElementColumns) -> None:
        self._add(number, elements)
        self._buffers[number].refill(self.ticker.count(number), self.ticker.answered)

    def needed_from(self, number: int) -> int | None:
        return self._buffers[number].needed_from(self.ticker.answered)

    def size(self) -> Size:
        self._catch_up()
        rows = sum(buffer.triple_count for buffer in self._buffers)
        held = sum(buffer.nbytes for buffer in self._buffers)
        return Size(rows, held + state_bytes(self.root))

    def _closings(self, tick: int) -> int:
        if not self._has_steps:
            return 1
        return max(buffer.closings(tick) for buffer in self._buffers)

    def _move(self, tick: int, part: int) -> bool:
        if self._needed and self._passed_over < _MOST_PASSED_OVER:
            for number in self._needed:
                if self._buffers[number].is_empty_at(tick):
                    self._passed_over += 1
                    return False
        return self._moved(tick, part)

    def _moved(self, tick: int, part: int) -> bool:
        """Move the windows and follow what changes."""
        self._clock.tick += 1
        self._clock.now = tick
        self._is_said = False
        changed = False
        for number, buffer in enumerate(self._buffers):
            delta = buffer.move(tick, part)
            self._sources[number].delta = delta
            if self._contents and not delta.is_empty:
                changed |= self._content_changed(number, delta)
        delta = self.root.advance()
        if self._passed_over:
            # All that there was went at a tick that was passed over.
            self._passed_over = 0
            delta = Delta(delta.added, delta.added[:0])
        if not self._is_unheard(delta):
            self._follow(delta)
        if self.vocabulary.needs_sweep:
            self.vocabulary.sweep(self._used())
        return changed

    def _content_changed(self, number: int, delta: Delta) -> bool:
        content = self._contents[number]
        net = Counter(map(tuple, delta.added[:, :3].tolist()))
        net.subtract(map(tuple, delta.removed[:, :3].tolist()))
        changed = False
        for triple, difference in net.items():
            if difference:
                before, after = content[triple], content[triple] + difference
                content[triple] = after
                if not after:
                    del content[triple]
                changed |= self.settings.content is Content.BAG or (before == 0) != (after == 0)
        return changed

    def _is_unheard(self, delta: Delta) -> bool:
        """Whether the streaming operator lets nothing of a tick through, and no later one needs to know of it."""
        if not self._follows_change or not self._says_at_each_tick or self._counts:
            return False
        heard = delta.removed if self.settings.emit is StreamOperator.DSTREAM else delta.added
        return not heard.shape[0]

    def _follow(self, delta: Delta) -> None:
        """Count the rows that are asked for: the result, or its net change since the last tick that was reported."""
        if delta.is_empty:
            return
        if delta.is_reset and not self._follows_change:
            if self._encodes:
                self._fresh, self._counts = self._asked_for(delta.added), {}
            else:
                self._counts = Counter(map(tuple, self._shown(delta.added)))
            return
        if self._fresh is not None:
            self._counts, self._fresh = Counter(map(tuple, self._fresh.tolist())), None
        counts = self._counts
        if not counts and not delta.removed.shape[0]:
            once = dict.fromkeys(map(tuple, self._shown(delta.added)), 1)
            if len(once) == delta.added.shape[0]:
                self._counts = once
                return
        for rows, difference in ((delta.added, 1), (delta.removed, -1)):
            if not rows.shape[0]:
                continue
            for row in map(tuple, self._shown(rows)):
                count = counts.get(row, 0) + difference
                if count:
                    counts[row] = count
                else:
                    del counts[row]

    def _asked_for(self, rows: Ints) -> Ints:
        """The columns that are shown."""
        return rows if self._columns is None else rows[:, self._columns]

    def _shown(self, rows: Ints) -> list[list[int]]:
        listed: list[list[int]] = self._asked_for(rows).tolist()
        return listed

    def _holds_something(self) -> bool:
        return any(not buffer.is_empty for buffer in self._buffers)

    def _said(self, tick: int) -> list[object] | EncodedRows:
        self._is_said = True
        if self._fresh is not None:
            return self.vocabulary.encode_rows(self._fresh)
        if self.plan.kind is QueryKind.ASK:
            return self._verdict_said()
        if self._presenter is not None or self._description is not None:
            before, self._presented = self._presented, self._whole()
            return emitted(self.settings.emit, self._presented, before)
        times: Iterable[int] = self._counts.values()
        if self.settings.emit is StreamOperator.DSTREAM:
            times = [-n for n in times]
        said = list(chain.from_iterable(map(repeat, self._counts, times)))
        if self._follows_change:
            self._counts.clear()
        if self._encodes:
            rows = np.array(said, dtype=np.int64).reshape(len(said), len(self.plan.variables))
            return self.vocabulary.encode_rows(rows)
        return cast("list[object]", sort_rows(said, self.vocabulary)) if said else []

    def _whole(self) -> list[object]:
        """The result where it is more than a bag of rows: in the order that the query asks for, or described."""
        rows = self._rows()
        if self._description is not None:
            return list(self._description.triples(rows, [buffer.triples[:, :3] for buffer in self._buffers]))
        assert self._presenter is not None
        return list(self._presenter.present(rows))

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
        return tuple([buffer.view(tick) for buffer in self._buffers])

    def _used(self) -> Iterator[Ints]:
        """Every array of ids that is still in use."""
        for buffer in self._buffers:
            yield buffer.ids
        yield np.array([i for row in self._counts for i in row], dtype=np.int64)
        if self._fresh is not None:
            yield self._fresh
        for operator in operators(self.root):
            yield from operator.ids()

    def _memory(self) -> object:
        if self._is_said:
            return None
        if not self._follows_change:
            return self._verdict, self._presented
        return list(zip(self.vocabulary.terms_of_rows(self._change()), self._counts.values(), strict=True))

    def _change(self) -> Ints:
        """The rows that are there more often, or less often, than at the last tick that was reported."""
        return np.array(list(self._counts), dtype=np.int64).reshape(len(self._counts), len(self.plan.variables))

    def _recall(self, memory: Any) -> None:
        if self.ticker.answered is None:
            return
        self._follow(self._derived())
        for number in range(len(self._contents)):
            shown = self._buffers[number].triples
            self._content_changed(number, Delta(shown, shown[:0]))
        if self._follows_change:
            changed = self.vocabulary.ids_of_rows((row for row, _ in memory or ()), len(self.plan.variables))
            self._counts = dict(zip(map(tuple, changed.tolist()), (n for _, n in memory or ()), strict=True))
        elif memory is not None:
            self._verdict, self._presented = memory
        else:
            self._verdict = bool(self._counts)
            if self._presenter is not None or self._description is not None:
                self._presented = self._whole()
        self._is_said = memory is None
