"""The linked data of a server, with the verbs of a `DataSet`: asked and changed over the protocols of SPARQL."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Protocol

import httpx
from pyoxigraph import DefaultGraph, QueryBoolean, QueryResultsFormat, QuerySolutions, RdfFormat

from headwater.errors import SettingError
from headwater.terms.checking.checked_parsing import parse_quads, parse_results
from headwater.terms.model import NamedNode, Quad, Row, Triple
from headwater.terms.names import name_to_iri
from headwater.terms.writing import write_ntriples

_QUERY, _UPDATE = "application/sparql-query", "application/sparql-update"
_ACCEPTED = "application/sparql-results+json, application/n-triples;q=0.9"
_TYPES = {
    ".ttl": "text/turtle",
    ".nt": "application/n-triples",
    ".rdf": "application/rdf+xml",
    ".jsonld": "application/ld+json",
}


class Requests(Protocol):
    """Sends requests to a server."""

    def request(self, method: str, path: str, *, query: str = "", **arguments: Any) -> httpx.Response: ...


class RemoteDataSet:
    """The linked data of a server."""

    def __init__(self, server: Requests) -> None:
        self._server = server

    def query(self, text: str) -> list[Row] | bool | list[Triple]:
        """What a SPARQL query gives: rows of SELECT, the truth value of ASK, or triples."""
        headers = {"Content-Type": _QUERY, "Accept": _ACCEPTED}
        response = self._server.request("POST", "/sparql", content=_bytes(text), headers=headers)
        if "json" not in response.headers["content-type"]:
            return [quad.triple for quad in parse_quads(response.content, RdfFormat.N_TRIPLES)]
        found = parse_results(response.text, QueryResultsFormat.JSON)
        if isinstance(found, QueryBoolean):
            return bool(found)
        assert isinstance(found, QuerySolutions)
        names = [variable.value for variable in found.variables]
        return [tuple(solution[name] for name in names) for solution in found]

    def update(self, text: str) -> None:
        """Do a SPARQL Update, whole or not at all."""
        self._server.request("POST", "/sparql", content=_bytes(text), headers={"Content-Type": _UPDATE})

    def insert(self, quads: Iterable[Quad]) -> None:
        """Add statements."""
        self._change("INSERT DATA", quads)

    def remove(self, quads: Iterable[Quad]) -> None:
        """Remove statements."""
        self._change("DELETE DATA", quads)

    def add(self, data: str | Path | Iterable[Quad], graph: str | None = None) -> None:
        """Add an RDF file of this machine, or quads; what stands in no named graph goes into `graph`."""
        if not isinstance(data, str | Path):
            name = None if graph is None else _graph(graph)
            self.insert(one if name is None or not _is_default(one) else _in_graph(one, name) for one in data)
            return
        path = Path(data)
        media_type = _TYPES.get(path.suffix)
        if media_type is None:
            raise SettingError(f"{path} is none of {', '.join(_TYPES)}: a server gets other data from its [[data]]")
        try:
            content = path.read_bytes()
        except OSError as error:
            raise SettingError(f"{path} cannot be read ({error.strerror})") from None
        place = {"default": ""} if graph is None else {"graph": _graph(graph).value}
        self._server.request("POST", "/data", params=place, content=content, headers={"Content-Type": media_type})

    def _change(self, verb: str, quads: Iterable[Quad]) -> None:
        by_graph: dict[str, list[Triple]] = {}
        for quad in quads:
            by_graph.setdefault("" if _is_default(quad) else str(quad.graph_name), []).append(quad.triple)
        parts = []
        for name, triples in by_graph.items():
            text = write_ntriples(triples)
            parts.append(f"GRAPH {name} {{ {text} }}" if name else text)
        if parts:
            self.update(f"{verb} {{ {' '.join(parts)} }}")


def _in_graph(quad: Quad, graph: NamedNode) -> Quad:
    return Quad(quad.subject, quad.predicate, quad.object, graph)


def _graph(name: str) -> NamedNode:
    return name_to_iri(name)


def _is_default(quad: Quad) -> bool:
    return isinstance(quad.graph_name, DefaultGraph)


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
