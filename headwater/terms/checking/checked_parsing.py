"""The one way to the parsers of pyoxigraph: what could end the process, or use up its memory, is refused before.

- Nesting is limited (`nesting`).
- Entities of XML may be short names for a text, as in many ontologies. One that is made of others is refused: a few
  hundred bytes of them stand for as many megabytes as their writer likes.
- A term longer than the parsers take is an error of syntax, not of memory.

All errors are `SyntaxError`, as the parsers raise it themselves, so that a reader has one kind of mistake to report.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from typing import IO, cast

from pyoxigraph import (
    QueryBoolean,
    QueryResultsFormat,
    QuerySolutions,
    RdfFormat,
    parse,
    parse_query_results,
)

from headwater.terms.checking.input_limits import LARGEST_TERM
from headwater.terms.checking.nesting import NestingCheck, Syntax, check_nesting
from headwater.terms.model import Literal, Quad

_SYNTAXES = {
    RdfFormat.N_TRIPLES: Syntax.LINES,
    RdfFormat.N_QUADS: Syntax.LINES,
    RdfFormat.TURTLE: Syntax.TURTLE,
    RdfFormat.TRIG: Syntax.TURTLE,
    RdfFormat.N3: Syntax.TURTLE,
    RdfFormat.JSON_LD: Syntax.JSON,
    RdfFormat.STREAMING_JSON_LD: Syntax.JSON,
    RdfFormat.RDF_XML: Syntax.RDF_XML,
}
_ENTITY = re.compile(rb"<!ENTITY", re.IGNORECASE)
_PLAIN_ENTITY = re.compile(
    rb"""<!ENTITY\s{1,64}[\w:.-]{1,64}\s{1,64}(?:"[^"&%<>]{0,256}"|'[^'&%<>]{0,256}')\s{0,64}>"""
)
_LONGEST_ENTITY = 1024
"""No declaration that is taken has more bytes."""


def parse_quads(text: bytes, format: RdfFormat, base_iri: str | None = None) -> list[Quad]:
    """All statements of a text."""
    check_text(text, format)
    try:
        quads = list(parse(text, format=format, base_iri=base_iri))
    except MemoryError as error:
        raise _too_long(error) from None
    if format == RdfFormat.RDF_XML:
        for quad in quads:
            _check_length(quad)
    return quads


def read_document(source: bytes | IO[bytes], format: RdfFormat, base_iri: str | None = None) -> Iterator[Quad]:
    """The statements of a document, one after the other; a file is read and checked in pieces."""
    is_xml = format == RdfFormat.RDF_XML
    if isinstance(source, bytes):
        check_text(source, format)
    checked = source if isinstance(source, bytes) else cast(IO[bytes], _CheckedReader(source, format))
    try:
        for quad in parse(checked, format=format, base_iri=base_iri):
            if is_xml:
                _check_length(quad)
            yield quad
    except MemoryError as error:
        raise _too_long(error) from None


def check_text(text: bytes, format: RdfFormat) -> None:
    """Refuse a text that must not go to the parser of its format."""
    check_nesting(text, _SYNTAXES[format])
    if format == RdfFormat.RDF_XML:
        _EntityCheck().add(text, is_last=True)


def parse_results(text: bytes | str, format: QueryResultsFormat) -> QuerySolutions | QueryBoolean:
    """The rows of a SPARQL result, or its truth value."""
    content = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    if format == QueryResultsFormat.JSON:
        check_nesting(content, Syntax.JSON)
    elif format == QueryResultsFormat.XML:
        if _ENTITY.search(content):
            raise SyntaxError("a SPARQL result with entities of XML is not read")
        check_nesting(content, Syntax.XML_RESULTS)
    else:
        check_nesting(content, Syntax.LINES)
    return parse_query_results(text, format=format)


class _CheckedReader(io.RawIOBase):
    """Reads a document for its parser and checks each piece before it is given on."""

    def __init__(self, source: IO[bytes], format: RdfFormat) -> None:
        self._source = source
        self._nesting = NestingCheck(_SYNTAXES[format])
        self._entities = _EntityCheck() if format == RdfFormat.RDF_XML else None

    def read(self, size: int = -1) -> bytes:
        piece = self._source.read(size)
        self._nesting.add(piece)
        if self._entities is not None:
            self._entities.add(piece, is_last=not piece)
        return piece


class _EntityCheck:
    """Finds declarations of entities in a document that comes in pieces."""

    def __init__(self) -> None:
        self._rest = b""

    def add(self, piece: bytes, *, is_last: bool) -> None:
        text = self._rest + piece
        for found in _ENTITY.finditer(text):
            is_cut = text.find(b">", found.start()) < 0
            if is_cut and not is_last and len(text) - found.start() < _LONGEST_ENTITY:
                break
            if _PLAIN_ENTITY.match(text, found.start()) is None:
                raise SyntaxError(
                    "an XML entity that is made of others, comes from outside or is longer than 256 bytes is not read"
                )
        self._rest = text[-_LONGEST_ENTITY:]


def _too_long(error: MemoryError) -> SyntaxError:
    return SyntaxError(f"a term or statement is longer than {LARGEST_TERM:,} bytes ({error})")


def _check_length(quad: Quad) -> None:
    value = quad.object
    if isinstance(value, Literal) and len(value.value) > LARGEST_TERM // 4 and len(value.value.encode()) > LARGEST_TERM:
        raise SyntaxError(f"a literal is longer than {LARGEST_TERM:,} bytes")
