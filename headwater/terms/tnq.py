"""Timed N-Quads (`.tnq`): one statement per line, `TIMESTAMP<TAB>STATEMENT`.

```
# two elements: the first has two triples
1000	<http://ex/s1> <http://ex/value> "21.5"^^<http://www.w3.org/2001/XMLSchema#double> .
1000	<http://ex/s1> <http://ex/unit> "C" .
2014-08-01T07:50:00Z	<http://ex/s2> <http://ex/value> "19" <http://ex/graph7> .
```

The timestamp is an integer of milliseconds or an xsd:dateTime. Consecutive lines with the same timestamp and
graph name are one element. Blank lines and lines that begin with `#` mean nothing. A broken line is one
`BadElement`; the element around it goes on. Blank nodes keep their labels: a label means the same node
wherever it is read, in this file, in others, and over connections.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple, TypeAlias

from pyoxigraph import DefaultGraph

from headwater.terms.model import BadElement, BlankNode, Element, NamedNode, Quad, Triple
from headwater.terms.statements import graph_label, parse_statement, parse_statements
from headwater.terms.text_lines import (
    LineNumbers,
    Lines,
    LongLine,
    OffsetLine,
    line_to_text,
    lines_backwards,
    offset_lines,
)
from headwater.terms.timestamps import parse_time

_BLOCK_LINES = 4096
_FIRST_LINES = 16
"""Blocks begin small and grow: who only looks at the first elements has few lines parsed."""
_LOOKAHEAD_LINES = 64
_CACHED_TIMES = 1 << 16

ElementKey: TypeAlias = tuple[int, NamedNode | BlankNode | DefaultGraph]
"""What the consecutive lines of one element have in common: the time and the graph name."""


class _Statement(NamedTuple):
    position: int
    time: int
    quad: Quad


def read_tnq(
    lines: Lines,
    source: str,
    first_position: int = 0,
    first_line: int | Callable[[], int] = 1,
    *,
    end: int | None = None,
    continues: ElementKey | None = None,
) -> Iterator[Element | BadElement]:
    """The elements of timed N-Quads in the order of their positions, which are the byte offsets of lines.

    Of a range that ends at the byte `end`, elements are read that begin before it; their lines may lie
    behind. `continues` is the key of the element that was open before the first line (`find_key_before`): the
    lines that belong to it are left to the range that it begins in.
    """
    numbered = offset_lines(lines, first_position)
    statements = _read_statements(_blocks(numbered, end), source, LineNumbers(first_line))
    return _group_lines(statements, end, continues)


def find_key_before(path: Path, offset: int) -> ElementKey | None:
    """The key of the last good line before the line that begins at `offset`, if there is one."""
    for line in lines_backwards(path, offset):
        time_text, tab, statement = line.partition(b"\t")
        if not tab or isinstance(line, LongLine) or _is_meaningless(line):
            continue
        time = _time_or_reason(time_text)
        quad = parse_statement(statement)
        if not isinstance(time, str) and not isinstance(quad, str):
            return time, quad.graph_name
    return None


def find_next_element(lines: Lines, first_position: int, key: ElementKey) -> int | None:
    """The position of the first good line that does not belong to the element of a key, which is open before."""
    blocks = _growing_blocks(offset_lines(lines, first_position), _LOOKAHEAD_LINES)
    for statement in _read_statements(blocks, "", LineNumbers(1)):
        if isinstance(statement, _Statement) and (statement.time, statement.quad.graph_name) != key:
            return statement.position
    return None


def _is_meaningless(line: bytes) -> bool:
    return line.startswith(b"#") or not line.strip()


def _blocks(lines: Iterator[OffsetLine], end: int | None) -> Iterator[list[OffsetLine]]:
    """Blocks to parse together; behind the end of a range small ones, because little of them is needed."""
    for block in _growing_blocks(lines, _BLOCK_LINES):
        yield block
        if end is not None and block[-1][0] >= end:
            break
    yield from _growing_blocks(lines, _LOOKAHEAD_LINES)


def _growing_blocks(lines: Iterator[OffsetLine], most: int) -> Iterator[list[OffsetLine]]:
    """Lines in blocks, each twice as long as the one before, up to so many lines."""
    size = _FIRST_LINES
    while block := list(islice(lines, size)):
        yield block
        size = min(2 * size, most)


def _read_statements(
    blocks: Iterable[list[OffsetLine]], source: str, numbers: LineNumbers
) -> Iterator[_Statement | BadElement]:
    """The statements of lines with their times, parsed block by block; a broken line is a bad element."""
    times: dict[bytes, int | str] = {}
    for block in blocks:
        if len(times) > _CACHED_TIMES:
            times.clear()
        entries: list[tuple[OffsetLine, int | str]] = []
        texts: list[bytes] = []
        for line in block:
            text = line[2]
            if _is_meaningless(text):
                continue
            time_text, tab, statement = text.partition(b"\t")
            time = times.get(time_text) if tab else "no tab between the timestamp and the statement"
            if isinstance(text, LongLine):
                time = text.reason
            if time is None:
                time = times[time_text] = _time_or_reason(time_text)
            entries.append((line, time))
            if not isinstance(time, str):
                texts.append(statement)
        quads = iter(parse_statements(texts))
        for line, time in entries:
            if isinstance(time, str):
                yield _bad_line(line, time, source, numbers)
                continue
            quad = next(quads)
            if isinstance(quad, str):
                yield _bad_line(line, quad, source, numbers)
            else:
                yield _Statement(line[0], time, quad)


def _time_or_reason(text: bytes) -> int | str:
    try:
        return parse_time(text.decode())
    except ValueError as error:
        return str(error)


def _bad_line(line: OffsetLine, reason: str, source: str, numbers: LineNumbers) -> BadElement:
    position, count, text = line
    return BadElement(reason, line_to_text(text), source, (position,), numbers.number(count))


def _group_lines(
    statements: Iterable[_Statement | BadElement], end: int | None, continues: ElementKey | None
) -> Iterator[Element | BadElement]:
    """Group consecutive statements with the same time and graph into elements that begin before `end`.

    The element that `continues` names began before this range and is skipped. Bad lines follow the element around them.
    """
    position = -1
    time, graph = continues if continues is not None else (0, None)
    triples: list[Triple] | None = None
    bad_inside: list[BadElement] = []
    for statement in statements:
        if isinstance(statement, BadElement):
            if end is not None and statement.position[0] >= end:
                if triples is None:
                    return
            elif triples is None:
                yield statement
            else:
                bad_inside.append(statement)
            continue
        offset, statement_time, quad = statement
        if statement_time == time and quad.graph_name == graph:
            if triples is not None:
                triples.append(quad.triple)
                continue
            if end is None or offset < end:
                continue
        if triples is not None:
            yield Element(time, tuple(triples), graph_label(graph), (position,))
            yield from bad_inside
            bad_inside.clear()
        if end is not None and offset >= end:
            return
        position, time, graph, triples = offset, statement_time, quad.graph_name, [quad.triple]
    if triples is not None:
        yield Element(time, tuple(triples), graph_label(graph), (position,))
        yield from bad_inside
