"""The one error a wrong query raises, pointing at the place where a person would look."""

from __future__ import annotations

from dataclasses import dataclass

from headwater.errors import HeadwaterError
from headwater.terms.redaction import mask_user_info
from headwater.terms.text_lines import shorten_message

_LONGEST_SOURCE = 400
"""How many characters of a line an error shows."""


@dataclass(eq=False)
class QueryError(HeadwaterError):
    """A query that cannot be understood or cannot mean anything.

    `line` and `column` count from 1 and are derived from `offset`, a position in `text`.
    """

    message: str
    text: str
    offset: int
    expected: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        # The text is shown wherever the error is.
        self.text = mask_user_info(self.text)
        self.message = shorten_message(self.message)
        super().__init__(self.message)

    @property
    def line(self) -> int:
        return self.text.count("\n", 0, self.offset) + 1

    @property
    def column(self) -> int:
        return self.offset - (self.text.rfind("\n", 0, self.offset) + 1) + 1

    def __reduce__(self) -> tuple[type[QueryError], tuple[str, str, int, tuple[str, ...]]]:
        return (QueryError, (self.message, self.text, self.offset, self.expected))

    def __str__(self) -> str:
        lines = self.text.split("\n")
        source = lines[self.line - 1] if self.line <= len(lines) else ""
        before = source[: self.column - 1]
        if len(source) > _LONGEST_SOURCE:
            # Some of a line that a program wrote.
            start = max(0, self.column - 1 - _LONGEST_SOURCE // 2)
            before = ("…" if start else "") + source[start : self.column - 1]
            source = before + source[self.column - 1 : start + _LONGEST_SOURCE] + "…"
        # Tabs are kept in the pointer line so that the caret stands below its character in any terminal.
        indent = "".join("\t" if character == "\t" else " " for character in before)
        wanted = f"\nexpected {' or '.join(self.expected)}" if self.expected else ""
        return f"line {self.line}, column {self.column}: {self.message}\n{source}\n{indent}^{wanted}"
