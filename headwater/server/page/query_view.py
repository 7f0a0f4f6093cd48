"""A query: its answers as they come, as a picture and as a table, what changed, its plan, its windows, and why."""

from __future__ import annotations

import asyncio
from collections import deque

from nicegui import background_tasks, context, ui

from headwater.errors import HeadwaterError
from headwater.server.page.answer_charts import ChartKind, MapExtent, chart_options, possible_charts
from headwater.server.page.answer_differences import compare_answers
from headwater.server.page.page_access import PageAccess, PageAnswer, PageCell, PageQuery, PageTable, QueryState
from headwater.server.page.page_parts import (
    CHANGE_SLOT,
    LiveTable,
    LiveView,
    attempt,
    bytes_text,
    card,
    count_text,
    show_error,
    span_text,
    time_text,
)
from headwater.server.page.query_tabs import PlanTab, WhyTab, WindowsTab
from headwater.server.page.share_links import edit_path
from headwater.terms.names import iri_to_name

_REFRESH_SECONDS = 0.5
_STATUS_EVERY = 2
"""The state of the query is asked for at every second look."""
_KEPT_ANSWERS, _LISTED_CHANGES = 300, 100
_CHART_NAMES = {ChartKind.MAP: "Map", ChartKind.LINES: "Over time", ChartKind.BARS: "Bars"}


class QueryView:
    """One query, twice a second while its view is open."""

    def __init__(self, access: PageAccess, name: str) -> None:
        self._access = access
        self._name = name
        self._answers: deque[PageAnswer] = deque(maxlen=_KEPT_ANSWERS)
        self._changes: deque[tuple[PageCell, ...]] = deque(maxlen=_LISTED_CHANGES)
        """What entered and what left, the newest first."""
        self._shown: PageAnswer | None = None
        self._looks = 0
        self._state: QueryState | None = None
        self._extent = MapExtent()
        self._chosen: ChartKind | None = None
        self._possible: tuple[ChartKind, ...] = ()
        with ui.column().classes("hw-view"):
            self._draw_head()
            with ui.tabs().classes("hw-tabs").props("align=left dense no-caps inline-label") as tabs:
                for label in ("Answers", "Plan", "Windows", "Why", "Text"):
                    ui.tab(label)
            self._tabs = tabs
            with ui.tab_panels(tabs, value="Answers", animated=False).classes("hw-fill"):
                with ui.tab_panel("Answers"):
                    self._draw_answers()
                with ui.tab_panel("Plan"):
                    self._plan = PlanTab(access, name, self._newest)
                with ui.tab_panel("Windows"):
                    self._windows = WindowsTab(access, name, self._newest)
                with ui.tab_panel("Why"):
                    self._why = WhyTab(access, name, self._newest)
                with ui.tab_panel("Text"), card():
                    self._text = ui.label("").classes("hw-pre")
            tabs.on_value_change(self._open_tab)
        self._reader = background_tasks.create(self._read_answers(), name=f"answers of {name}")
        view = LiveView(_REFRESH_SECONDS, self._refresh)
        client = context.client
        client.on_delete(lambda: self._reader.cancel())
        self._timer = view.timer

    def _draw_head(self) -> None:
        with ui.element("div").classes("hw-line"):
            ui.label(iri_to_name(self._name)).classes("hw-heading").props("role=heading aria-level=1")
            self._status = ui.label("").classes("hw-state").props("role=status")
            ui.element("div").classes("hw-space hw-break")
            self._pause = ui.button("Pause", icon="pause", on_click=self._pause_or_resume).props(
                "outline no-caps dense"
            )
            edit = ui.button("Edit", icon="edit", on_click=lambda: ui.navigate.to(edit_path(self._name)))
            edit.props("outline no-caps dense")
            ui.button("Drop", icon="delete", on_click=self._ask_to_drop).props("outline no-caps dense color=negative")
        self._reason = ui.label("").classes("hw-trouble hw-failure").props("role=alert")
        self._reason.set_visibility(False)
        self._counts = ui.label("").classes("hw-quiet hw-small")
        with ui.dialog() as self._dialog, ui.card().classes("hw-card"):
            ui.label(f"Drop {iri_to_name(self._name)}?").classes("hw-title")
            ui.label("Its answers end, and what it remembers is lost.").classes("hw-quiet")
            with ui.row().classes("justify-end hw-fill"):
                ui.button("Keep it", on_click=self._dialog.close).props("flat no-caps")
                ui.button("Drop it", on_click=self._drop).props("no-caps unelevated color=negative")

    def _draw_answers(self) -> None:
        with ui.column().classes("hw-view"):
            with card():
                with ui.element("div").classes("hw-line"):
                    self._chart_title = ui.label("Waiting for the first answer …").classes("hw-title")
                    ui.element("div").classes("hw-space")
                    self._kinds = ui.toggle({}, on_change=lambda event: self._choose(event.value))
                    self._kinds.props("dense no-caps unelevated size=sm").set_visibility(False)
                self._chart = ui.echart(chart_options(ChartKind.LINES, [])).classes("hw-chart")
            with ui.element("div").classes("hw-split"):
                with card():
                    with ui.element("div").classes("hw-line"):
                        ui.label("Newest answer").classes("hw-title")
                        self._moment = ui.label("").classes("hw-quiet hw-small")
                    self._rows = LiveTable(empty="No rows", rows=12)
                    self._left_out = ui.label("").classes("hw-quiet hw-small")
                with card("What entered and what left"):
                    self._changed = LiveTable(empty="Nothing changed yet", rows=12)
                    self._changed.table.add_slot("body-cell-c0", CHANGE_SLOT)

    async def _read_answers(self) -> None:
        """Take the answers as they come; the view looks at them twice a second."""
        before: PageAnswer | None = None
        try:
            async for answer in self._access.answers(self._name):
                self._answers.append(answer)
                if answer.suspended:
                    continue
                difference = compare_answers(before, answer)
                before = answer
                moment = time_text(answer.time)
                changed = [("+", moment, *row) for row in difference.entered]
                changed += [("−", moment, *row) for row in difference.left]
                self._changes.extendleft(reversed(changed[:_LISTED_CHANGES]))
        except HeadwaterError:
            # That there is no such query is said by the head of the view.
            return

    def _newest(self) -> PageAnswer | None:
        return self._shown

    async def _refresh(self) -> None:
        if self._looks % _STATUS_EVERY == 0:
            await self._show_status()
        self._looks += 1
        newest = next((one for one in reversed(self._answers) if not one.suspended), None)
        if newest is None or newest is self._shown:
            return
        self._shown = newest
        if self._tabs.value == "Answers":
            self._show_answers(newest)
        elif self._tabs.value == "Windows":
            await self._windows.refresh()

    async def _show_status(self) -> None:
        overview = await self._access.overview()
        query = next((one for one in overview.queries if one.name == self._name), None)
        if query is None:
            self._timer.deactivate()
            self._reason.set_text(f"There is no query {iri_to_name(self._name)}; it may have been dropped.")
            self._reason.set_visibility(True)
            self._pause.set_enabled(False)
            return
        failure = overview.failure or (query.reason if query.state is QueryState.SUSPENDED else "")
        self._reason.set_text(failure)
        self._reason.set_visibility(bool(failure))
        self._text.set_text(query.text)
        self._counts.set_text(_counts_text(query))
        if query.state is not self._state:
            self._state = query.state
            self._status.set_text(query.state.value)
            self._status.classes(f"hw-{query.state.value}", remove="hw-running hw-paused hw-suspended")
            is_running = query.state is QueryState.RUNNING
            self._pause.set_text("Pause" if is_running else "Resume")
            self._pause.props(f"icon={'pause' if is_running else 'play_arrow'}")

    def _show_answers(self, newest: PageAnswer) -> None:
        answers = list(self._answers)
        self._show_chart(answers)
        incomplete = () if newest.is_complete else ("its windows did not hold everything yet",)
        self._moment.set_text("  ·  ".join((f"{time_text(newest.time)} UTC", *incomplete, *newest.remarks)))
        self._rows.show(newest.table)
        self._left_out.set_text(f"{newest.table.left_out:,} rows more" if newest.table.left_out else "")
        self._changed.show(PageTable(("±", "time", *newest.table.columns), tuple(self._changes)))

    def _show_chart(self, answers: list[PageAnswer]) -> None:
        filled = [one for one in answers if one.table.rows]
        possible = possible_charts(filled[-1].table) if filled else (ChartKind.LINES,)
        if possible != self._possible:
            self._possible = possible
            self._chosen = possible[0]
            self._kinds.set_options({kind.value: _CHART_NAMES[kind] for kind in possible}, value=possible[0].value)
            self._kinds.set_visibility(len(possible) > 1)
        kind = self._chosen or possible[0]
        self._chart_title.set_text(_CHART_NAMES[kind])
        options = chart_options(kind, [one for one in answers if not one.suspended], self._extent)
        self._chart.options.clear()
        self._chart.options.update(options)
        self._chart.update()

    def _choose(self, value: str | None) -> None:
        if value is not None and ChartKind(value) is not self._chosen:
            self._chosen = ChartKind(value)
            self._show_chart(list(self._answers))

    async def _open_tab(self) -> None:
        """A view that is opened shows what is so now."""
        opened = self._tabs.value
        try:
            if opened == "Plan":
                await self._plan.refresh()
            elif opened == "Windows":
                await self._windows.refresh()
            elif opened == "Answers" and self._shown is not None:
                self._show_answers(self._shown)
        except HeadwaterError as error:
            show_error(error)

    async def _pause_or_resume(self) -> None:
        if self._state is QueryState.RUNNING:
            await attempt(self._access.pause(self._name))
        else:
            await attempt(self._access.resume(self._name))
        await self._show_status()

    def _ask_to_drop(self) -> None:
        self._dialog.open()

    async def _drop(self) -> None:
        self._dialog.close()
        await asyncio.sleep(0)
        if await attempt(self._access.drop(self._name)):
            ui.navigate.to("/")


def _counts_text(query: PageQuery) -> str:
    """The counts of a query in one line."""
    parts = [
        query.dialect,
        f"reads {', '.join(query.streams) or 'nothing yet'}",
        f"{count_text(query.ticks)} answers",
        f"{count_text(query.rows)} rows",
        f"lag {span_text(query.lag)}",
        f"{count_text(query.state_rows)} triples in windows ({bytes_text(query.state_bytes)})",
        f"evaluated by the {query.evaluator} in {count_text(query.seconds)} s",
    ]
    return "  ·  ".join(parts)
