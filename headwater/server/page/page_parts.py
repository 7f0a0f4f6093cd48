"""Parts that several views share: cards, tables that change, numbers for people."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from nicegui import context, ui

from headwater.errors import HeadwaterError
from headwater.server.page.page_access import PageCell, PageTable
from headwater.terms.timestamps import format_time

if TYPE_CHECKING:
    from collections.abc import Iterator

_UNITS = (("GB", 1 << 30), ("MB", 1 << 20), ("kB", 1 << 10))
_SHOWN_ROWS = 25


def count_text(number: float | None) -> str:
    """A count for people, a dash where it is not known."""
    if number is None:
        return "—"
    return f"{number:,.0f}" if number == int(number) or abs(number) >= 100 else f"{number:,.1f}"


def bytes_text(size: int | None) -> str:
    """A size for people."""
    if size is None:
        return "—"
    for unit, factor in _UNITS:
        if size >= factor:
            return f"{size / factor:,.1f} {unit}"
    return f"{size} B"


def span_text(microseconds: int | None) -> str:
    """A length of time for people."""
    if microseconds is None:
        return "—"
    seconds = microseconds / 1_000_000
    if seconds < 1:
        return f"{seconds * 1000:,.0f} ms"
    if seconds < 120:
        return f"{seconds:,.1f} s"
    return f"{seconds / 60:,.0f} min" if seconds < 7200 else f"{seconds / 3600:,.1f} h"


def time_text(instant: int | None) -> str:
    """An instant for people, in UTC and to the millisecond."""
    if instant is None:
        return "—"
    return format_time(instant // 1000 * 1000).replace("T", " ").removesuffix("Z")


def cell_text(cell: PageCell) -> str:
    """A value of a table as text."""
    if cell is None:
        return ""
    if isinstance(cell, bool):
        return "true" if cell else "false"
    return f"{cell:,.6g}" if isinstance(cell, float) else str(cell)


@contextmanager
def card(title: str = "", classes: str = "") -> Iterator[None]:
    """A surface with a title."""
    with ui.column().classes(f"hw-card {classes}"):
        if title:
            ui.label(title).classes("hw-title").props("role=heading aria-level=2")
        yield


def link_href(path: str) -> str:
    """The address of a path of the page, for links that are written by hand."""
    request = context.client.request
    root = str(request.scope.get("root_path", "")) if request is not None else ""
    return f"{root}{path}"


def show_error(error: BaseException) -> None:
    """Say what went wrong, until it is dismissed."""
    ui.notify(str(error), type="negative", multi_line=True, timeout=0, close_button="Close", classes="hw-notice")


async def attempt(action: Awaitable[Any], done: str = "") -> bool:
    """Do something that may fail in a way that people should know; whether it was done."""
    try:
        await action
    except (HeadwaterError, OSError) as error:
        show_error(error)
        return False
    if done:
        ui.notify(done, type="positive", timeout=2500)
    return True


class LiveTable:
    """A table whose rows are replaced when they have changed; at most so many are sent to the browser."""

    def __init__(self, columns: Sequence[dict[str, Any]] = (), *, empty: str = "Nothing yet", rows: int = _SHOWN_ROWS):
        self.table = ui.table(columns=list(columns), rows=[], row_key="row", pagination=rows)
        self.table.classes("hw-table").props(f'flat dense no-data-label="{empty}" hide-selected-banner')
        self._shown: object = None
        self._columns: tuple[str, ...] | None = None
        self._rows_per_page = rows

    def show_rows(self, rows: list[dict[str, Any]]) -> None:
        """Show rows by the names of the columns; nothing is sent where they are as before."""
        if rows == self._shown:
            return
        self._shown = rows
        self.table.props("hide-pagination" if len(rows) <= self._rows_per_page else "", remove="hide-pagination")
        self.table.update_rows([{**row, "row": number} for number, row in enumerate(rows)], clear_selection=False)

    def show(self, table: PageTable) -> None:
        """Show rows under the columns of a table."""
        if table.columns != self._columns:
            self._columns = table.columns
            self.table.columns = [_column(table, place) for place in range(len(table.columns))]
        self.show_rows([{f"c{place}": cell_text(cell) for place, cell in enumerate(row)} for row in table.rows])


def _column(table: PageTable, place: int) -> dict[str, Any]:
    cells = [row[place] for row in table.rows if row[place] is not None]
    is_number = bool(cells) and all(isinstance(cell, int | float) and not isinstance(cell, bool) for cell in cells)
    align = "right" if is_number else "left"
    return {"name": f"c{place}", "field": f"c{place}", "label": table.columns[place], "align": align, "sortable": True}


def named_column(name: str, label: str, *, right: bool = False, wide: bool = False) -> dict[str, Any]:
    """A column of a table with known columns; a `wide` one is left out on a phone."""
    hidden = "hw-wide" if wide else ""
    align = "right" if right else "left"
    return {
        "name": name,
        "field": name,
        "label": label,
        "align": align,
        "sortable": True,
        "classes": hidden,
        "headerClasses": hidden,
    }


LINK_SLOT = '<q-td :props="props"><a :href="props.row.href">{{ props.value }}</a></q-td>'
STATE_SLOT = """<q-td :props="props"><span :class="'hw-state hw-' + props.value">{{ props.value }}</span></q-td>"""
TROUBLE_SLOT = (
    """<q-td :props="props"><span :class="props.value === '0' ? '' : 'hw-iswarn'">{{ props.value }}</span></q-td>"""
)
CHANGE_SLOT = (
    """<q-td :props="props"><span :class="props.value === '+' ? 'hw-entered' : 'hw-left'">"""
    "{{ props.value }}</span></q-td>"
)


class LiveView:
    """A view that asks for news as long as it is open and can be seen."""

    def __init__(self, seconds: float, refresh: Callable[[], Awaitable[None]]) -> None:
        self._refresh = refresh
        self._is_busy = False
        self._told = ""
        self.client = context.client
        self.timer = ui.timer(seconds, self._tick, immediate=True)

    async def _tick(self) -> None:
        if self._is_busy or not is_seen(self.client):
            return
        self._is_busy = True
        try:
            await self._refresh()
            self._told = ""
        except (HeadwaterError, OSError) as error:
            # It may be over at the next look; until then it is said once.
            if str(error) != self._told:
                self._told = str(error)
                show_error(error)
        finally:
            self._is_busy = False


_HIDDEN: set[str] = set()
"""The ids of browser pages that are behind others now."""


def note_visibility(client_id: str, is_visible: bool) -> None:
    """Note whether a browser page can be seen."""
    if is_visible:
        _HIDDEN.discard(client_id)
    else:
        _HIDDEN.add(client_id)


def is_seen(client: Any) -> bool:
    """Whether somebody may see the page of a client."""
    return client.id not in _HIDDEN
