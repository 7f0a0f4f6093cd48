"""The board of the demonstration: what each query said last, painted anew as answers come.

On a terminal the board stays in place. In a pipe each batch of answers is printed below the one before.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from headwater.algebra.plan import QueryKind, QueryPlan
from headwater.commands.answer_tables import cell_text
from headwater.commands.progress_line import progress_text
from headwater.execution.answers import Answer
from headwater.explain.notation import Notation
from headwater.running.progress import Progress
from headwater.terms.timestamps import format_time

_FEWEST_ROWS, _MOST_ROWS = 2, 6
_LINES_AROUND_ROWS = 5


@dataclass
class Panel:
    """The answers of one query: the newest rows, and those that were not printed yet."""

    heading: str
    columns: tuple[str, ...]
    notation: Notation
    newest: deque[tuple[str, ...]] = field(default_factory=lambda: deque(maxlen=_MOST_ROWS))
    fresh: list[tuple[str, ...]] = field(default_factory=list)

    @classmethod
    def of(cls, heading: str, plan: QueryPlan) -> Panel:
        """An empty panel for a query."""
        if plan.kind is QueryKind.SELECT:
            columns = tuple(variable.value for variable in plan.variables)
        else:
            columns = ("subject", "predicate", "object")
        return cls(heading, columns, Notation.of(plan))

    def add(self, answer: Answer) -> None:
        """The rows of an answer, each behind the time of day."""
        clock = format_time(answer.time).partition("T")[2].partition(".")[0].removesuffix("Z")
        rows = [(clock, *(cell_text(term, self.notation) for term in row)) for row in answer.table()[1]]
        if answer.kind is not QueryKind.SELECT:
            rows.sort()
        self.newest.extend(rows)
        self.fresh.extend(rows)

    def table(self, rows: Iterable[tuple[str, ...]]) -> RenderableType:
        """Some of the rows under the heading of the panel."""
        table = Table()
        for name in ("time", *self.columns):
            table.add_column(name, overflow="fold")
        for row in rows:
            table.add_row(*map(Text, row))
        return Group(Text(self.heading, style="bold"), table)


class Board:
    """All panels, and the counts below them."""

    def __init__(self, panels: dict[str, Panel], console: Console) -> None:
        self._panels = panels
        self._console = console
        self._counts = "starting …"
        self._live = Live(console=console, auto_refresh=False) if console.is_terminal else None

    def __enter__(self) -> Board:
        if self._live is not None:
            self._live.start()
            self._paint()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()

    def answer(self, answer: Answer) -> None:
        """Notes an answer; `progress` shows it."""
        self._panels[answer.query].add(answer)

    def progress(self, progress: Progress) -> None:
        """The end of a batch: shows what has come."""
        self._counts = progress_text(progress)
        if self._live is not None:
            self._paint()
            return
        fresh = [panel for panel in self._panels.values() if panel.fresh]
        for panel in fresh:
            self._console.print(panel.table(panel.fresh))
            panel.fresh.clear()

    def _paint(self) -> None:
        # What is higher than the terminal would be cut off.
        room = (self._console.height - 2) // max(1, len(self._panels)) - _LINES_AROUND_ROWS
        rows = min(_MOST_ROWS, max(_FEWEST_ROWS, room))
        parts = [panel.table(list(panel.newest)[-rows:]) for panel in self._panels.values()]
        if self._live is not None:
            self._live.update(Group(*parts, Text(self._counts, style="dim")), refresh=True)
