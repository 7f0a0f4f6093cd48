"""RDF files read in blocks: the ids of some thousand statements, their texts, and the lines that cannot be read.

N-Triples and N-Quads are scanned in slices of whole lines by the compiled scanner; a bad line is reported, and the rest
is read. They may also come from a stream that can be read once (`LineStream`). A document in another format is parsed,
written as N-Quads and scanned, so that ids are made in one way only. If it has a syntax error, nothing of it is loaded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import IO

import numpy as np
from pyoxigraph import RdfFormat, serialize

from headwater.datasets.mapped_files import Ints
from headwater.terms.ids.inline_layout import NO_TERM
from headwater.terms.ids.term_texts import TermTexts
from headwater.terms.model import BadElement
from headwater.terms.rdf_documents import (
    BROKEN_COMPRESSION,
    RdfSyntaxError,
    compression_of,
    decompress,
    rdf_format,
    read_quads,
)
from headwater.terms.scanning.formats import LineFormat
from headwater.terms.scanning.scanned_columns import ScannedColumns
from headwater.terms.scanning.scanner import scan

SLICE_BYTES = 8 << 20
_DOCUMENT_QUADS = 50_000
_NO_OWNERS: Mapping[int, bytes] = {}
COLLISION_REASON = (
    "a term of this statement has the same internal id as another term of the data set, which happens by chance; "
    "the statement is left out, because the two could not be told apart"
)
_BY_LINE = {RdfFormat.N_TRIPLES: LineFormat.N_TRIPLES, RdfFormat.N_QUADS: LineFormat.N_QUADS}


@dataclass(frozen=True)
class StatementBlock:
    """Statements of a file (`rows`: graph, subject, predicate, object) with their texts.

    `end` is the offset behind the block in the unpacked file, `lines` the number of lines before it. Within a document
    `end` is None: its blocks are loaded together when the one with `is_last` has come. `read` is how many bytes of the
    (packed) file were read so far.
    """

    rows: Ints
    texts: TermTexts
    bad: tuple[BadElement, ...] = ()
    end: int | None = None
    lines: int = 0
    read: int = 0
    is_last: bool = False


@dataclass(frozen=True)
class LineStream:
    """Lines of N-Quads, and so of N-Triples, that can be read once: standard input, a named pipe, an open file."""

    name: str
    open: Callable[[], AbstractContextManager[IO[bytes]]]


def read_stream_blocks(source: LineStream, graph: int | None = None) -> Iterator[StatementBlock]:
    """Read the blocks of a stream to its end; `read` counts what it gave so far."""
    with source.open() as stream:
        for block in _scan_lines(stream, source.name, LineFormat.N_QUADS, 0, 0, _NO_OWNERS):
            _name_graph(block, graph)
            yield replace(block, read=block.end or 0)


def _name_graph(block: StatementBlock, graph: int | None) -> None:
    """Put the statements that stand in no named graph into the graph with an id."""
    if graph is not None:
        block.rows[block.rows[:, 0] == NO_TERM, 0] = graph


def read_blocks(
    path: Path, graph: int | None = None, start: int = 0, lines: int = 0, owners: Mapping[int, bytes] = _NO_OWNERS
) -> Iterator[StatementBlock]:
    """Read the blocks of a file from an offset on; `graph` is the id of the graph for triples in no named graph.

    Of ids that two terms have by chance, `owners` has the text of the one whose statements are read.
    """
    format = rdf_format(path)
    by_line = _BY_LINE.get(format)
    blocks = _read_lines(path, by_line, start, lines, owners) if by_line is not None else _read_document(path, owners)
    for block in blocks:
        _name_graph(block, graph)
        yield block


def _read_lines(
    path: Path, format: LineFormat, start: int, lines: int, owners: Mapping[int, bytes]
) -> Iterator[StatementBlock]:
    """The blocks of a file of lines, from the offset `start` on, before which there are `lines` lines."""
    with open(path, "rb") as raw:
        stream = decompress(raw, path)
        try:
            stream.seek(start)
        except BROKEN_COMPRESSION as error:
            yield replace(_broken_block(str(path), error, lines), end=start, lines=lines, is_last=True)
            return
        for block in _scan_lines(stream, str(path), format, start, lines, owners):
            yield replace(block, read=path.stat().st_size if block.is_last else raw.tell())


def _scan_lines(
    stream: IO[bytes], name: str, format: LineFormat, start: int, lines: int, owners: Mapping[int, bytes]
) -> Iterator[StatementBlock]:
    """The blocks of what a stream still has, which begins at the offset `start`, behind so many lines."""
    position, rest = start, b""
    parts: list[bytes] = []
    try:
        while data := stream.read(SLICE_BYTES):
            cut = data.rfind(b"\n") + 1
            if not cut:
                parts.append(data)
                continue
            whole, rest = b"".join([rest, *parts, data[:cut]]), data[cut:]
            parts = []
            position += len(whole)
            yield _scan_block(whole, name, format, lines, position, owners)
            lines += whole.count(b"\n")
    except BROKEN_COMPRESSION as error:
        yield _broken_block(name, error, lines)
        rest, parts = b"", []
    rest = b"".join([rest, *parts])
    yield replace(_scan_block(rest, name, format, lines, position + len(rest), owners), is_last=True)


def _broken_block(name: str, error: Exception, lines: int) -> StatementBlock:
    reason = f"broken {compression_of(name)} file ({error}); what stands behind this line was not read"
    return _error_block(name, reason, lines)


def _scan_block(
    data: bytes, name: str, format: LineFormat, lines: int, end: int, owners: Mapping[int, bytes]
) -> StatementBlock:
    scanned = scan(data, format, source=name, first_line=lines + 1, has_checks=False)
    return replace(_block_of(scanned, name, owners), end=end, lines=lines + data.count(b"\n"))


def _block_of(scanned: ScannedColumns, source: str, owners: Mapping[int, bytes]) -> StatementBlock:
    """What was scanned, without the statements with a term whose id another term owns, which are bad elements."""
    rows = np.column_stack([scanned.graphs, scanned.triples])
    is_kept = np.ones(rows.shape[0], dtype=np.bool_)
    bad = list(scanned.bad)
    for row in np.flatnonzero(np.isin(rows, list(owners)).any(axis=1)).tolist() if owners else ():
        graph, *texts = scanned.statement_texts(row)
        if any(owners.get(one, text) != text for one, text in zip(rows[row].tolist(), (graph, *texts), strict=True)):
            is_kept[row] = False
            statement = b" ".join((*texts, *([graph] if graph else []), b".")).decode()
            bad.append(BadElement(COLLISION_REASON, statement, source))
    if is_kept.all():
        return StatementBlock(rows, scanned.texts(), scanned.bad)
    return StatementBlock(rows[is_kept], scanned.texts(is_kept), tuple(bad))


def _read_document(path: Path, owners: Mapping[int, bytes]) -> Iterator[StatementBlock]:
    """The blocks of a file that only a parser can split into statements; one bad element if it is broken."""
    quads = read_quads(path)
    size = path.stat().st_size
    while True:
        try:
            some = list(islice(quads, _DOCUMENT_QUADS))
        except RdfSyntaxError as error:
            yield replace(
                _error_block(str(path), f"{error.reason}; nothing of this file is loaded", error.line), read=size
            )
            return
        data = serialize(some, format=RdfFormat.N_QUADS) if some else b""
        assert data is not None
        block = _block_of(scan(data, LineFormat.N_QUADS, has_checks=False), str(path), owners)
        is_last = len(some) < _DOCUMENT_QUADS
        bad = tuple(replace(one, source=str(path), position=(), line=None) for one in block.bad)
        yield replace(block, bad=bad, read=size if is_last else 0, is_last=is_last)
        if is_last:
            return


def _error_block(source: str, reason: str, line: int | None) -> StatementBlock:
    """A block without statements, with the reason."""
    empty = TermTexts(np.empty(0, np.int64), np.zeros(1, np.int64), np.empty(0, np.uint8))
    return StatementBlock(
        np.empty((0, 4), dtype=np.int64), empty, (BadElement(reason, "", source, (), line),), is_last=False
    )
