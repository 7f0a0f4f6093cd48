"""The windows of a plan at work: their buffers, and the leaves of the operators to which they give what changes.

Triples come in with `add`. At each tick `move` moves the views of all windows, and gives each leaf what entered and
what left. The operators above the leaves are advanced afterwards, by whoever owns them: those of one plan, or of
several plans over the same windows (`sharing`).
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import TypeVar

import numpy as np

from headwater.algebra.plan import QueryPlan
from headwater.execution.answer_columns import WindowViews
from headwater.execution.answers import WindowView
from headwater.kernel.columns.delta import UNBOUND, Delta
from headwater.kernel.columns.graph_rows import GraphRows
from headwater.kernel.columns.ring_index import Ints
from headwater.kernel.columns.vocabulary import Vocabulary
from headwater.kernel.columns.window_buffers import TripleBuffer
from headwater.kernel.operators.triple_patterns import TickClock, TripleSourceOperator
from headwater.terms.element_columns import ElementColumns
from headwater.terms.ids.hash_collisions import HashCollision
from headwater.windows.element_sequences import Elements
from headwater.windows.model import CountWindow
from headwater.windows.settings import Content, QuerySettings, Report

_Result = TypeVar("_Result")

_WORTH_A_RUN = 8
"""From so many ticks on they are taken in one step."""

_WORTH_A_RUN_OF_TRIPLES = 256
"""From so many triples on, fewer ticks are taken in one step, too."""

_LARGE_TICK = 1024
"""From so many triples for each tick on, a step goes through its ticks one by one: whole deltas are faster then."""

_MOST_TRIPLES_IN_A_RUN = 1 << 18
_MOST_ROWS_IN_A_RUN = 1 << 21
"""What a step may have to hold at a time: the triples that come, and the rows of whole results."""


class MovingWindows:
    """The windows of a plan. `connect` says which leaves read them, and whose clock counts their ticks."""

    def __init__(
        self, plan: QueryPlan, settings: QuerySettings, vocabulary: Vocabulary, *, has_times: bool, has_graphs: bool
    ) -> None:
        self._settings = settings
        self.labels = [source.label for source in plan.windows]
        self._vocabulary = vocabulary
        self._has_graphs = has_graphs
        self._graph_rows = GraphRows.of(plan, vocabulary)
        labelled = zip(settings.windows, self.labels, strict=True)
        self.buffers = [TripleBuffer(*one, settings.cap, has_times, has_graphs) for one in labelled]
        self.has_steps = any(isinstance(one, CountWindow) and one.step is not None for one in settings.windows)
        watched = settings.windows if settings.report is Report.CHANGE else ()
        self._contents: list[Counter[tuple[int, ...]]] = [Counter() for _ in watched]
        self._clock = TickClock()
        self._sources: Sequence[TripleSourceOperator] = ()
        self._viewed_at = -1
        """The tick of the clock at which `_views` were what the windows show."""
        self._views: tuple[WindowView, ...] = ()

    def connect(self, clock: TickClock, sources: Sequence[TripleSourceOperator]) -> None:
        """Give what changes to these leaves from now on, one for each window."""
        self._clock, self._sources = clock, sources
        self._viewed_at = -1

    def encode(self, elements: Elements, ids_in_use: Callable[[], Iterable[Ints]]) -> ElementColumns:
        """Elements as columns of ids, whose terms are known from now on."""
        if isinstance(elements, ElementColumns):
            self._without_unused_terms(lambda: self._vocabulary.add_texts(elements.texts), ids_in_use)
            return elements
        id_of = self._vocabulary.id_of_owner
        flat = self._without_unused_terms(
            lambda: [id_of(term) for element in elements for triple in element.triples for term in triple], ids_in_use
        )
        columns = ElementColumns.without_texts(elements, np.array(flat, dtype=np.int64).reshape(-1, 3))
        if self._graph_rows is None:
            return columns
        return self._without_unused_terms(lambda: columns.with_graphs_of(elements, self._vocabulary.id_of), ids_in_use)

    def _without_unused_terms(self, add: Callable[[], _Result], ids_in_use: Callable[[], Iterable[Ints]]) -> _Result:
        """Add terms of elements. Where one has the id of a term that is used no more, that one is forgotten before."""
        try:
            return add()
        except HashCollision:
            self._vocabulary.sweep(ids_in_use())
            return add()

    def add(self, window_index: int, elements: ElementColumns) -> ElementColumns:
        """Add elements in time order to a window; gives the items that they make."""
        buffer = self.buffers[window_index]
        if isinstance(buffer.definition, CountWindow) and buffer.definition.unit == "elements":
            elements = elements.select(elements.starts[1:] > elements.starts[:-1])
        if self._graph_rows is not None:
            elements = self._graph_rows.add_to(elements)
        if isinstance(buffer.definition, CountWindow):
            elements = self._counted_items(buffer.definition, elements)
        buffer.add(elements.times, elements.starts, elements.triples)
        return elements

    def _counted_items(self, window: CountWindow, elements: ElementColumns) -> ElementColumns:
        """The items that a window counts, those of one instant in the order of their text."""
        if window.unit == "triples":
            elements = elements.split_into_triples()
        if len(elements) < 2 or bool((elements.times[1:] > elements.times[:-1]).all()):
            return elements
        terms = self._vocabulary.terms_of_rows(elements.triples)
        texts = [" ".join(map(str, row[:3])) for row in terms]
        starts = elements.starts.tolist()
        graphs = ["\n".join(sorted(texts[low:high])) for low, high in pairwise(starts)]
        names = [str(row[3] or "") if len(row) > 3 else "" for row in terms]
        times = elements.times.tolist()
        order = sorted(range(len(elements)), key=lambda i: (times[i], graphs[i], names[starts[i]]))
        return elements.select(np.array(order, dtype=np.int64))

    def move(self, tick: int, closing: int) -> bool:
        """Move the windows to a tick; whether the content of one, where that is watched, is another one now."""
        self._clock.tick += 1
        self._clock.now = tick
        changed = False
        for index, buffer in enumerate(self.buffers):
            delta = buffer.move(tick, closing)
            self._sources[index].delta = delta
            if self._contents and not delta.is_empty:
                changed |= self._update_content(index, delta)
        return changed

    def move_run(self, ticks: list[int], instants: Ints) -> None:
        """Move the windows over many ticks in one step."""
        self._clock.tick += 1
        self._clock.run = ticks
        for source, buffer in zip(self._sources, self.buffers, strict=True):
            source.run = buffer.move_run(instants)
        self._clock.now = ticks[-1]

    def begin_unchanged_tick(self) -> None:
        """Begin a tick at which nothing enters or leaves a window."""
        self._clock.tick += 1
        for source in self._sources:
            source.clear()

    def load_contents(self, tick: int) -> None:
        """Begin a tick at which the whole content of each window enters, for operators that are new and empty."""
        self._clock.tick += 1
        self._clock.now = tick
        for source, buffer in zip(self._sources, self.buffers, strict=True):
            shown = buffer.triples
            source.delta = Delta(shown, shown[:0])

    def recount_contents(self) -> None:
        """Count what the windows show, where their content is watched."""
        for index in range(len(self._contents)):
            shown = self.buffers[index].triples
            self._update_content(index, Delta(shown, shown[:0]))

    def _update_content(self, index: int, delta: Delta) -> bool:
        """Count the triples of a window; whether its content, as set or bag, is another one now."""
        content = self._contents[index]
        net = Counter(self._content_keys(delta.added))
        net.subtract(self._content_keys(delta.removed))
        changed = False
        for triple, difference in net.items():
            if difference:
                before, after = content[triple], content[triple] + difference
                content[triple] = after
                if not after:
                    del content[triple]
                changed |= self._settings.content is Content.BAG or (before == 0) != (after == 0)
        return changed

    def _content_keys(self, rows: Ints) -> Iterator[tuple[int, ...]]:
        """What the content of a window is counted by: triples, and triples with the names of their graphs."""
        yield from map(tuple, rows[:, :3].tolist())
        if self._has_graphs:
            yield from map(tuple, rows[rows[:, 3] != UNBOUND, :4].tolist())

    def count_closings(self, tick: int) -> int:
        """How many times a count window closes at a tick, at least once."""
        return max(buffer.closings(tick) for buffer in self.buffers) if self.has_steps else 1

    def should_combine_ticks(self, due: list[int]) -> bool:
        """Whether to evaluate several of the due ticks in one step: there are many, or many triples come with them."""
        if len(due) >= _WORTH_A_RUN or not due:
            return bool(due)
        if sum([one.waiting_count for one in self.buffers]) < _WORTH_A_RUN_OF_TRIPLES:
            return False
        return sum([one.entering_until(due[-1]) for one in self.buffers]) >= _WORTH_A_RUN_OF_TRIPLES

    def has_large_ticks(self, ticks: list[int]) -> bool:
        """Whether so much comes with each of some ticks that whole deltas are faster than a step."""
        return sum([one.entering_until(ticks[-1]) for one in self.buffers]) >= _LARGE_TICK * len(ticks)

    def run_size(self, due: list[int], place: int, rows: int) -> int:
        """How many ticks are taken in one step from some place on; 0 if the next one has several closings.

        `rows` is how many a whole result has.
        """
        size = min(len(due) - place, max(_WORTH_A_RUN, _MOST_ROWS_IN_A_RUN // max(1, rows)))
        for buffer in self.buffers:
            end = buffer.instant_after(_MOST_TRIPLES_IN_A_RUN)
            if end is not None:
                size = min(size, max(1, bisect_right(due, end, place) - place))
        if self.has_steps:
            instants = np.array(due[place : place + size], dtype=np.int64)
            for buffer in self.buffers:
                size = min(size, buffer.count_single_closings(instants))
        return size

    def views(self, tick: int) -> tuple[WindowView, ...]:
        """What each window shows at a tick."""
        if self._viewed_at != self._clock.tick:
            self._views = tuple([buffer.view(tick) for buffer in self.buffers])
            self._viewed_at = self._clock.tick
        return self._views

    def record_run_views(self, instants: Ints) -> None:
        """Note what each window shows at some ticks that are taken one by one."""
        for buffer in self.buffers:
            buffer.record_run_views(instants)

    def run_views(self) -> tuple[WindowViews, ...]:
        """What each window showed at the ticks of the last run."""
        return tuple(
            WindowViews(label, *buffer.run_views) for label, buffer in zip(self.labels, self.buffers, strict=True)
        )

    @property
    def has_moved(self) -> bool:
        """Whether the operators that are connected have been given something."""
        return self._clock.tick > 0

    @property
    def is_empty(self) -> bool:
        """Whether no window shows anything."""
        return all(buffer.is_empty for buffer in self.buffers)

    @property
    def triple_count(self) -> int:
        """The number of triples that the windows show."""
        return sum(buffer.triple_count for buffer in self.buffers)

    @property
    def nbytes(self) -> int:
        """The memory of the buffers."""
        return sum(buffer.nbytes for buffer in self.buffers)
