"""Answers as tables for people: one table per answer, IRIs shortened with the prefixes of the query."""

from __future__ import annotations

import sys

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from headwater.execution.answers import Answer
from headwater.explain.notation import Notation
from headwater.terms.model import XSD, Literal, Term
from headwater.terms.names import iri_to_name
from headwater.terms.timestamps import format_time

_NUMBERS = frozenset(XSD + name for name in ("integer", "decimal", "double", "float", "int", "long"))


_WIDEST_TABLE_IN_A_PIPE = 200


class Screen(Console):
    """Standard output for tables; in a pipe they may be as wide as they need."""

    def __init__(self) -> None:
        super().__init__(width=None if sys.stdout.isatty() else _WIDEST_TABLE_IN_A_PIPE)

    def on_broken_pipe(self) -> None:
        """Leaves to the command how it ends, where rich would end the process."""
        raise BrokenPipeError


def answer_table(answer: Answer, notation: Notation) -> RenderableType:
    """A table under the query and the time; one line where there is nothing to tabulate."""
    title = Text(f"{iri_to_name(answer.query)} at {format_time(answer.time)}", style="bold")
    if answer.suspended is not None:
        return title.append(f": suspended: {answer.suspended}", style="not bold red")
    if answer.boolean is not None:
        return title.append(": yes" if answer.boolean else ": no", style="not bold")
    if answer.is_empty:
        return title.append(": nothing", style="not bold dim")
    columns, rows = answer.table()
    table = Table()
    for position, name in enumerate(columns):
        numeric = all(_is_number(row[position]) for row in rows)
        table.add_column(name, justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell_text(term, notation)) for term in row))
    # A title of the table itself would wrap where the table is narrow.
    return Group(title, table)


def cell_text(term: Term | None, notation: Notation) -> str:
    """A term for a person's eye: the plain value of a literal, `c:gate1` for an IRI, nothing where unbound."""
    if term is None:
        return ""
    return term.value if isinstance(term, Literal) else notation.term(term)


def _is_number(term: Term | None) -> bool:
    return isinstance(term, Literal) and term.datatype.value in _NUMBERS
