"""A body of several elements as lines of timed N-Quads, with what can be counted of them.

Timed N-Quads stay the bytes that they are. RDF documents are read as messages are (`payloads`). Rows come as one JSON
object, an array of them, one object per line, or as lines of CSV, with a header line where the template names no
columns.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from headwater.errors import SettingError
from headwater.sources.payloads import Decoder, PayloadFormat, ReceivedMessage
from headwater.sources.spool import element_lines, unreadable_line
from headwater.terms.ids.term_texts import Ints
from headwater.terms.model import BadElement, Element
from headwater.terms.row_files import cells_by_column, parse_json_row, rows_of_json, split_cells
from headwater.terms.scanning.formats import LineFormat
from headwater.terms.scanning.scanner import scan
from headwater.terms.template import RowTemplate
from headwater.terms.text_lines import shorten_text

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_ADDRESS = "push"


@dataclass(frozen=True, slots=True)
class DecodedBody:
    """Whole lines of timed N-Quads, and of their elements the times and how many triples each has.

    `keeps_time` says that every element has the time of the body.
    """

    lines: bytes
    times: Ints
    sizes: Ints
    bad: int
    keeps_time: bool


def decode_body(body: bytes, format: str, decoder: Decoder | None, time: int) -> DecodedBody:
    """Decode a body. `decoder` is that of the stream: its template says what rows mean, and where times are.

    A `SettingError` where the format cannot be read.
    """
    if format == PayloadFormat.TNQ:
        return _check_lines(body)
    elements = list(_decode(body, format, decoder, time))
    lines: list[str] = []
    good: list[Element] = []
    for one in elements:
        if isinstance(one, Element):
            lines.extend(element_lines(one))
            good.append(one)
        else:
            lines.append(unreadable_line(one))
    times = np.array([one.time for one in good], dtype=np.int64)
    return DecodedBody(
        "".join(lines).encode("utf-8", "surrogatepass"),
        times,
        np.array([len(one.triples) for one in good], dtype=np.int64),
        len(elements) - len(good),
        bool((times == time).all()),
    )


def _check_lines(body: bytes) -> DecodedBody:
    text = body.removeprefix(_BYTE_ORDER_MARK)
    if text and not text.endswith(b"\n"):
        text += b"\n"
    scanned = scan(text, LineFormat.TNQ, texts="", has_checks=False)
    return DecodedBody(text, scanned.element_times, scanned.element_sizes, len(scanned.bad), False)


def _decode(body: bytes, format: str, decoder: Decoder | None, time: int) -> Iterator[Element | BadElement]:
    template = None if decoder is None else decoder.template
    message = ReceivedMessage(body, time, _ADDRESS, (time,), {})
    if format not in (PayloadFormat.JSON, PayloadFormat.CSV):
        rule = None if decoder is None or template is not None else decoder.time
        for one in Decoder(PayloadFormat(format), None, rule).decode(message):
            # A document without a statement says nothing, not even that there is nothing.
            if isinstance(one, BadElement) or one.triples:
                yield one
        return
    if decoder is None or template is None:
        raise SettingError("rows of JSON or CSV need a template: give the stream one when it is made")
    try:
        text = body.decode("utf-8-sig")
    except UnicodeDecodeError:
        yield message.bad("the body is not UTF-8 text")
        return
    rows = _json_rows(text, template) if format == PayloadFormat.JSON else _csv_rows(text, template)
    for number, (written, cells) in enumerate(rows):
        if isinstance(cells, str):
            yield BadElement(cells, shorten_text(written), _ADDRESS, (time, number))
            continue
        try:
            element = decoder.element(cells, message, number)
        except ValueError as error:
            yield BadElement(str(error), shorten_text(written), _ADDRESS, (time, number))
        else:
            if element is not None:
                yield element


_Row: TypeAlias = tuple[str, dict[str, str] | str]
"""A row as it was written, and its cells, or why it has none."""


def _json_rows(text: str, template: RowTemplate) -> Iterator[_Row]:
    """The rows of one JSON value, an object or an array of them, or of one value in each line."""
    try:
        value = parse_json_row(text)
    except (ValueError, RecursionError) as error:
        lines = [line for line in text.split("\n") if line.strip()]
        if len(lines) < 2:
            yield text, str(error)
            return
        for line in lines:
            try:
                yield from _rows_of(line, parse_json_row(line), template)
            except (ValueError, RecursionError) as broken:
                yield line, str(broken)
        return
    for member in value if isinstance(value, list) else [value]:
        yield from _rows_of(json.dumps(member, ensure_ascii=False), member, template)


def _rows_of(written: str, value: object, template: RowTemplate) -> Iterator[_Row]:
    try:
        for cells in rows_of_json(value, template):
            yield written, cells
    except ValueError as error:
        yield written, str(error)


def _csv_rows(text: str, template: RowTemplate) -> Iterator[_Row]:
    columns = template.columns
    for line in (one.rstrip("\r") for one in text.split("\n")):
        if not line.strip(" "):
            continue
        try:
            if columns is None:
                columns = tuple(name.strip() for name in split_cells(line, template.delimiters))
                if len(set(columns)) < len(columns):
                    raise ValueError(f"the header line has the same column twice: {', '.join(columns)}")
                continue
            yield line, cells_by_column(line, columns, template)
        except ValueError as error:
            yield line, str(error)
