"""Placeholders in a template, and the RDF terms that they make from a row.

Before a template is parsed as Turtle, each `{column}` is replaced by a word that is allowed in IRIs, literals
and names alike; in the parsed terms those words are found again. So Turtle is parsed once per template,
and a row only fills in terms.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias
from urllib.parse import quote

from headwater.terms.model import BlankNode, Literal, NamedNode, Term

RELATIVE_BASE = "http://template.invalid/"
"""Base IRI while a template is parsed: what begins with it was relative in the template."""

_PLACEHOLDER = re.compile(r"\{\{|\}\}|\{(\+?)([^{}\n]+)\}|[{}]")
_NOT_IN_IRIS = re.compile(r'[\x00-\x20<>"{}|^`\\]')


class RowError(ValueError):
    """A row from which the template can make no element; the message says why."""


@dataclass(frozen=True, slots=True)
class Placeholder:
    """`{column}`, or `{+column}` for a value that is (a part of) an IRI already and keeps its / : ? #."""

    column: str
    is_iri_text: bool = False


TextParts: TypeAlias = tuple[str | Placeholder, ...]
"""Text with placeholders in between."""


@dataclass(frozen=True, slots=True)
class TemplateRow:
    """The cells of a row by column, and the prefix of the labels of the blank nodes that it makes."""

    cells: Mapping[str, str]
    blank_prefix: str

    def cell(self, column: str) -> str:
        try:
            return self.cells[column]
        except KeyError:
            raise RowError(f"no column {column!r} in this row (its columns: {', '.join(self.cells)})") from None


TermBuilder: TypeAlias = Callable[[TemplateRow], Term | None]
"""Makes a term from a row; None where a literal has an empty cell."""


class Placeholders:
    """Swaps the placeholders of a text for words that Turtle accepts, and finds them again in its terms."""

    def __init__(self, text: str) -> None:
        self._word = "HeadwaterSlot"
        while self._word in text:
            self._word += "X"
        self._placeholders: list[Placeholder] = []
        self._pattern = re.compile(self._word + r"([0-9]+)z")

    @property
    def columns(self) -> set[str]:
        """The columns that were seen so far."""
        return {placeholder.column for placeholder in self._placeholders}

    def hide(self, text: str) -> str:
        """The text with a word for each placeholder; `{{` and `}}` become single braces."""

        def word_for(match: re.Match[str]) -> str:
            whole = match.group()
            if whole in ("{{", "}}"):
                return whole[0]
            plus, column = match.groups()
            if column is None:
                raise ValueError(f"a single {whole!r}: write {{column}} for a placeholder or {whole * 2} for a brace")
            self._placeholders.append(Placeholder(column.strip(), bool(plus)))
            return f"{self._word}{len(self._placeholders) - 1}z"

        return _PLACEHOLDER.sub(word_for, text)

    def show(self, text: str) -> str:
        """The text with placeholders in place of the words that stood for them."""
        return self._pattern.sub(lambda match: f"{{{self._placeholders[int(match.group(1))].column}}}", text)

    def has_words(self, text: str) -> bool:
        """Whether a word for a placeholder stands in a text."""
        return self._pattern.search(text) is not None

    def split_parts(self, text: str) -> TextParts:
        """The text of a parsed term, cut at the words."""
        pieces = self._pattern.split(text)
        found = (self._placeholders[int(piece)] if index % 2 else piece for index, piece in enumerate(pieces))
        return tuple(part for part in found if part != "")

    def make_builder(self, term: Term, blank_nodes: dict[BlankNode, int]) -> TermBuilder:
        """The function that makes this term of the template from a row; `blank_nodes` numbers its nodes."""
        if isinstance(term, NamedNode):
            return self._make_iri_builder(term)
        if isinstance(term, Literal):
            return self._make_literal_builder(term)
        if isinstance(term, BlankNode):
            if self._pattern.search(term.value):
                raise ValueError("a placeholder in the label of a blank node: each row has its own nodes anyway")
            suffix = f"n{blank_nodes.setdefault(term, len(blank_nodes))}"
            return lambda row: BlankNode(row.blank_prefix + suffix)
        if self._pattern.search(str(term)) or "_:" in str(term):
            raise ValueError("a triple term with a placeholder or a blank node is not possible in a template")
        return lambda row: term

    def _make_iri_builder(self, term: NamedNode) -> TermBuilder:
        parts = self.split_parts(term.value)
        if term.value.startswith(RELATIVE_BASE):
            first = str(parts[0]).removeprefix(RELATIVE_BASE)
            parts = (first, *parts[1:]) if first else parts[1:]
            if not (parts and isinstance(parts[0], Placeholder) and parts[0].is_iri_text):
                relative = term.value.removeprefix(RELATIVE_BASE)
                shown = self._pattern.sub("{…}", relative)
                raise ValueError(f"<{shown}> is a relative IRI: write it in full, or begin it with {{+column}}")
        if len(parts) == 1 and isinstance(parts[0], str):
            return lambda row: term
        return lambda row: fill_iri(parts, row)

    def _make_literal_builder(self, term: Literal) -> TermBuilder:
        """What builds the literal of a row; it gives None where a cell is empty."""
        parts = self.split_parts(term.value)
        language, direction = term.language, term.direction
        datatype = self._make_iri_builder(term.datatype)
        if not self._pattern.search(term.value + term.datatype.value):
            return lambda row: term
        if language is not None:

            def build_tagged(row: TemplateRow) -> Term | None:
                text = fill_text(parts, row)
                return None if text is None else Literal(text, language=language, direction=direction)

            return build_tagged

        def build_typed(row: TemplateRow) -> Term | None:
            text = fill_text(parts, row)
            if text is None:
                return None
            type_iri = datatype(row)
            return Literal(text, datatype=type_iri if isinstance(type_iri, NamedNode) else None)

        return build_typed


def fill_text(parts: TextParts, row: TemplateRow) -> str | None:
    """The text with the row's cells in it as they are; None where one of them is empty."""
    texts = []
    for part in parts:
        text = part if isinstance(part, str) else row.cell(part.column)
        if text == "":
            return None
        texts.append(text)
    return "".join(texts)


def fill_iri(parts: TextParts, row: TemplateRow) -> NamedNode:
    """The IRI with the row's cells in it, percent-encoded; a `RowError` where that gives no IRI."""
    texts = []
    for part in parts:
        if isinstance(part, str):
            texts.append(part)
            continue
        cell = row.cell(part.column)
        if cell == "":
            raise RowError(f"{part.column!r} is empty or missing in this row, but an IRI needs it")
        if part.is_iri_text:
            texts.append(_NOT_IN_IRIS.sub(lambda match: quote(match.group(), safe=""), cell))
        else:
            texts.append(cell if cell.isalnum() and cell.isascii() else quote(cell, safe=""))
    text = "".join(texts)
    try:
        return NamedNode(text)
    except ValueError as error:
        raise RowError(f"{text!r} is not an IRI: {error}") from None
