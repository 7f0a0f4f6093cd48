"""Templates: which triples a row of a CSV or JSON stream means.

A template is Turtle with column names in braces, below lines that say how to read the rows:

```
# one observation per row
@time {TIMESTAMP}
@where {status} = OK

@prefix ssn: <http://purl.oclc.org/NET/ssnx/ssn#> .
@prefix sao: <http://purl.oclc.org/NET/sao/> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .

<http://city/obs/{REPORT_ID}/{_id}> a ssn:Observation ;
    ssn:observedBy <http://city/sensor/{REPORT_ID}> ;
    sao:hasValue "{avgSpeed}"^^xsd:double .
```

Lines that say how to read (each begins its line; order does not matter):

- `@time …`: when. Needed. See `headwater.terms.template_time`.
- `@where {column} = value`, `@where {column} != value`: only such rows are meant; the others are no elements
  and no errors. Several lines must all hold. An empty value means an empty cell.
- `@columns a b c`: the names of the columns of a CSV file that has no header line. With `...` as the last
  name, rows may have more cells.
- `@delimiter ;`: what separates the cells, `,` if not said; `tab` for a tab. With several characters each
  of them separates, and quotes have no meaning then.
- `@default {column} = value`: what an empty or missing cell of the column stands for.
- `@each {member}`: in JSON rows, a member that is a list. Each of its values is a row of its own, with the other
  members of the object beside it. `{member.inner}` is a member of an object in the list, `{member}` a plain value.
  Several lines open lists inside lists. An empty or missing list is no row.
- `@if {column}` … `@end`: the triples in between are left out where the column is empty.

Placeholders:

- in an IRI (`<http://city/{id}>`, `city:obs{id}`): the cell, percent-encoded. An empty one makes the row bad.
- `{+column}` in an IRI: the cell as it is, for cells that hold IRIs or paths (`<{+url}>`).
- in a literal (`"{name}"@en`, `"{speed} km/h"`): the cell as it is. An empty one leaves the triple out.
- `{row}`: the number of the row, counted from 1, unless a column has that name.
- `{a.b}` in JSON rows: the member `b` of the object in the member `a`.
- `{{` and `}}` stand for single braces.

A blank node of the template (`[]`, `_:x`) is a new node in each row. The Turtle is parsed once; a row only
fills in terms.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import NamedTuple, cast

from pyoxigraph import RdfFormat

from headwater.errors import HeadwaterError
from headwater.terms.arguments import check_path
from headwater.terms.checking.checked_parsing import parse_quads
from headwater.terms.model import BlankNode, Element, NamedNode, Term, Triple
from headwater.terms.rdf_documents import RdfSyntaxError
from headwater.terms.template_terms import RELATIVE_BASE, Placeholders, TemplateRow, TermBuilder
from headwater.terms.template_time import ROW_NUMBER, TimeRule, parse_time_rule

_DIRECTIVES = ("time", "where", "columns", "delimiter", "default", "each", "if", "end")
_DIRECTIVE = re.compile(rf"@({'|'.join(_DIRECTIVES)})\b[ \t]*(.*)")
_WORD = re.compile(r"@(?!(?i:prefix|base|version)\b)(\w{4,})")
"""What may be a misspelt line; shorter words are languages."""
_DEFAULT = re.compile(r"\{([^{}]+)\}\s*=\s*(.*)")
_WHERE = re.compile(r"\{([^{}]+)\}\s*(!?=)\s*(.*)")
_CONDITION = re.compile(r"\{([^{}]+)\}")
_MORE_COLUMNS = "..."


class TemplateError(HeadwaterError, ValueError):
    """A template that cannot be used; the message says file, line and what to write instead."""


def read_template(path: str | Path) -> str:
    """The text of a template file."""
    try:
        return check_path("template", path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise TemplateError(f"cannot read the template {path}: {reason}; check its path") from None


class _Group(NamedTuple):
    """Triples with one condition, as places in the list of the terms that they are made of."""

    condition: str | None
    builders: tuple[TermBuilder, ...]
    triples: tuple[tuple[int, int, int], ...]


@dataclass(slots=True)
class _Block:
    condition: str | None
    first_line: int
    lines: list[str]


class RowTemplate:
    """A compiled template. `RowTemplate.load(path)` reads one, `element` applies it to a row."""

    def __init__(self, text: str, name: str = "<template>") -> None:
        self.text = text
        self.name = name
        self.columns: tuple[str, ...] | None = None
        self.has_more_columns = False
        self.delimiters = ","
        self.lists: tuple[str, ...] = ()
        """The members of JSON rows that are lists, each value of which is a row."""
        self._wheres: list[tuple[str, bool, str]] = []
        self._defaults: dict[str, str] = {}
        self._placeholders = Placeholders(text)
        time: TimeRule | None = None
        blocks = [_Block(None, 1, [])]
        for number, line in enumerate(text.splitlines(), 1):
            match = _DIRECTIVE.match(line)
            if match is None:
                blocks[-1].lines.append(line)
                if (word := _WORD.match(line)) is not None and (near := get_close_matches(word[1], _DIRECTIVES, 1)):
                    raise TemplateError(f"{name}:{number}: no line begins with @{word[1]}; did you mean @{near[0]}?")
                continue
            try:
                directive, rest = match.group(1), match.group(2).strip()
                if directive == "time":
                    if time is not None:
                        raise ValueError("a second @time line: a row happens once")
                    time = parse_time_rule(rest, self._placeholders)
                elif directive in ("if", "end"):
                    blocks.append(_Block(_parse_condition(directive, rest, blocks[-1]), number + 1, []))
                    continue
                else:
                    self._apply_directive(directive, rest)
            except ValueError as error:
                raise TemplateError(f"{name}:{number}: {error}") from None
            blocks[-1].lines.append("")
        if time is None:
            raise TemplateError(f"{name}: no @time line: say when a row happened, such as @time {{TIMESTAMP}}")
        if blocks[-1].condition is not None:
            raise TemplateError(f"{name}:{blocks[-1].first_line - 1}: @if without @end")
        self._time = time
        self._groups = self._compile(blocks)
        if not any(group.triples for group in self._groups):
            raise TemplateError(f"{name}: no triples: say in Turtle what a row means")
        self.uses_row_number = ROW_NUMBER in self._placeholders.columns
        self.used_columns = frozenset(
            self._placeholders.columns
            | {column for column, _, _ in self._wheres}
            | {group.condition for group in self._groups if group.condition is not None}
        )

    @property
    def expected_columns(self) -> frozenset[str]:
        """The columns of which some row should have each: those that are read, unless a `@default` stands for them.

        A default of a column that nothing reads has no other use than to be misspelt.
        """
        defaults = self._defaults.keys()
        read = self.used_columns | frozenset(self.lists)
        return (read - defaults - {ROW_NUMBER}) | (defaults - read)

    @classmethod
    def load(cls, path: str | Path) -> RowTemplate:
        """The template in a file."""
        return cls(read_template(path), str(path))

    def __reduce__(self) -> tuple[type[RowTemplate], tuple[str, str]]:
        return RowTemplate, (self.text, self.name)

    def _apply_directive(self, directive: str, rest: str) -> None:
        """Apply `@where`, `@columns`, `@delimiter`, `@default` or `@each`."""
        if directive == "where":
            match = _WHERE.fullmatch(rest)
            if match is None:
                raise ValueError("expected @where {column} = value, or != value")
            column, operator, value = match.groups()
            self._wheres.append((column.strip(), operator == "=", value))
        elif directive == "default":
            match = _DEFAULT.fullmatch(rest)
            if match is None or not match.group(2):
                raise ValueError("expected @default {column} = value")
            self._defaults[match.group(1).strip()] = match.group(2)
        elif directive == "each":
            match = _CONDITION.fullmatch(rest)
            if match is None:
                raise ValueError("expected @each {member}, a member of JSON rows that is a list")
            self.lists = (*self.lists, match.group(1).strip())
        elif directive == "columns":
            names = tuple(rest.replace(",", " ").split())
            self.has_more_columns = names[-1:] == (_MORE_COLUMNS,)
            self.columns = names[:-1] if self.has_more_columns else names
            if not self.columns or len(set(self.columns)) < len(self.columns):
                raise ValueError("@columns needs different names, separated by blanks")
        else:
            self.delimiters = "\t" if rest == "tab" else rest
            if not rest or '"' in rest:
                raise ValueError("@delimiter needs the character that separates cells, or the word tab")

    def _compile(self, blocks: list[_Block]) -> tuple[_Group, ...]:
        prefixes = "".join(
            line + "\n"
            for block in blocks
            for line in block.lines
            if re.match(r"\s*(@prefix|@base|prefix|base)\b", line, re.IGNORECASE)
        )
        blank_nodes: dict[BlankNode, int] = {}
        groups = tuple(self._compile_block(block, prefixes, blank_nodes) for block in blocks)
        self.has_blank_nodes = bool(blank_nodes)
        return groups

    def _compile_block(self, block: _Block, prefixes: str, blank_nodes: dict[BlankNode, int]) -> _Group:
        """Parse the Turtle of a block once: builders for its terms, and triples as indexes of these."""
        numbers: dict[Term, int] = {}
        builders: list[TermBuilder] = []
        triples: list[tuple[int, int, int]] = []
        prefix_lines = prefixes.count("\n")
        try:
            turtle = self._placeholders.hide("\n".join(block.lines))
            source = f"{prefixes}{turtle}\n".encode()
            for quad in parse_quads(source, RdfFormat.TURTLE, RELATIVE_BASE):
                places = []
                for term in (quad.subject, quad.predicate, quad.object):
                    if term not in numbers:
                        numbers[term] = len(builders)
                        builders.append(self._placeholders.make_builder(term, blank_nodes))
                    places.append(numbers[term])
                subject, predicate, value = places
                triples.append((subject, predicate, value))
        except SyntaxError as error:
            located = RdfSyntaxError.from_parser(error, self.name)
            line = block.first_line + (located.line or 1) - 1 - prefix_lines
            reason = self._placeholders.show(located.reason)
            if self._placeholders.has_words(located.reason):
                reason += ': a placeholder stands in quotes, as "{column}" or "{column}"^^xsd:double, or in an IRI'
            raise TemplateError(f"{self.name}:{max(line, 1)}: {reason}") from None
        except ValueError as error:
            raise TemplateError(f"{self.name}: {error}") from None
        return _Group(block.condition, tuple(builders), tuple(triples))

    def element(
        self, cells: Mapping[str, str], number: int, position: tuple[int, ...], blank_prefix: str
    ) -> Element | None:
        """The element that a row means, or None where `@where` leaves it out; a `RowError` for a bad row."""
        if self.uses_row_number and ROW_NUMBER not in cells:
            cells = {**cells, ROW_NUMBER: str(number)}
        if self._defaults:
            cells = {**cells, **{name: value for name, value in self._defaults.items() if not cells.get(name)}}
        row = TemplateRow(cells, blank_prefix)
        for column, wanted, value in self._wheres:
            if (row.cell(column) == value) is not wanted:
                return None
        return Element(self._time(row), tuple(self._triples(row)), None, position)

    def _triples(self, row: TemplateRow) -> Iterable[Triple]:
        for condition, builders, triples in self._groups:
            if condition is not None and row.cell(condition) == "":
                continue
            terms = [build(row) for build in builders]
            for subject, predicate, value in triples:
                s, p, o = terms[subject], terms[predicate], terms[value]
                if s is not None and p is not None and o is not None:
                    # Turtle's grammar has seen to it that subjects and predicates are of the right kind.
                    yield Triple(cast(NamedNode, s), cast(NamedNode, p), o)


def _parse_condition(directive: str, rest: str, open_block: _Block) -> str | None:
    if directive == "end":
        if open_block.condition is None:
            raise ValueError("@end without @if")
        return None
    match = _CONDITION.fullmatch(rest)
    if match is None or open_block.condition is not None:
        raise ValueError("expected @if {column}, not inside another @if")
    return match.group(1).strip()
