"""The editor of queries: CodeMirror with the streaming languages, completion, and errors marked where they are."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Final

from nicegui import ui
from nicegui.elements.codemirror import CodeMirror

from headwater.server.page.page_access import CompletionWord, TextProblem
from headwater.server.page.page_frame import PageTheme

_LIGHT: Final = "githubLight"
_DARK: Final = "githubDark"


class QueryEditor:
    """An editor whose text is checked by who uses it."""

    def __init__(
        self, text: str, theme: PageTheme, on_change: Callable[[str], object], *, is_low: bool = False
    ) -> None:
        self._on_change = on_change
        self.editor: CodeMirror = ui.codemirror(
            text,
            language=None,
            theme=_DARK if theme.is_dark else _LIGHT,
            line_wrapping=True,
            indent="  ",
            on_change=lambda event: self._on_change(event.value or ""),
        )
        self.editor.classes("hw-editor hw-low" if is_low else "hw-editor")
        theme.on_change = lambda is_dark: self.editor.set_theme(_DARK if is_dark else _LIGHT)
        ui.run_javascript(f"window.headwaterEditor({self.editor.id})")

    @property
    def text(self) -> str:
        """The text as it is now."""
        return self.editor.value or ""

    def replace(self, text: str) -> None:
        """Show another text."""
        self.editor.value = text

    def offer(self, words: Sequence[CompletionWord]) -> None:
        """Offer these words while somebody writes."""
        listed = [{"label": one.label, "kind": one.kind, "detail": one.detail} for one in words]
        ui.run_javascript(f"window.headwaterWords = {json.dumps(listed)}")

    def mark(self, problem: TextProblem | None) -> None:
        """Underline the place of a problem of the text as it is now; None: nothing is wrong."""
        text = self.text
        given: dict[str, object] | None = None
        if problem is not None and text:
            start, end = marked_range(text, problem.offset)
            given = {"line": problem.line, "from": start, "to": end, "message": problem_text(problem)}
        arguments = ", ".join(map(json.dumps, (self.editor.id, text, given)))
        self.editor.client.run_javascript(f"window.headwaterMark({arguments})")


def marked_range(text: str, offset: int) -> tuple[int, int]:
    """From where to where a problem at an offset is underlined: the word there, or the last character before it."""
    start = min(offset, len(text))
    end = start
    while end < len(text) and not text[end].isspace():
        if text[end] in "{}()[];,." and end > start:
            break
        end += 1
    if end > start:
        return start, end
    while start > 0 and text[start - 1].isspace():
        start -= 1
    return max(0, start - 1), max(1, start)


def problem_text(problem: TextProblem) -> str:
    """A problem in one sentence."""
    expected = f"; expected {' or '.join(problem.expected)}" if problem.expected else ""
    return f"{problem.message}{expected}"
