"""What a service can do and what its data set has, as RDF: SPARQL 1.1 Service Description, and VoID."""

from __future__ import annotations

from collections.abc import Iterator

from pyoxigraph import BlankNode

from headwater.server.protocol.data_service import DataDescription
from headwater.server.protocol.media_types import MAIN_GRAPH_TYPES, MAIN_RESULT_TYPES
from headwater.terms.model import RDF, XSD, Literal, NamedNode, Triple

SD = "http://www.w3.org/ns/sparql-service-description#"
VOID = "http://rdfs.org/ns/void#"
_FORMATS = "http://www.w3.org/ns/formats/"
_FORMAT_NAMES = {
    "application/sparql-results+json": "SPARQL_Results_JSON",
    "application/sparql-results+xml": "SPARQL_Results_XML",
    "text/csv": "SPARQL_Results_CSV",
    "text/tab-separated-values": "SPARQL_Results_TSV",
    "text/turtle": "Turtle",
    "application/n-triples": "N-Triples",
    "application/rdf+xml": "RDF_XML",
    "application/ld+json": "JSON-LD",
    "application/n-quads": "N-Quads",
    "application/trig": "TriG",
}
_PREFIXES = {"sd": SD, "void": VOID, "formats": _FORMATS}
_MOST_GRAPHS = 1000
"""So many graphs and properties are listed; the counts are of all."""

Description = tuple[list[Triple], dict[str, str]]
"""Triples, and prefixes to write them with."""


def describe_service(data: DataDescription, endpoint: str) -> Description:
    """What the endpoint at an address understands and writes, and the graphs of its data set."""
    return list(_service_triples(data, NamedNode(endpoint))), _PREFIXES


def describe_dataset(data: DataDescription, endpoint: str, address: str) -> Description:
    """The sizes of the data set, by graph and by property; `address` is that of the description itself."""
    return list(_dataset_triples(data, NamedNode(endpoint), NamedNode(f"{address}#data"))), _PREFIXES


def _service_triples(data: DataDescription, endpoint: NamedNode) -> Iterator[Triple]:
    service, dataset, default = BlankNode("service"), BlankNode("dataset"), BlankNode("default")
    yield Triple(service, _RDF_TYPE, _sd("Service"))
    yield Triple(service, _sd("endpoint"), endpoint)
    for language in ("SPARQL10Query", "SPARQL11Query", "SPARQL11Update"):
        yield Triple(service, _sd("supportedLanguage"), _sd(language))
    yield Triple(service, _sd("feature"), _sd("BasicFederatedQuery"))
    for media_type in (*MAIN_RESULT_TYPES, *MAIN_GRAPH_TYPES):
        yield Triple(service, _sd("resultFormat"), NamedNode(_FORMATS + _FORMAT_NAMES[media_type]))
    for media_type in MAIN_GRAPH_TYPES:
        yield Triple(service, _sd("inputFormat"), NamedNode(_FORMATS + _FORMAT_NAMES[media_type]))
    yield Triple(service, _sd("defaultDataset"), dataset)
    yield Triple(dataset, _RDF_TYPE, _sd("Dataset"))
    yield Triple(dataset, _sd("defaultGraph"), default)
    yield Triple(default, _RDF_TYPE, _sd("Graph"))
    named = [one for one in data.graphs if one.name is not None]
    sizes = {one.name: one.statements for one in data.graphs}
    yield Triple(default, _void("triples"), _number(sizes.get(None, 0)))
    for place, graph in enumerate(named[:_MOST_GRAPHS]):
        entry, content = BlankNode(f"entry{place}"), BlankNode(f"graph{place}")
        yield Triple(dataset, _sd("namedGraph"), entry)
        yield Triple(entry, _RDF_TYPE, _sd("NamedGraph"))
        yield Triple(entry, _sd("name"), NamedNode(str(graph.name)))
        yield Triple(entry, _sd("graph"), content)
        yield Triple(content, _RDF_TYPE, _sd("Graph"))
        yield Triple(content, _void("triples"), _number(graph.statements))


def _dataset_triples(data: DataDescription, endpoint: NamedNode, dataset: NamedNode) -> Iterator[Triple]:
    yield Triple(dataset, _RDF_TYPE, _void("Dataset"))
    yield Triple(dataset, _void("sparqlEndpoint"), endpoint)
    yield Triple(dataset, _void("triples"), _number(data.statements))
    yield Triple(dataset, _void("properties"), _number(len(data.properties)))
    for place, one in enumerate(data.properties[:_MOST_GRAPHS]):
        part = BlankNode(f"property{place}")
        yield Triple(dataset, _void("propertyPartition"), part)
        yield Triple(part, _void("property"), NamedNode(one.iri))
        yield Triple(part, _void("triples"), _number(one.statements))
    for place, graph in enumerate([one for one in data.graphs if one.name is not None][:_MOST_GRAPHS]):
        part = BlankNode(f"graph{place}")
        yield Triple(dataset, _void("subset"), part)
        yield Triple(part, _RDF_TYPE, _void("Dataset"))
        yield Triple(part, _sd("name"), NamedNode(str(graph.name)))
        yield Triple(part, _void("triples"), _number(graph.statements))


_RDF_TYPE = NamedNode(RDF + "type")


def _sd(name: str) -> NamedNode:
    return NamedNode(SD + name)


def _void(name: str) -> NamedNode:
    return NamedNode(VOID + name)


def _number(count: int) -> Literal:
    return Literal(str(count), datatype=NamedNode(XSD + "integer"))
