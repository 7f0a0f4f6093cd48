"""The linked data: what there is of it, and SPARQL queries over it."""

from __future__ import annotations

from nicegui import ui

from headwater.errors import HeadwaterError
from headwater.server.page.page_access import PageAccess
from headwater.server.page.page_frame import PageFrame
from headwater.server.page.page_parts import LiveTable, LiveView, bytes_text, card, count_text, named_column
from headwater.server.page.query_editor import QueryEditor

_REFRESH_SECONDS = 2.0
_QUERY = """\
SELECT ?property (COUNT(*) AS ?statements)
WHERE { ?subject ?property ?value }
GROUP BY ?property
ORDER BY DESC(?statements)
"""


class DataView:
    """The data sets, and what a query finds in them."""

    def __init__(self, access: PageAccess, frame: PageFrame) -> None:
        self._access = access
        with ui.column().classes("hw-view"):
            with card("Data sets"):
                self._table = LiveTable(
                    [
                        named_column("name", "name"),
                        named_column("statements", "statements", right=True),
                        named_column("graphs", "named graphs", right=True, wide=True),
                        named_column("version", "version", right=True),
                        named_column("bytes", "on disk", right=True),
                    ],
                    empty="There is no data set",
                )
            with card("SPARQL over all of them"):
                self._editor = QueryEditor(_QUERY, frame.theme, lambda text: None, is_low=True)
                self._editor.editor.map_key("Mod-Enter", lambda _: self._ask())
                with ui.element("div").classes("hw-line"):
                    self._message = ui.label("").classes("hw-check hw-small").props("role=status")
                    ui.element("div").classes("hw-space")
                    self._button = ui.button("Run", icon="play_arrow", on_click=self._ask)
                    self._button.props("no-caps unelevated").tooltip("Ctrl+Enter")
                self._result = LiveTable(empty="No rows")
        LiveView(_REFRESH_SECONDS, self._refresh)
        ui.timer(0.0, self._begin, once=True)

    async def _begin(self) -> None:
        self._editor.offer(await self._access.completions())

    async def _refresh(self) -> None:
        overview = await self._access.overview()
        self._table.show_rows(
            [
                {
                    "name": one.name,
                    "statements": count_text(one.statements),
                    "graphs": count_text(one.graphs),
                    "version": count_text(one.version),
                    "bytes": bytes_text(one.bytes),
                }
                for one in overview.datasets
            ]
        )

    async def _ask(self) -> None:
        self._button.props("loading")
        self._message.classes(remove="hw-isbad")
        try:
            table = await self._access.sparql(self._editor.text)
        except (HeadwaterError, OSError) as error:
            self._message.set_text(str(error))
            self._message.classes("hw-isbad")
            return
        finally:
            self._button.props(remove="loading")
        more = ", and more" if table.left_out else ""
        self._message.set_text(f"{count_text(len(table.rows))} rows{more}")
        self._result.show(table)
