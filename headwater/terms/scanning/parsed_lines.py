"""Lines that the scanner is not sure of, read by the parser, so that the result is the line-by-line reader's.

Such lines have escapes that change the text, letters beyond ASCII in IRIs, triple terms, a comment at their end, or are
wrong. The reasons of the parser go into the reports.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

from pyoxigraph import DefaultGraph, RdfFormat

from headwater.terms.checking.checked_parsing import parse_quads
from headwater.terms.model import BadElement, BlankNode, NamedNode, Quad, Triple
from headwater.terms.scanning.formats import LineFormat
from headwater.terms.statements import graph_term, line_reason
from headwater.terms.text_lines import line_to_text
from headwater.terms.tnq import read_tnq

_BLOCK_LINES = 4096


class ParsedStatement(NamedTuple):
    """A statement of a line, and its time (0 in formats without times)."""

    time: int
    triple: Triple
    graph: NamedNode | BlankNode | DefaultGraph


class RefusedLine(NamedTuple):
    """Why a line is no statement, and the line as reports show it."""

    reason: str
    text: str


LineContent: TypeAlias = list[ParsedStatement] | RefusedLine
"""The statements of a line: one in timed N-Quads; in documents none (a comment) or several (carriage returns)."""


def read_lines_by_parser(lines: Sequence[bytes], format: LineFormat) -> Iterator[LineContent]:
    """The statements of each line. Lines have no line feed; in timed N-Quads none is blank or a comment."""
    for start in range(0, len(lines), _BLOCK_LINES):
        block = lines[start : start + _BLOCK_LINES]
        try:
            yield from _read_block(block, format)
        except MemoryError:
            # The parser's limit for the length of a line.
            for line in block:
                yield _read_long_line(line, format)


def _read_long_line(line: bytes, format: LineFormat) -> LineContent:
    try:
        (content,) = _read_block([line], format)
    except MemoryError as error:
        return RefusedLine(str(error), line_to_text(line.rstrip(b"\r")))
    return content


def _read_block(lines: Sequence[bytes], format: LineFormat) -> list[LineContent]:
    return _read_timed_lines(lines) if format is LineFormat.TNQ else _read_untimed_lines(lines, format.rdf_format)


def _read_timed_lines(lines: Sequence[bytes]) -> list[LineContent]:
    """Lines by the reader of timed N-Quads; its elements are taken apart into lines again."""
    # At the position 0 the reader would look for a byte order mark, which is gone already.
    first_position = 1
    found = list(read_tnq((line + b"\n" for line in lines), "", first_position))
    refused = {item.position[0]: item for item in found if isinstance(item, BadElement)}
    statements = (
        ParsedStatement(item.time, triple, DefaultGraph() if item.graph is None else graph_term(item.graph))
        for item in found
        if not isinstance(item, BadElement)
        for triple in item.triples
    )
    contents: list[LineContent] = []
    position = first_position
    for line in lines:
        bad = refused.get(position)
        contents.append([next(statements)] if bad is None else RefusedLine(bad.reason, bad.text))
        position += len(line) + 1
    return contents


def _read_untimed_lines(lines: Sequence[bytes], format: RdfFormat) -> list[LineContent]:
    block = b"\n".join(lines)
    # As in `headwater.terms.statements`: in one go only where nothing hides behind a carriage return.
    if b"\r" not in block:
        try:
            quads = parse_quads(block, format)
        except SyntaxError:
            pass
        else:
            if len(quads) == len(lines):
                return [_to_statements([quad]) for quad in quads]
    return [_read_untimed_line(line, format) for line in lines]


def _read_untimed_line(line: bytes, format: RdfFormat) -> LineContent:
    try:
        return _to_statements(parse_quads(line, format))
    except SyntaxError as error:
        return RefusedLine(line_reason(error, line), line_to_text(line.rstrip(b"\r")))


def _to_statements(quads: Iterable[Quad]) -> LineContent:
    return [ParsedStatement(0, quad.triple, quad.graph_name) for quad in quads]
