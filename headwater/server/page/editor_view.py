"""The editor: a text is checked as it is written, tried on what has come last, and registered."""

from __future__ import annotations

import json

from nicegui import context, ui

from headwater.errors import HeadwaterError
from headwater.server.page.page_access import PageAccess, PageAnswer, TextCheck
from headwater.server.page.page_frame import PageFrame
from headwater.server.page.page_parts import LiveTable, attempt, card, link_href, show_error, time_text
from headwater.server.page.query_editor import QueryEditor, problem_text
from headwater.server.page.query_examples import QueryExample, list_examples
from headwater.server.page.share_links import editor_path, query_path, unpack_text

_CHECK_SECONDS = 0.25
_PREVIEWED_ANSWERS = 3


class EditorView:
    """A text beside what it would answer."""

    def __init__(self, access: PageAccess, frame: PageFrame, packed: str = "", query: str = "") -> None:
        self._access = access
        self._shared = packed
        self._query = query
        self._check = TextCheck()
        self._checked = ""
        with ui.column().classes("hw-view"), ui.element("div").classes("hw-split"):
            with card("Query"):
                with ui.element("div").classes("hw-line"):
                    with ui.button("Examples", icon="menu_book").props("flat dense no-caps aria-haspopup=menu"):
                        self._examples = ui.menu()
                    ui.button("Share", icon="link", on_click=self._share).props("flat dense no-caps")
                    ui.element("div").classes("hw-space")
                    self._dialect = ui.label("").classes("hw-quiet hw-small")
                self._editor = QueryEditor("", frame.theme, self._note_change)
                self._editor.editor.map_key("Mod-Enter", lambda _: self._preview())
                self._message = ui.label("").classes("hw-check hw-small").props("role=status aria-live=polite")
                with ui.element("div").classes("hw-line"):
                    self._name = ui.input("Name").props("dense outlined stack-label").classes("hw-name")
                    ui.element("div").classes("hw-space")
                    self._try = ui.button("Preview", icon="visibility", on_click=self._preview).props("outline no-caps")
                    self._try.tooltip("Ctrl+Enter")
                    self._register_button = ui.button("Register", icon="play_arrow", on_click=self._register)
                    self._register_button.props("no-caps unelevated")
            with card("Preview"):
                self._note = ui.label("What the query would answer over the elements that came last.")
                self._note.classes("hw-quiet hw-small").props("role=status")
                self._tables = ui.column().classes("hw-fill hw-gap")
        self._timer = ui.timer(_CHECK_SECONDS, self._check_text, active=False)
        ui.timer(0.0, self._begin, once=True)

    async def _begin(self) -> None:
        """Fill in what the link says, or an example."""
        overview = await self._access.overview()
        examples = list_examples([one.name for one in overview.streams])
        with self._examples:
            for example in examples:
                ui.menu_item(example.title, on_click=lambda chosen=example: self._take_example(chosen))
        text = examples[0].text
        named = [one for one in overview.queries if one.name == self._query]
        if named:
            text = named[0].text
        elif self._shared:
            try:
                text = unpack_text(self._shared)
            except HeadwaterError as error:
                show_error(error)
        self._editor.replace(text)
        self._editor.offer(await self._access.completions())
        await self._check_text()

    def _take_example(self, example: QueryExample) -> None:
        self._editor.replace(example.text)
        self._note_change(example.text)

    def _note_change(self, text: str) -> None:
        """Check the text when nothing was written for a moment."""
        if text != self._checked:
            self._timer.deactivate()
            self._timer.activate()

    async def _check_text(self) -> None:
        text = self._editor.text
        self._timer.deactivate()
        self._checked = text
        check = await self._access.validate(text)
        if text != self._editor.text:
            return
        self._check = check
        self._editor.mark(check.problem)
        self._message.classes(remove="hw-isbad hw-isgood hw-iswarn")
        if check.problem is not None:
            place = f"Line {check.problem.line}, column {check.problem.column}"
            self._message.set_text(f"{place}: {problem_text(check.problem)}")
            self._message.classes("hw-isbad")
        elif check.unknown_streams:
            self._message.set_text(f"No source is known for {', '.join(check.unknown_streams)}.")
            self._message.classes("hw-iswarn")
        else:
            self._message.set_text("This is a query.")
            self._message.classes("hw-isgood")
        self._dialect.set_text(check.dialect)
        self._name.props(f'placeholder="{check.name or "named by the server"}"')
        for button in (self._try, self._register_button):
            button.set_enabled(check.problem is None)

    async def _preview(self) -> None:
        await self._check_text()
        if self._check.problem is not None:
            return
        self._note.set_text("Reading what came last …")
        self._tables.clear()
        self._try.props("loading")
        try:
            found = await self._access.preview(self._editor.text)
        except (HeadwaterError, OSError) as error:
            self._note.set_text(str(error))
            return
        finally:
            self._try.props(remove="loading")
        self._note.set_text(found.note)
        with self._tables:
            for answer in reversed(found.answers[-_PREVIEWED_ANSWERS:]):
                _show_answer(answer)

    async def _register(self) -> None:
        await self._check_text()
        if self._check.problem is not None:
            return
        self._register_button.props("loading")
        registered: list[str] = []

        async def register() -> None:
            registered.append(await self._access.register(self._editor.text, name=self._name.value or None))

        try:
            if await attempt(register()):
                ui.navigate.to(query_path(registered[0]))
        finally:
            self._register_button.props(remove="loading")

    def _share(self) -> None:
        path = link_href(editor_path(self._editor.text))
        client = context.client
        client.run_javascript(
            f"history.replaceState({{}}, '', {json.dumps(path)});"
            "navigator.clipboard?.writeText(location.href).catch(() => null)"
        )
        ui.notify("The link is in the address bar and in the clipboard.", type="info", timeout=2500)


def _show_answer(answer: PageAnswer) -> None:
    """An answer of a preview."""
    with ui.column().classes("hw-fill hw-tight"):
        ui.label(time_text(answer.time)).classes("hw-small hw-quiet")
        if answer.suspended:
            ui.label(answer.suspended).classes("hw-isbad")
            return
        LiveTable(rows=12).show(answer.table)
