"""The overview: streams, queries and data sets with their rates, and what is wrong before everything else."""

from __future__ import annotations

import time
from collections import deque
from typing import Any

from nicegui import ui

from headwater.server.page.answer_charts import line_chart
from headwater.server.page.page_access import PageAccess, PageOverview, PageQuery, PageStream
from headwater.server.page.page_parts import (
    LINK_SLOT,
    STATE_SLOT,
    TROUBLE_SLOT,
    LiveTable,
    LiveView,
    bytes_text,
    card,
    count_text,
    link_href,
    named_column,
    span_text,
    time_text,
)
from headwater.server.page.page_rates import RateMeter
from headwater.server.page.page_troubles import Severity, find_troubles
from headwater.server.page.share_links import query_path, stream_path

_REFRESH_SECONDS = 1.0
_CHART_POINTS = 120
_CLASSES = {Severity.FAILURE: "hw-failure", Severity.WARNING: "hw-warning", Severity.NOTICE: "hw-notice"}


class OverviewView:
    """Everything at one glance, once a second."""

    def __init__(self, access: PageAccess) -> None:
        self._access = access
        self._rates = RateMeter()
        self._points: deque[tuple[float, float]] = deque(maxlen=_CHART_POINTS)
        self._known_troubles: object = None
        with ui.column().classes("hw-view"):
            self._troubles = ui.column().classes("hw-fill hw-gap").props("role=status")
            with ui.element("div").classes("hw-numbers"):
                self._numbers = {name: _number(name) for name in ("Elements a second", "Elements", "Queries", "Memory")}
            with card("Queries"):
                self._queries = LiveTable(
                    [
                        named_column("name", "name"),
                        named_column("state", "state"),
                        named_column("dialect", "language", wide=True),
                        named_column("rate", "elements / s", right=True),
                        named_column("ticks", "answers", right=True),
                        named_column("rows", "rows", right=True, wide=True),
                        named_column("lag", "lag", right=True),
                        named_column("memory", "memory", right=True, wide=True),
                    ],
                    empty="No query is registered: the editor registers one",
                )
                self._queries.table.add_slot("body-cell-name", LINK_SLOT)
                self._queries.table.add_slot("body-cell-state", STATE_SLOT)
            with card("Streams"):
                self._streams = LiveTable(
                    [
                        named_column("name", "name"),
                        named_column("source", "from", wide=True),
                        named_column("rate", "elements / s", right=True),
                        named_column("elements", "elements", right=True),
                        named_column("late", "late", right=True),
                        named_column("bad", "bad", right=True),
                        named_column("watermark", "is at", right=True, wide=True),
                        named_column("delay", "behind the clock", right=True, wide=True),
                    ],
                    empty="There is no stream",
                )
                self._streams.table.add_slot("body-cell-name", LINK_SLOT)
                for name in ("late", "bad"):
                    self._streams.table.add_slot(f"body-cell-{name}", TROUBLE_SLOT)
            with ui.element("div").classes("hw-split"):
                with card("Elements a second"):
                    self._chart = ui.echart(line_chart([])).classes("hw-low-chart")
                with card("Data sets"):
                    self._data = LiveTable(
                        [
                            named_column("name", "name"),
                            named_column("statements", "statements", right=True),
                            named_column("version", "version", right=True),
                            named_column("bytes", "on disk", right=True, wide=True),
                        ],
                        empty="There is no data set",
                    )
        LiveView(_REFRESH_SECONDS, self._refresh)

    async def _refresh(self) -> None:
        overview = await self._access.overview()
        now = time.monotonic()
        rate = self._rates.measure("all", overview.elements, now)
        self._show_troubles(overview)
        self._numbers["Elements a second"].set_text(count_text(rate))
        self._numbers["Elements"].set_text(count_text(overview.elements))
        self._numbers["Queries"].set_text(count_text(len(overview.queries)))
        self._numbers["Memory"].set_text(bytes_text(overview.memory_bytes))
        self._queries.show_rows([self._query_row(query, now) for query in overview.queries])
        self._streams.show_rows([self._stream_row(stream, now) for stream in overview.streams])
        self._data.show_rows(
            [
                {
                    "name": one.name,
                    "statements": count_text(one.statements),
                    "version": count_text(one.version),
                    "bytes": bytes_text(one.bytes),
                }
                for one in overview.datasets
            ]
        )
        self._points.append((time.time() * 1000, round(rate, 1)))
        self._chart.options.update(line_chart(list(self._points)))
        self._chart.update()

    def _query_row(self, query: PageQuery, now: float) -> dict[str, Any]:
        return {
            "name": query.title,
            "href": link_href(query_path(query.name)),
            "state": query.state.value,
            "dialect": query.dialect,
            "rate": count_text(self._rates.measure(f"query {query.name}", query.elements, now)),
            "ticks": count_text(query.ticks),
            "rows": count_text(query.rows),
            "lag": span_text(query.lag),
            "memory": bytes_text(query.state_bytes),
        }

    def _stream_row(self, stream: PageStream, now: float) -> dict[str, Any]:
        return {
            "name": stream.name,
            "href": link_href(stream_path(stream.name)),
            "source": stream.source,
            "rate": count_text(self._rates.measure(f"stream {stream.name}", stream.elements, now)),
            "elements": count_text(stream.elements),
            "late": count_text(stream.late),
            "bad": count_text(stream.bad),
            "watermark": time_text(stream.watermark),
            "delay": span_text(stream.delay(time.time_ns() // 1000)),
        }

    def _show_troubles(self, overview: PageOverview) -> None:
        troubles = find_troubles(overview)
        if troubles == self._known_troubles:
            return
        self._known_troubles = troubles
        self._troubles.clear()
        self._troubles.set_visibility(bool(troubles))
        with self._troubles:
            for trouble in troubles:
                classes = f"hw-trouble {_CLASSES[trouble.severity]}"
                if trouble.path:
                    ui.link(trouble.text, trouble.path).classes(classes)
                else:
                    ui.label(trouble.text).classes(classes)


def _number(name: str) -> ui.label:
    """A number with its name above it."""
    with ui.column().classes("hw-number"):
        ui.label(name).classes("hw-quiet hw-small")
        return ui.label("—").classes("hw-value")
