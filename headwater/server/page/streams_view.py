"""The streams: what each brought last, how fast, what could not be used and why, and templates to try."""

from __future__ import annotations

import time

from nicegui import ui

from headwater.server.page.page_access import PageAccess, PageStream, PageStreamDetails
from headwater.server.page.page_parts import (
    LiveTable,
    LiveView,
    card,
    count_text,
    named_column,
    span_text,
    time_text,
)
from headwater.server.page.page_rates import RateMeter
from headwater.server.page.query_tabs import show_elements
from headwater.server.page.share_links import stream_path

_REFRESH_SECONDS = 1.0
_TEMPLATE = """\
@time {time}

@prefix sosa: <http://www.w3.org/ns/sosa/> .

<http://example.org/observation/{row}> sosa:madeBySensor <http://example.org/sensor/{sensor}> ;
    sosa:hasSimpleResult "{value}" .
"""
_ROWS = "time,sensor,value\n2026-01-01T10:00:00Z,s1,21.5\n2026-01-01T10:00:05Z,s2,19\n"


class StreamsView:
    """One stream at a time, chosen from all."""

    def __init__(self, access: PageAccess, name: str = "") -> None:
        self._access = access
        self._name = name
        self._rates = RateMeter()
        self._known: PageStreamDetails | None = None
        self._names: list[str] = []
        with ui.column().classes("hw-view"):
            with ui.element("div").classes("hw-line"):
                self._choice = ui.select([], label="Stream", on_change=lambda event: self._choose(event.value))
                self._choice.props("dense outlined options-dense").style("min-width: min(420px, 100%)")
                self._counts = ui.label("").classes("hw-quiet hw-small")
            self._note = ui.label("").classes("hw-quiet")
            with ui.element("div").classes("hw-split"):
                with card("Last elements, the newest first"):
                    self._elements = ui.column().classes("hw-fill")
                with ui.column().classes("hw-fill hw-gap"):
                    with card("Predicates of the last elements"):
                        columns = [named_column("iri", "predicate"), named_column("count", "triples", right=True)]
                        self._predicates = LiveTable(columns, rows=10)
                    with card("Dead letters: what took no part, and why"):
                        self._letters = LiveTable(
                            [
                                named_column("kind", "kind"),
                                named_column("reason", "reason"),
                                named_column("place", "where", wide=True),
                                named_column("text", "element", wide=True),
                            ],
                            empty="None",
                            rows=10,
                        )
                        self._letters.table.props("wrap-cells")
            self._draw_trial()
        LiveView(_REFRESH_SECONDS, self._refresh)

    def _draw_trial(self) -> None:
        with card("Try a template on sample rows"), ui.element("div").classes("hw-split"):
            with ui.column().classes("hw-fill hw-gap"):
                self._template = ui.textarea("Template", value=_TEMPLATE).props("outlined input-class=hw-mono autogrow")
                self._template.classes("hw-fill")
                self._sample = ui.textarea("Rows", value=_ROWS).props("outlined input-class=hw-mono autogrow")
                self._sample.classes("hw-fill")
                with ui.element("div").classes("hw-line"):
                    self._ending = ui.toggle({".csv": "CSV", ".jsonl": "JSON lines"}, value=".csv")
                    self._ending.props("dense no-caps unelevated size=sm")
                    ui.element("div").classes("hw-space")
                    ui.button("Try", icon="science", on_click=self._try).props("outline no-caps")
            self._trial = ui.column().classes("hw-fill hw-gap")

    async def _try(self) -> None:
        found = await self._access.try_template(
            self._template.value or "", self._sample.value or "", str(self._ending.value)
        )
        self._trial.clear()
        with self._trial:
            for problem in found.problems:
                ui.label(problem).classes("hw-trouble hw-warning")
            if found.elements or not found.problems:
                show_elements(found.elements, "The rows mean no element.")

    def _choose(self, name: str | None) -> None:
        if name and name != self._name:
            ui.navigate.to(stream_path(name))

    async def _refresh(self) -> None:
        overview = await self._access.overview()
        names = [one.name for one in overview.streams]
        self._name = self._name or (names[0] if names else "")
        if names != self._names:
            self._names = names
            self._choice.set_options(names, value=self._name if self._name in names else None)
        stream = next((one for one in overview.streams if one.name == self._name), None)
        if stream is None:
            self._note.set_text(f"There is no stream {self._name}." if self._name else "There is no stream.")
            return
        self._counts.set_text(self._counts_text(stream))
        details = await self._access.stream_details(self._name)
        if details != self._known:
            self._known = details
            self._show(details)

    def _counts_text(self, stream: PageStream) -> str:
        rate = self._rates.measure(stream.name, stream.elements, time.monotonic())
        parts = [
            f"{count_text(rate)} elements a second",
            f"{count_text(stream.elements)} elements",
            f"{count_text(stream.late)} late",
            f"{count_text(stream.bad)} bad",
            f"{count_text(stream.ahead)} too far ahead",
            f"is at {time_text(stream.watermark)}, {span_text(stream.delay(time.time_ns() // 1000))} behind the clock",
            f"from {stream.source}",
        ]
        return "  ·  ".join(parts)

    def _show(self, details: PageStreamDetails) -> None:
        self._note.set_text(details.note)
        self._note.set_visibility(bool(details.note))
        self._elements.clear()
        with self._elements:
            show_elements(details.elements[:40], "None yet")
        rows = [{"iri": iri, "count": count_text(count)} for iri, count in details.predicates]
        self._predicates.show_rows(rows)
        letters = [
            {
                "kind": one.kind,
                "reason": one.reason,
                "place": one.source if one.line is None else f"{one.source}, line {one.line}",
                "text": one.text[:160],
            }
            for one in details.dead_letters
        ]
        self._letters.show_rows(letters)
