"""Results as bytes, in the formats that a client may ask for."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence

from pyoxigraph import RdfFormat, serialize

from headwater.server.problems import Problem
from headwater.server.protocol.media_types import GRAPH_FORMATS, ResultFormat, boolean_format, row_format
from headwater.terms.model import XSD, Literal, NamedNode, Row, Term, Triple
from headwater.terms.writing import (
    boolean_to_json,
    term_to_json,
    write_csv,
    write_ntriples,
    write_tsv,
    write_turtle,
    write_xml,
    write_xml_boolean,
)

_REMEMBERED_TERMS = 1 << 16
_STRING = XSD + "string"
_quoted = json.encoder.encode_basestring


def write_rows(variables: Sequence[str], rows: Iterable[Row], media_type: str) -> bytes:
    """The rows of a SELECT in the format of a media type."""
    match row_format(media_type):
        case ResultFormat.JSON:
            return "".join(_json_parts(variables, rows)).encode("utf-8", "surrogatepass")
        case ResultFormat.XML:
            return write_xml(variables, rows).encode()
        case ResultFormat.CSV:
            return write_csv(variables, rows).encode()
        case ResultFormat.TSV:
            return write_tsv(variables, rows).encode()


def _json_parts(variables: Sequence[str], rows: Iterable[Row]) -> Iterator[str]:
    """SPARQL results in JSON, row by row; each different term is written once."""
    yield f'{{"head": {{"vars": {json.dumps(list(variables))}}}, "results": {{"bindings": ['
    names = [json.dumps(variable) + ": " for variable in variables]
    texts: dict[Term, str] = {}
    separator = "\n"
    for row in rows:
        cells = []
        for name, term in zip(names, row, strict=True):
            if term is None:
                continue
            text = texts.get(term)
            if text is None:
                if len(texts) >= _REMEMBERED_TERMS:
                    texts.clear()
                text = texts[term] = _json_term(term)
            cells.append(name + text)
        yield f"{separator}{{{', '.join(cells)}}}"
        separator = ",\n"
    yield "\n]}}\n"


def _json_term(term: Term) -> str:
    """A term as the value of a binding, with a short way for the most frequent kinds."""
    if isinstance(term, NamedNode):
        return f'{{"type": "uri", "value": {_quoted(term.value)}}}'
    if isinstance(term, Literal) and term.language is None:
        datatype = term.datatype.value
        shown = "" if datatype == _STRING else f', "datatype": {_quoted(datatype)}'
        return f'{{"type": "literal", "value": {_quoted(term.value)}{shown}}}'
    return json.dumps(term_to_json(term), ensure_ascii=False)


def write_boolean(value: bool, media_type: str) -> bytes:
    """The truth value of an ASK in the format of a media type."""
    if boolean_format(media_type) is ResultFormat.XML:
        return write_xml_boolean(value).encode()
    return (json.dumps(boolean_to_json(value)) + "\n").encode()


def write_graph(triples: Sequence[Triple], media_type: str, prefixes: Mapping[str, str] | None = None) -> bytes:
    """A graph in the format of a media type; prefixes that are no IRIs are left out."""
    format = GRAPH_FORMATS[media_type]
    if format in (RdfFormat.N_TRIPLES, RdfFormat.N_QUADS):
        return write_ntriples(triples).encode()
    if format is RdfFormat.TURTLE:
        try:
            return write_turtle(triples, prefixes).encode()
        except ValueError:
            return write_turtle(triples).encode()
    try:
        return serialize(triples, format=format) or b""
    except (ValueError, OSError) as error:
        raise Problem(
            406, "The graph has no such form", f"It cannot be written as {media_type} ({error}): accept text/turtle."
        ) from None
