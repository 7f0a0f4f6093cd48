"""Rows of CSV and JSON streams as elements, by a template (`headwater.terms.template`).

A row is a line: line breaks inside quoted CSV cells are not supported, and such a line is reported as bad.
That is what allows a file to be read in byte ranges, and what keeps one stray quote from swallowing a file.
JSON comes as one object per line, or as one array of objects.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from hashlib import blake2b
from typing import NamedTuple

from headwater.terms.model import BadElement, Element
from headwater.terms.template import RowTemplate
from headwater.terms.template_terms import RowError
from headwater.terms.template_time import ROW_NUMBER
from headwater.terms.text_lines import (
    LineNumbers,
    Lines,
    LongLine,
    OffsetLine,
    line_to_text,
    lines_before,
    offset_lines,
    shorten_text,
)


def _refuse_constant(name: str) -> str:
    raise ValueError(f"{name} is not a JSON value")


_JSON = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=_refuse_constant)


class _RowReader:
    """Applies a template to rows of one source."""

    def __init__(self, template: RowTemplate, source: str) -> None:
        self._template = template
        self._blank_scope = "b" + blake2b(source.encode(errors="surrogatepass"), digest_size=8).hexdigest()

    def element(self, cells: Mapping[str, str], number: int, *position: int) -> Element | None:
        blank_prefix = f"{self._blank_scope}r{'e'.join(map(str, position))}"
        return self._template.element(cells, number, position, blank_prefix)

    def elements(self, row: object, number: int, position: int) -> Iterator[Element | RowError]:
        """The elements of a JSON row: one, or one for each value of the lists that the template opens."""
        for index, cells in enumerate(rows_of_json(row, self._template)):
            place = (position, index) if self._template.lists else (position,)
            try:
                element = self.element(cells, number, *place)
            except ValueError as error:
                yield RowError(str(error))
                continue
            if element is not None:
                yield element


class CsvHeader(NamedTuple):
    """The header line of a CSV file: its columns, or why it has none, and the number of the line."""

    columns: tuple[str, ...] | None
    bad: BadElement | None
    line: int


def read_csv_header(lines: Iterator[OffsetLine], source: str, template: RowTemplate, numbers: LineNumbers) -> CsvHeader:
    """Takes the lines up to the first one that is not blank, and reads column names from it."""
    for line in lines:
        if not line[2].strip(b" "):
            continue
        number = numbers.number(line[1])
        try:
            names = tuple(name.strip() for name in split_cells(line[2].decode(), template.delimiters))
            if len(set(names)) < len(names):
                raise RowError(f"the header line has the same column twice: {', '.join(names)}")
        except ValueError as error:
            return CsvHeader(None, _bad_row(error, line, source, numbers), number)
        return CsvHeader(names, None, number)
    return CsvHeader(None, None, 0)


def split_cells(line: str, delimiters: str) -> Sequence[str]:
    """The cells of a line; quotes are understood where there is only one delimiter."""
    if len(delimiters) > 1:
        return line.translate(dict.fromkeys(map(ord, delimiters), delimiters[0])).split(delimiters[0])
    if '"' not in line:
        return line.split(delimiters)
    try:
        return next(csv.reader([line], delimiter=delimiters, strict=True))
    except csv.Error as error:
        raise RowError(f"broken quotes in the row: {error}") from None


def read_csv(
    lines: Lines,
    source: str,
    template: RowTemplate,
    first_position: int = 0,
    first_line: int | Callable[[], int] = 1,
    *,
    end: int | None = None,
    header: CsvHeader | None = None,
) -> Iterator[Element | BadElement]:
    """The elements of CSV lines; positions are byte offsets.

    The columns are the template's, or those of `header` where the caller has read it already (because the
    lines come from the middle of a file), or else those of the first line that is not blank.
    """
    numbers = LineNumbers(first_line)
    numbered = lines_before(offset_lines(lines, first_position), end)
    if template.columns is not None:
        header = CsvHeader(template.columns, None, 0)
    elif header is None:
        header = read_csv_header(numbered, source, template, numbers)
        if header.bad is not None:
            yield header.bad
    columns = header.columns
    reader = _RowReader(template, source)
    for line in numbered:
        if not line[2].strip(b" "):
            continue
        try:
            if columns is None:
                raise RowError("the row has no column names, because the header line cannot be read")
            cells = cells_by_column(_line_text(line), columns, template)
            number = numbers.number(line[1]) - header.line if template.uses_row_number else 0
            element = reader.element(cells, number, line[0])
        except ValueError as error:
            yield _bad_row(error, line, source, numbers)
        else:
            if element is not None:
                yield element


def cells_by_column(line: str, columns: tuple[str, ...], template: RowTemplate) -> dict[str, str]:
    """The cells of a line by column; a `RowError` where there are too few, or too many."""
    cells = split_cells(line, template.delimiters)
    if len(cells) < len(columns) or (len(cells) > len(columns) and not template.has_more_columns):
        raise RowError(f"the row has {len(cells)} cells, but there are {len(columns)} columns")
    return dict(zip(columns, cells, strict=False))


def _line_text(line: OffsetLine) -> str:
    """The text of a line; a `RowError` if it is too long."""
    if isinstance(line[2], LongLine):
        raise RowError(line[2].reason)
    return line[2].decode()


def _bad_row(error: ValueError, line: OffsetLine, source: str, numbers: LineNumbers) -> BadElement:
    position, count, text = line
    reason = "the row is not UTF-8 text" if isinstance(error, UnicodeDecodeError) else str(error)
    return BadElement(reason, line_to_text(text), source, (position,), numbers.number(count))


def read_json_lines(
    lines: Lines,
    source: str,
    template: RowTemplate,
    first_position: int = 0,
    first_line: int | Callable[[], int] = 1,
    *,
    end: int | None = None,
) -> Iterator[Element | BadElement]:
    """The elements of one JSON object per line; positions are byte offsets, a row's number is its line's."""
    numbers = LineNumbers(first_line)
    reader = _RowReader(template, source)
    for line in lines_before(offset_lines(lines, first_position), end):
        if not line[2].strip(b" "):
            continue
        try:
            row = parse_json_row(_line_text(line))
            number = numbers.number(line[1]) if template.uses_row_number else 0
            elements = list(reader.elements(row, number, line[0]))
        except (ValueError, RecursionError) as error:
            yield _bad_row(ValueError(str(error)), line, source, numbers)
            continue
        for element in elements:
            yield _bad_row(element, line, source, numbers) if isinstance(element, RowError) else element


def read_json_array(data: bytes, source: str, template: RowTemplate) -> Iterator[Element | BadElement]:
    """The elements of a JSON array of objects; positions and row numbers count its members.

    Where the JSON itself breaks off, the members before are elements, the rest is one `BadElement`.
    """
    reader = _RowReader(template, source)
    number = 0
    for number, member in enumerate(_array_members(data), 1):
        if isinstance(member, BadElement):
            yield BadElement(member.reason, member.text, source, (number - 1,), member.line)
            return
        try:
            elements = list(reader.elements(member, number, number - 1))
        except ValueError as error:
            elements = [RowError(str(error))]
        for element in elements:
            if isinstance(element, RowError):
                text = shorten_text(json.dumps(member, ensure_ascii=False))
                yield BadElement(str(element), text, source, (number - 1,))
            else:
                yield element


def _array_members(data: bytes) -> Iterator[object]:
    """The members of a JSON array; a broken one is a bad element, and nothing is read behind it."""
    text = data.decode("utf-8-sig", "surrogateescape")
    place = text.index("[") + 1
    separator = ""
    while True:
        place = _after_blanks(text, place)
        if text[place : place + 1] == "]" and separator != ",":
            return
        try:
            member, place = _JSON.raw_decode(text, place)
        except (ValueError, RecursionError) as error:
            yield _broken_array(text, place, str(error))
            return
        place = _after_blanks(text, place)
        separator = text[place : place + 1]
        yield member
        if separator not in (",", "]"):
            yield _broken_array(text, place, "expected a comma or ] behind a member of the array")
            return
        if separator == ",":
            place += 1


def _after_blanks(text: str, place: int) -> int:
    while place < len(text) and text[place] in " \t\r\n":
        place += 1
    return place


def _broken_array(text: str, place: int, reason: str) -> BadElement:
    rest = text[place:].encode("utf-8", "surrogateescape")
    return BadElement(f"{reason}; the rest was not read", line_to_text(rest), "", (), text.count("\n", 0, place) + 1)


def parse_json_row(text: str) -> object:
    """A JSON text as Python objects, each number as the digits that it was written with."""
    return _JSON.decode(text)


def columns_of_json(row: object, prefix: str = "") -> Iterator[str]:
    """The names by which a template can read a JSON value and what is inside, those of lists with `@each`."""
    if prefix:
        yield prefix
    if isinstance(row, dict):
        for key, value in row.items():
            yield from columns_of_json(value, f"{prefix}.{key}" if prefix else key)
    elif isinstance(row, list):
        for value in row:
            yield from columns_of_json(value, prefix)


def read_json_rows(data: bytes) -> Iterator[object]:
    """The rows of JSON lines or of an array that are JSON at all."""
    if data.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"["):
        yield from (one for one in _array_members(data) if not isinstance(one, BadElement))
        return
    for line in data.splitlines():
        with suppress(ValueError, RecursionError):
            yield parse_json_row(line.decode())


def rows_of_json(row: object, template: RowTemplate) -> Iterator[dict[str, str]]:
    """The cells of a JSON object; where the template opens lists, those of one row for each of their values."""
    return (cells_of_json(one, template) for one in _open_lists(row, template.lists))


def _open_lists(row: object, lists: Sequence[str]) -> Iterator[object]:
    """The object once for each value of the first list, which stands in its place; and so on for the next ones."""
    if not lists:
        yield row
        return
    path = lists[0].split(".")
    values = _member_at(row, path)
    if values is None:
        return
    if not isinstance(values, list):
        raise RowError(f"the member {lists[0]!r} is no list, but the template says @each {{{lists[0]}}}")
    for value in values:
        yield from _open_lists(_with_member(row, path, value), lists[1:])


def _member_at(row: object, path: Sequence[str]) -> object:
    for name in path:
        if row is None:
            return None
        if not isinstance(row, dict):
            raise RowError(f"a row must be a JSON object, and {'.'.join(path)!r} a member of it")
        row = row.get(name)
    return row


def _with_member(row: object, path: Sequence[str], value: object) -> object:
    """The object with another value at a path that it has."""
    if not path or not isinstance(row, dict):
        return value
    return {**row, path[0]: _with_member(row[path[0]], path[1:], value)}


def cells_of_json(row: object, template: RowTemplate) -> dict[str, str]:
    """The members of a JSON object as cells; those of inner objects as `outer.inner`; absent ones empty.

    A number keeps the digits that it was written with. A column of the template must not be a list.
    """
    if not isinstance(row, dict):
        raise RowError("a row must be a JSON object")
    cells = dict.fromkeys(template.used_columns - {ROW_NUMBER}, "")
    _collect_cells(row, "", cells, template)
    return cells


def _collect_cells(row: Mapping[str, object], prefix: str, cells: dict[str, str], template: RowTemplate) -> None:
    for key, value in row.items():
        name = prefix + key
        if isinstance(value, dict):
            _collect_cells(value, f"{name}.", cells, template)
        elif isinstance(value, list):
            if name in template.used_columns:
                raise RowError(f"the member {name!r} is a list; say @each {{{name}}} for a row of each of its values")
        elif isinstance(value, bool):
            cells[name] = "true" if value else "false"
        else:
            cells[name] = "" if value is None else str(value)
