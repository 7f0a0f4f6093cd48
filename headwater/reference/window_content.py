"""What the windows of a query hold at a tick: the definition of window content, step by step.

A `WindowBuffer` keeps the items of one window in time order and moves a view over them. A tick never makes it look
back, so items that the view has left are forgotten.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from headwater.execution.answers import WindowView
from headwater.terms.model import BlankNode, Element, NamedNode, Triple
from headwater.terms.statements import graph_term
from headwater.terms.timed_graphs import missing_graph_time
from headwater.windows.caps import DEFAULT_CAP, check_cap
from headwater.windows.model import CountWindow, TimeWindow, Window


@dataclass(frozen=True, slots=True)
class WindowItem:
    """What a window counts: an element, or a single triple of one.

    `graph` is the named graph of its triples, if they have one. `outside` are triples that are in no named graph.
    """

    time: int
    triples: tuple[Triple, ...]
    graph: NamedNode | BlankNode | None = None
    outside: tuple[Triple, ...] = ()
    position: tuple[int, ...] = field(default=(), compare=False)
    """Where its element stands in the stream."""

    @property
    def size(self) -> int:
        return len(self.triples) + len(self.outside)

    @property
    def order(self) -> tuple[int, str, str]:
        """What orders items independently of their arrival: time, triples, name of the graph."""
        return self.time, canonical_text([*self.triples, *self.outside]), str(self.graph or "")


def canonical_text(triples: Iterable[Triple]) -> str:
    """A text that orders graphs of one instant independently of their arrival."""
    return "\n".join(sorted(map(str, triples)))


@dataclass
class WindowBuffer:
    """The items of one window, those in view and those still to come. `cap` bounds how many triples are in view."""

    definition: Window
    label: str = ""
    cap: int = DEFAULT_CAP
    has_graphs: bool = False
    """Whether the names of graphs are kept."""
    has_graph_times: bool = False
    """Whether each named graph comes with the statement that gives its time."""
    items: list[WindowItem] = field(default_factory=list)
    times: list[int] = field(default_factory=list)
    low: int = 0
    high: int = 0
    forgotten: int = 0
    """How many items were forgotten: positions in the stream are `forgotten` plus positions in the list."""
    triples: int = 0
    """How many triples are in view."""

    def add(self, elements: Iterable[Element]) -> list[int]:
        """Elements in time order; gives the timestamps of the items that they make."""
        if isinstance(self.definition, TimeWindow):
            added = [self._item(element) for element in elements]
        elif self.definition.unit == "elements":
            added = [self._item(element) for element in elements if element.triples]
            added.sort(key=lambda item: item.order)
        else:
            items = [self._item(element) for element in elements]
            added = [replace(item, triples=(triple,), outside=()) for item in items for triple in item.triples]
            added += [WindowItem(one.time, (triple,), position=one.position) for one in items for triple in one.outside]
            added.sort(key=lambda item: item.order)
        self.items.extend(added)
        times = [item.time for item in added]
        self.times.extend(times)
        return times

    def _item(self, element: Element) -> WindowItem:
        graph = graph_term(element.graph) if self.has_graphs and element.graph is not None else None
        outside = missing_graph_time(element) if self.has_graph_times else ()
        return WindowItem(element.time, element.triples, graph, outside, element.position)

    def closings(self, tick: int) -> int:
        """How often a stepped count window closes at this very instant; 1 for all others."""
        window = self.definition
        if not isinstance(window, CountWindow) or window.step is None:
            return 1
        before = (self.forgotten + bisect_left(self.times, tick)) // window.step
        return max(1, (self.forgotten + bisect_left(self.times, tick + 1)) // window.step - before)

    def move(self, tick: int, closing: int) -> tuple[list[WindowItem], list[WindowItem]]:
        """Move the view to a tick; gives the items that entered and those that left."""
        low, high = self._view(tick, closing)
        entered = self.items[max(self.high, low) : high]
        left = self.items[self.low : min(low, self.high)]
        self.low, self.high = low, high
        self.triples += sum(item.size for item in entered) - sum(item.size for item in left)
        check_cap(self.label, self.triples, self.cap)
        self._forget()
        return entered, left

    def _view(self, tick: int, closing: int) -> tuple[int, int]:
        window = self.definition
        if isinstance(window, TimeWindow):
            first, end = window.interval(tick)
            low, high = bisect_left(self.times, first), bisect_left(self.times, end)
        else:
            arrived = self.forgotten + bisect_left(self.times, tick + 1)
            if window.step is not None:
                closings = self.closings(tick)
                arrived -= arrived % window.step + (closings - 1 - min(closing, closings - 1)) * window.step
            high = arrived - self.forgotten
            low = max(0, high - window.size)
        return max(low, self.low), max(high, self.high)

    def _forget(self) -> None:
        # In large steps, because deleting from the front of a list moves the rest.
        if self.low > 256 and self.low > len(self.items) // 2:
            del self.items[: self.low], self.times[: self.low]
            self.forgotten += self.low
            self.high -= self.low
            self.low = 0

    def view(self, label: str, tick: int) -> WindowView:
        """What the view covers, for the record of an answer."""
        if isinstance(self.definition, TimeWindow):
            first, end = self.definition.interval(tick)
        else:
            shown = self.times[self.low : self.high] or [tick]
            first, end = shown[0], shown[-1] + 1
        return WindowView(label, first, end, self.high - self.low)

    def refill(self, elements: Iterable[Element], counted: int, tick: int | None) -> None:
        """Begin again with what was retained of `counted` items, the view at the last tick."""
        self.add(elements)
        self.forgotten = counted - len(self.items) if isinstance(self.definition, CountWindow) else 0
        if tick is not None:
            self.low, self.high = self._view(tick, self.closings(tick) - 1)
            self.triples = sum(item.size for item in self.shown)

    def needed_from(self, tick: int | None) -> int | None:
        """The time of the oldest item that can still be shown; None while that is any."""
        if tick is None:
            return None
        if isinstance(self.definition, TimeWindow):
            return self.definition.interval(tick)[0]
        return self.times[self.low] if self.low < len(self.times) else None

    @property
    def shown(self) -> list[WindowItem]:
        return self.items[self.low : self.high]
