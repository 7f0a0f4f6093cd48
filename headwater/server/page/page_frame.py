"""What is around every view: the header with its links, light and dark, and the style."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nicegui import context, ui

from headwater.server.page.page_parts import note_visibility

_HERE = Path(__file__).parent
_VIEWS = (
    ("/", "Overview", "dashboard"),
    ("/editor", "Editor", "edit_note"),
    ("/streams", "Streams", "water"),
    ("/data", "Data", "storage"),
)
_MODES: dict[str, bool | None] = {"auto": None, "light": False, "dark": True}
_ICONS = {"auto": "brightness_auto", "light": "light_mode", "dark": "dark_mode"}
_COOKIE = "headwater-theme"
_WATCH = """
<script>
document.addEventListener("visibilitychange", () => emitEvent("page_visibility", !document.hidden));
const prefersDark = matchMedia("(prefers-color-scheme: dark)");
prefersDark.addEventListener("change", () => emitEvent("prefers_dark", prefersDark.matches));
</script>
"""


@dataclass
class PageTheme:
    """Light or dark, for what must be told so by the server; `on_change` is called with whether it is dark."""

    mode: str = "auto"
    prefers_dark: bool = False
    on_change: Callable[[bool], object] = lambda is_dark: None

    @property
    def is_dark(self) -> bool:
        chosen = _MODES[self.mode]
        return self.prefers_dark if chosen is None else chosen


class PageFrame:
    """The header and the place of the views."""

    def __init__(self) -> None:
        client = context.client
        cookies = client.request.cookies if client.request is not None else {}
        self.theme = PageTheme(cookies.get(_COOKIE, "auto") if cookies.get(_COOKIE) in _MODES else "auto")
        self._links: dict[str, Any] = {}
        ui.add_css(_HERE / "page_style.css")
        ui.add_body_html(_WATCH)
        ui.add_body_html(f'<script type="module">{(_HERE / "query_editor.js").read_text("utf-8")}</script>')
        ui.colors(primary="#2468b4", positive="#18794e", negative="#b42318", warning="#9a5b00", info="#2468b4")
        self._dark = ui.dark_mode(_MODES[self.theme.mode])
        ui.on("prefers_dark", lambda event: self._note_preference(bool(event.args)))
        ui.on("page_visibility", lambda event: note_visibility(client.id, bool(event.args)))
        client.on_delete(lambda: note_visibility(client.id, True))
        client.on_connect(lambda: client.run_javascript('emitEvent("prefers_dark", prefersDark.matches)'))
        with ui.header().classes("hw-header").props("role=banner"):
            ui.link("Headwater", "/").classes("hw-brand")
            with ui.element("nav").classes("row no-wrap").props('aria-label="views"'):
                for path, name, icon in _VIEWS:
                    with ui.link(target=path).classes("hw-nav") as link:
                        ui.icon(icon, size="18px")
                        ui.label(name)
                    self._links[path] = link
            ui.element("div").classes("hw-space")
            button = ui.button(icon=_ICONS[self.theme.mode], on_click=self._change_mode)
            self._mode_button = button.props('flat round dense aria-label="light or dark"')
            with self._mode_button:
                self._mode_text = ui.tooltip(f"Colours: {self.theme.mode}")
        router = client.sub_pages_router
        router.on_path_changed(self._mark_link)
        self._mark_link(router.current_path)

    def _mark_link(self, path: str) -> None:
        here = path.partition("?")[0].rstrip("/") or "/"
        for known, link in self._links.items():
            is_here = known == here or (known == "/" and here == "/query")
            link.classes("hw-here" if is_here else "", remove="" if is_here else "hw-here")
            link.props("aria-current=page" if is_here else "", remove="" if is_here else "aria-current")

    def _note_preference(self, is_dark: bool) -> None:
        if is_dark != self.theme.prefers_dark:
            self.theme.prefers_dark = is_dark
            self.theme.on_change(self.theme.is_dark)

    def _change_mode(self) -> None:
        names = list(_MODES)
        self.theme.mode = names[(names.index(self.theme.mode) + 1) % len(names)]
        self._dark.value = _MODES[self.theme.mode]
        self._mode_button.props(f"icon={_ICONS[self.theme.mode]}")
        self._mode_text.set_text(f"Colours: {self.theme.mode}")
        ui.run_javascript(f'document.cookie = "{_COOKIE}={self.theme.mode}; path=/; max-age=31536000; samesite=strict"')
        self.theme.on_change(self.theme.is_dark)
