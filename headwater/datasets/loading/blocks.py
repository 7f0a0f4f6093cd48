"""Files of RDF in blocks: the ids of some thousand statements, their texts, and the lines that are no statements.

N-Triples and N-Quads go through the compiled scanner in slices of whole lines; a bad line is reported, and the rest
goes on. A document of another format is parsed, written as N-Quads and scanned then, so that there is one way to ids;
it is one piece: where it breaks off, nothing of it counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
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
from headwater.terms.rdf_documents import BROKEN_PACKING, RdfSyntaxError, packing, rdf_format, read_quads, unpacked
from headwater.terms.scanning.formats import LineFormat
from headwater.terms.scanning.scanner import scan

SLICE_BYTES = 8 << 20
_DOCUMENT_QUADS = 50_000
_BY_LINE = {RdfFormat.N_TRIPLES: LineFormat.N_TRIPLES, RdfFormat.N_QUADS: LineFormat.N_QUADS}


@dataclass(frozen=True)
class Block:
    """Statements of a file (`rows`: graph, subject, predicate, object) with their texts.

    `end` is the offset in the unpacked file behind the block, `lines` the number of lines up to there; both are None
    within a document, whose blocks count all together when the one with `is_last` has come. `read` says how many bytes
    of the file itself were read so far.
    """

    rows: Ints
    texts: TermTexts
    bad: tuple[BadElement, ...] = ()
    end: int | None = None
    lines: int = 0
    read: int = 0
    is_last: bool = False


def blocks_of(path: Path, graph: int | None = None, start: int = 0, lines: int = 0) -> Iterator[Block]:
    """The blocks of a file from an offset on; `graph` is where triples go that are in no named graph."""
    format = rdf_format(path)
    by_line = _BY_LINE.get(format)
    found = _of_lines(path, by_line, start, lines) if by_line is not None else _of_document(path)
    for block in found:
        if graph is not None:
            block.rows[block.rows[:, 0] == NO_TERM, 0] = graph
        yield block


def _of_lines(path: Path, format: LineFormat, start: int, lines: int) -> Iterator[Block]:
    with open(path, "rb") as raw:
        stream = unpacked(raw, path)
        position, rest = start, b""
        try:
            stream.seek(start)
            while data := stream.read(SLICE_BYTES):
                cut = data.rfind(b"\n") + 1
                if not cut:
                    rest += data
                    continue
                whole, rest = rest + data[:cut], data[cut:]
                position += len(whole)
                yield _scanned(whole, path, format, lines, position, raw)
                lines += whole.count(b"\n")
        except BROKEN_PACKING as error:
            yield _broken(
                str(path), f"broken {packing(path)} file ({error}); what stands behind this line was not read", lines
            )
            rest = b""
        block = _scanned(rest, path, format, lines, position + len(rest), raw)
        yield replace(block, read=path.stat().st_size, is_last=True)


def _scanned(data: bytes, path: Path, format: LineFormat, lines: int, end: int, raw: IO[bytes]) -> Block:
    scanned = scan(data, format, source=str(path), first_line=lines + 1)
    rows = np.column_stack([scanned.graphs, scanned.triples])
    return Block(rows, scanned.texts(), scanned.bad, end, lines + data.count(b"\n"), raw.tell())


def _of_document(path: Path) -> Iterator[Block]:
    quads = read_quads(path)
    size = path.stat().st_size
    while True:
        try:
            some = list(islice(quads, _DOCUMENT_QUADS))
        except RdfSyntaxError as error:
            yield replace(_broken(str(path), f"{error.reason}; nothing of this file is loaded", error.line), read=size)
            return
        data = serialize(some, format=RdfFormat.N_QUADS) if some else b""
        assert data is not None
        scanned = scan(data, LineFormat.N_QUADS)
        rows = np.column_stack([scanned.graphs, scanned.triples])
        is_last = len(some) < _DOCUMENT_QUADS
        yield Block(rows, scanned.texts(), read=size if is_last else 0, is_last=is_last)
        if is_last:
            return


def _broken(source: str, reason: str, line: int | None) -> Block:
    """A block without statements that says why there are none."""
    empty = TermTexts(np.empty(0, np.int64), np.zeros(1, np.int64), np.empty(0, np.uint8))
    return Block(np.empty((0, 4), dtype=np.int64), empty, (BadElement(reason, "", source, (), line),), is_last=False)


Progress = Callable[["LoadProgress"], None]


@dataclass(frozen=True, slots=True)
class LoadProgress:
    """How far a load has come."""

    file: str
    bytes_read: int
    bytes_in_all: int
    statements: int
    bad: int
    doing: str = "reading"
