"""The tabs of a query that are asked for: its plan, what its windows hold, and how many solutions each step leaves."""

from __future__ import annotations

from collections.abc import Callable

from nicegui import ui
from nicegui.elements.button import Button
from nicegui.elements.label import Label
from nicegui.elements.mermaid import Mermaid

from headwater.errors import HeadwaterError
from headwater.server.page.page_access import PageAccess, PageAnswer, PageElement, PageQuery, PageWindow, WhyStep
from headwater.server.page.page_parts import LiveTable, card, count_text, show_error, span_text, time_text
from headwater.server.page.plan_rows import rows_graph

_MERMAID = {"theme": "neutral", "securityLevel": "strict", "fontFamily": "inherit", "flowchart": {"useMaxWidth": False}}


class NewestExplanation:
    """What explains the newest answer of a query: how many solutions each step of its plan has."""

    def __init__(self, access: PageAccess, name: str, newest: Callable[[], PageAnswer | None]) -> None:
        self._access = access
        self._name = name
        self._newest = newest

    async def ask(self, button: Button, moment: Label) -> tuple[WhyStep, ...] | None:
        """The steps; None where there is no answer. The button shows the waiting, the label the instant."""
        newest = self._newest()
        if newest is None:
            moment.set_text("There is no answer yet.")
            return None
        button.props("loading")
        try:
            steps = await self._access.why(self._name, newest.time)
        except (HeadwaterError, OSError) as error:
            show_error(error)
            return None
        finally:
            button.props(remove="loading")
        moment.set_text(f"At {time_text(newest.time)} UTC:")
        return steps


class PlanTab:
    """The plan as a graph, rows and time, what the joins chose, and the plan as text."""

    def __init__(self, access: PageAccess, name: str, newest: Callable[[], PageAnswer | None]) -> None:
        self._access = access
        self._name = name
        self._explanation = NewestExplanation(access, name, newest)
        self._rows: Mermaid | None = None
        with ui.column().classes("hw-view"):
            with card("Plan"), ui.element("div").classes("hw-plan"):
                self._graph: Mermaid | None = None
                self._place = ui.element("div")
            with card("Rows that enter and leave each operator"):
                with ui.element("div").classes("hw-line"):
                    self._time = ui.label("").classes("hw-quiet hw-small")
                    ui.element("div").classes("hw-space")
                    self._button = ui.button("Count at the newest answer", icon="functions", on_click=self._count)
                    self._button.props("outline no-caps dense")
                self._counted = ui.label("").classes("hw-small")
                self._rows_place = ui.element("div").classes("hw-plan")
            with card("Joins: what they chose as they ran"):
                self._joins = LiveTable(empty="No join has chosen anything yet")
            with card("As text"):
                self._text = ui.label("").classes("hw-pre hw-mono")

    async def refresh(self) -> None:
        """Ask for the plan anew."""
        plan = await self._access.plan(self._name)
        if self._graph is None:
            with self._place:
                self._graph = ui.mermaid(plan.mermaid, _MERMAID)
        elif self._graph.content != plan.mermaid:
            self._graph.content = plan.mermaid
        self._joins.show(plan.joins)
        self._text.set_text(plan.text)
        overview = await self._access.overview()
        query = next((one for one in overview.queries if one.name == self._name), None)
        self._time.set_text("" if query is None else tick_time_text(query))

    async def _count(self) -> None:
        steps = await self._explanation.ask(self._button, self._counted)
        if steps is None:
            return
        drawing = rows_graph(steps)
        if self._rows is None:
            with self._rows_place:
                self._rows = ui.mermaid(drawing, _MERMAID)
        else:
            self._rows.content = drawing


def tick_time_text(query: PageQuery) -> str:
    """How long the evaluation takes at each tick, all operators together."""
    if not query.ticks:
        return "Not evaluated yet"
    spent = span_text(round(query.seconds / query.ticks * 1_000_000))
    return f"{spent} at each of {count_text(query.ticks)} ticks, all operators together"


class WindowsTab:
    """What the windows held at the newest answer, how good it is, and which versions of the data it saw."""

    def __init__(self, access: PageAccess, name: str, newest: Callable[[], PageAnswer | None]) -> None:
        self._access = access
        self._name = name
        self._newest = newest
        self._known: tuple[tuple[PageWindow, ...], str] | None = None
        self._place = ui.column().classes("hw-view")

    async def refresh(self) -> None:
        """Ask for the windows anew."""
        windows = await self._access.windows(self._name)
        newest = self._newest()
        quality = quality_text(newest)
        if (windows, quality) == self._known:
            return
        self._known = windows, quality
        self._place.clear()
        with self._place:
            if not windows:
                with card():
                    ui.label("There is no answer yet.").classes("hw-quiet")
            if quality:
                with card("What the newest answer rests on"):
                    ui.label(quality).classes("hw-small")
            for window in windows:
                _show_window(window)


def quality_text(answer: PageAnswer | None) -> str:
    """Whether the windows of an answer held everything, the versions of the data, and the quality of SERVICE."""
    if answer is None:
        return ""
    whole = "its windows held everything" if answer.is_complete else "its windows did not hold everything yet"
    return "  ·  ".join((whole, *(answer.remarks or ("no linked data and no SERVICE",))))


def _show_window(window: PageWindow) -> None:
    with card(f"{window.label}  {window.specification}"):
        span = f"{time_text(window.low)} up to {time_text(window.high)} UTC"
        ui.label(f"{span} over {window.stream}: {count_text(window.items)} in it").classes("hw-quiet hw-small")
        show_elements(window.elements, "Its elements cannot be read again." if window.items else "It is empty.")


def show_elements(elements: tuple[PageElement, ...], empty: str) -> None:
    """Elements, each with its time above its triples."""
    if not elements:
        ui.label(empty).classes("hw-quiet")
        return
    with ui.column().classes("hw-scroll").props("tabindex=0"):
        for element in elements:
            with ui.column().classes("hw-element"):
                graph = f"  ·  {element.graph}" if element.graph else ""
                ui.label(f"{time_text(element.time)}{graph}").classes("hw-quiet hw-small")
                ui.label(element.triples).classes("hw-pre")


class WhyTab:
    """How many solutions are left after each step of the plan, at the newest answer."""

    def __init__(self, access: PageAccess, name: str, newest: Callable[[], PageAnswer | None]) -> None:
        self._explanation = NewestExplanation(access, name, newest)
        with card("How many solutions each step leaves"):
            with ui.element("div").classes("hw-line"):
                text = "The streams are read again up to the newest answer, and each step of the plan is counted."
                ui.label(text).classes("hw-quiet hw-small")
                ui.element("div").classes("hw-space")
                self._button = ui.button("Explain the newest answer", icon="help_outline", on_click=self._explain)
                self._button.props("outline no-caps dense")
            self._moment = ui.label("").classes("hw-small")
            self._steps = ui.column().classes("hw-fill hw-tight")

    async def _explain(self) -> None:
        steps = await self._explanation.ask(self._button, self._moment)
        if steps is None:
            return
        self._steps.clear()
        with self._steps:
            for step in steps:
                with ui.element("div").classes("hw-step hw-end" if step.is_end else "hw-step"):
                    ui.label(count_text(step.solutions)).classes("hw-isbad" if step.is_end else "")
                    text = f"{step.text}    here they end" if step.is_end else step.text
                    ui.label(text).classes("hw-mono").style(f"padding-left: {step.depth * 18}px; white-space: pre-wrap")
