"""The page as a part of a FastAPI app, and a server that has nothing else.

NiceGUI keeps one app for a process: `mount_page` can be called once. When a server starts with it, it looks through
all objects of the process, which must not happen while another thread computes: an engine in the same process is
started by the lifespan of the app, which comes afterwards.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import uvicorn
from fastapi import FastAPI, Request
from fastapi.responses import RedirectResponse
from nicegui import context, ui

from headwater.server.page.data_view import DataView
from headwater.server.page.editor_view import EditorView
from headwater.server.page.overview_view import OverviewView
from headwater.server.page.page_access import PageAccess
from headwater.server.page.page_frame import PageFrame
from headwater.server.page.query_view import QueryView
from headwater.server.page.streams_view import StreamsView

PAGE_PATH = "/page"


def mount_page(app: FastAPI, access_of: Callable[[Request], PageAccess], path: str = PAGE_PATH) -> None:
    """Let an app show the page under a path; `access_of` gives what a view asks, for the request that opened it."""

    def draw() -> None:
        request = context.client.request
        assert request is not None
        access, frame = access_of(request), PageFrame()

        def draw_overview() -> None:
            OverviewView(access)

        # The names of the arguments are those of the parameters in the address.
        def draw_editor(text: str = "", query: str = "") -> None:
            EditorView(access, frame, text, query)

        def draw_query(name: str = "") -> None:
            QueryView(access, name)

        def draw_streams(name: str = "") -> None:
            StreamsView(access, name)

        def draw_data() -> None:
            DataView(access, frame)

        with ui.column().classes("hw-page"):
            ui.sub_pages(
                {
                    "/": draw_overview,
                    "/editor": draw_editor,
                    "/query": draw_query,
                    "/streams": draw_streams,
                    "/data": draw_data,
                }
            )

    ui.run_with(
        app,
        root=draw,
        title="Headwater",
        mount_path=path,
        binding_refresh_interval=None,
        tailwind=False,
        show_welcome_message=False,
        reconnect_timeout=10.0,
    )


def page_app(
    access: PageAccess, begin: Callable[[], object], end: Callable[[], object], first_view: str = "/"
) -> FastAPI:
    """An app that has the page and nothing else; `begin` is called when it starts, `end` when it stops.

    It opens on the view with the path `first_view`.
    """

    @asynccontextmanager
    async def run_engine(_: FastAPI) -> AsyncIterator[None]:
        await asyncio.to_thread(begin)
        try:
            yield
        finally:
            await asyncio.to_thread(end)

    app = FastAPI(openapi_url=None, lifespan=run_engine)

    @app.get("/", include_in_schema=False)
    def lead_to_page() -> RedirectResponse:
        return RedirectResponse(f"{PAGE_PATH}{first_view}")

    mount_page(app, lambda request: access)
    return app


def page_server(app: FastAPI, port: int, host: str = "127.0.0.1") -> uvicorn.Server:
    """A server of an app; `run` serves until it is told to exit."""
    return uvicorn.Server(uvicorn.Config(app, host=host, port=port, log_level="warning", ws="websockets-sansio"))
