"""Streams in the vocabulary VoCaLS: what a stream is, and where it can be had (https://w3id.org/rsp/vocals)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyoxigraph import RdfFormat, serialize

from headwater.server.answers.result_forms import GRAPH_FORMS
from headwater.terms.model import RDF, BlankNode, Literal, NamedNode, Triple

VOCALS = "http://w3id.org/rsp/vocals#"
DCAT = "http://www.w3.org/ns/dcat#"
DCTERMS = "http://purl.org/dc/terms/"
_FORMATS = "http://www.w3.org/ns/formats/"
_PREFIXES = {"vocals": VOCALS, "dcat": DCAT, "dcterms": DCTERMS, "formats": _FORMATS}


def describe_stream(address: str, stream: Mapping[str, Any], form: str) -> bytes:
    """The description of a stream, in one of the forms of RDF. `address` is where it is fed."""
    subject, endpoint = NamedNode(stream.get("iri") or address), BlankNode("endpoint")
    triples = [
        Triple(NamedNode(address), NamedNode(RDF + "type"), NamedNode(VOCALS + "StreamDescriptor")),
        Triple(NamedNode(address), NamedNode(DCAT + "dataset"), subject),
        Triple(subject, NamedNode(RDF + "type"), NamedNode(VOCALS + "RDFStream")),
        Triple(subject, NamedNode(DCTERMS + "title"), Literal(str(stream["name"]))),
        Triple(subject, NamedNode(VOCALS + "hasEndpoint"), endpoint),
        Triple(endpoint, NamedNode(RDF + "type"), NamedNode(VOCALS + "StreamEndpoint")),
        Triple(endpoint, NamedNode(DCAT + "accessURL"), NamedNode(address)),
        Triple(endpoint, NamedNode(DCTERMS + "format"), NamedNode(_FORMATS + "N-Quads")),
    ]
    format = GRAPH_FORMS[form]
    prefixes = _PREFIXES if format is RdfFormat.TURTLE else None
    return serialize(triples, format=format, prefixes=prefixes) or b""
