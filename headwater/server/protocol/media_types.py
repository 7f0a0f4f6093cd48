"""Media types of results and graphs, and the choice among them by the Accept header of a request (RFC 9110, 12.5)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum

from pyoxigraph import RdfFormat

from headwater.server.protocol.data_service import AcceptedTypes


class ResultFormat(Enum):
    """The formats of rows and truth values."""

    JSON = "json"
    XML = "xml"
    CSV = "csv"
    TSV = "tsv"


_ROW_FORMATS = {
    "application/sparql-results+json": ResultFormat.JSON,
    "application/json": ResultFormat.JSON,
    "application/sparql-results+xml": ResultFormat.XML,
    "application/xml": ResultFormat.XML,
    "text/xml": ResultFormat.XML,
    "text/csv": ResultFormat.CSV,
    "text/tab-separated-values": ResultFormat.TSV,
}
_BOOLEAN_FORMATS = {name: one for name, one in _ROW_FORMATS.items() if one in (ResultFormat.JSON, ResultFormat.XML)}
GRAPH_FORMATS = {
    "text/turtle": RdfFormat.TURTLE,
    "application/n-triples": RdfFormat.N_TRIPLES,
    "application/rdf+xml": RdfFormat.RDF_XML,
    "application/ld+json": RdfFormat.JSON_LD,
    "application/n-quads": RdfFormat.N_QUADS,
    "application/trig": RdfFormat.TRIG,
    "text/n3": RdfFormat.N3,
    "application/x-turtle": RdfFormat.TURTLE,
    "text/plain": RdfFormat.N_TRIPLES,
}
"""By media type the format in which graphs are read and written, the preferred one first."""
_OLDER_TYPES = ("application/json", "application/xml", "text/xml", "application/x-turtle", "text/plain", "text/n3")
MAIN_RESULT_TYPES = tuple(name for name in _ROW_FORMATS if name not in _OLDER_TYPES)
MAIN_GRAPH_TYPES = tuple(name for name in GRAPH_FORMATS if name not in _OLDER_TYPES)
"""The types that are offered where some are listed; the others are what older clients say."""


def row_format(media_type: str) -> ResultFormat:
    """The format of rows of a media type that was chosen."""
    return _ROW_FORMATS[media_type]


def boolean_format(media_type: str) -> ResultFormat:
    """The format of a truth value of a media type that was chosen."""
    return _BOOLEAN_FORMATS[media_type]


def accepted_types(accept: str | None) -> AcceptedTypes:
    """The types that a client prefers for the three kinds of results.

    A truth value has no form in CSV and TSV. Who asks for all results in these gets it in JSON, and not an error.
    """
    rows = choose_type(accept, _ROW_FORMATS)
    boolean = choose_type(accept, _BOOLEAN_FORMATS) or (None if rows is None else MAIN_RESULT_TYPES[0])
    return AcceptedTypes(rows, boolean, choose_graph_type(accept))


def choose_graph_type(accept: str | None) -> str | None:
    """The type that a client prefers for a graph."""
    return choose_type(accept, GRAPH_FORMATS)


def choose_type(accept: str | None, offered: Iterable[str]) -> str | None:
    """The type of those offered that a client prefers, the first one among equals; None if it takes none of them."""
    names = list(offered)
    if accept is None or not accept.strip():
        return names[0]
    ranges = [_read_range(part) for part in accept.split(",") if part.strip()]
    best, best_quality = None, 0.0
    for name in names:
        quality = _quality_of(name, ranges)
        if quality > best_quality:
            best, best_quality = name, quality
    return best


def _read_range(part: str) -> tuple[str, float]:
    """A media range of an Accept header and its quality."""
    name, *parameters = (piece.strip() for piece in part.split(";"))
    quality = 1.0
    for parameter in parameters:
        key, _, value = parameter.partition("=")
        if key.strip().lower() == "q":
            try:
                quality = min(1.0, max(0.0, float(value)))
            except ValueError:
                quality = 0.0
    return name.lower(), quality


def _quality_of(name: str, ranges: Sequence[tuple[str, float]]) -> float:
    """The quality of a type: that of the most specific range that has it."""
    family = name.partition("/")[0] + "/*"
    for wanted in (name, family, "*/*"):
        qualities = [quality for one, quality in ranges if one == wanted]
        if qualities:
            return max(qualities)
    return 0.0


def with_charset(media_type: str) -> str:
    """A media type as Content-Type says it: texts with their encoding."""
    return f"{media_type}; charset=utf-8" if media_type.startswith("text/") else media_type
