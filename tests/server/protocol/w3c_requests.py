"""The W3C tests of the protocols and of updates, read from their manifests."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from pyoxigraph import BlankNode, Literal, NamedNode, Store

from headwater.conformance.manifests import file_of
from headwater.terms.model import RDF
from headwater.terms.rdf_documents import read_quads

MF = "http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#"
UT = "http://www.w3.org/2009/sparql/tests/test-update#"
HT = "http://www.w3.org/2011/http#"
CNT = "http://www.w3.org/2011/content#"
STATUSES = "http://www.w3.org/2011/http-statusCodes#"
RDFS_LABEL = "http://www.w3.org/2000/01/rdf-schema#label"
Term: TypeAlias = Any
"""A node of a manifest: an IRI, a blank node or a literal."""
_NAMED_STATUSES = {"OK": "200", "Created": "201", "NoContent": "204", "NotFound": "404"}


class Facts:
    """The triples of a manifest."""

    def __init__(self, manifest: Path) -> None:
        self._store = Store()
        self._store.extend(read_quads(manifest))

    def values(self, subject: Term, predicate: str) -> list[Term]:
        return [quad.object for quad in self._store.quads_for_pattern(subject, NamedNode(predicate), None)]

    def value(self, subject: Term, predicate: str) -> Term | None:
        return next(iter(self.values(subject, predicate)), None)

    def text(self, subject: Term, predicate: str) -> str:
        found = self.value(subject, predicate)
        return "" if found is None else found.value

    def listed(self, node: Term | None) -> Iterator[Term]:
        while isinstance(node, BlankNode):
            first = self.value(node, RDF + "first")
            assert first is not None
            yield first
            node = self.value(node, RDF + "rest")

    def entries(self) -> list[Term]:
        """The tests in their order; behind them those that the manifest describes and forgot to list."""
        lists = self._store.quads_for_pattern(None, NamedNode(MF + "entries"), None)
        listed = [entry for quad in lists for entry in self.listed(quad.object)]
        described = self._store.quads_for_pattern(None, NamedNode(MF + "action"), None)
        return [*listed, *sorted({quad.subject for quad in described} - {*listed}, key=str)]


@dataclass(frozen=True)
class ExpectedAnswer:
    """What a response must be; an empty part may be anything."""

    statuses: tuple[str, ...]
    boolean: bool | None
    format: str
    location: str
    headers: dict[str, str]
    body: str


@dataclass(frozen=True)
class SentRequest:
    """A request of a test, and what must come back."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    expected: ExpectedAnswer


@dataclass(frozen=True)
class ProtocolCase:
    """Requests in their order, over graphs that are there before."""

    name: str
    graphs: dict[str, Path]
    requests: tuple[SentRequest, ...]


def read_protocol_cases(manifest: Path) -> list[ProtocolCase]:
    """The tests of a manifest that describes requests."""
    facts = Facts(manifest)
    cases = []
    for entry in facts.entries():
        action = facts.value(entry, MF + "action")
        assert action is not None
        requests = facts.listed(facts.value(action, HT + "requests"))
        sent = tuple(_read_request(facts, request) for request in requests)
        cases.append(ProtocolCase(entry.value.rpartition("#")[2], _named_graphs(facts, entry), sent))
    return cases


def _named_graphs(facts: Facts, node: Term) -> dict[str, Path]:
    graphs = facts.values(node, UT + "graphData")
    return {facts.text(graph, RDFS_LABEL): file_of(facts.text(graph, UT + "graph")) for graph in graphs}


def _headers(facts: Facts, node: Term) -> dict[str, str]:
    return {
        facts.text(header, HT + "fieldName").lower(): facts.text(header, HT + "fieldValue")
        for header in facts.listed(facts.value(node, HT + "headers"))
    }


def _body(facts: Facts, node: Term) -> bytes:
    body = facts.value(node, HT + "body")
    if body is None:
        return b""
    return facts.text(body, CNT + "chars").encode(facts.text(body, CNT + "characterEncoding") or "utf-8")


def _read_request(facts: Facts, request: Term) -> SentRequest:
    response = facts.value(request, HT + "resp")
    assert response is not None
    names = [one.value.removeprefix(STATUSES) for one in facts.values(response, MF + "expectedStatus")]
    statuses = tuple(_NAMED_STATUSES.get(name, name.removeprefix("StatusCode")) for name in names)
    verdict = facts.value(response, MF + "expectedBoolean")
    expected = ExpectedAnswer(
        statuses,
        verdict.value == "true" if isinstance(verdict, Literal) else None,
        facts.text(response, MF + "expectedFormat"),
        facts.text(response, MF + "expectedLocation"),
        _headers(facts, response),
        _body(facts, response).decode(),
    )
    method, path = facts.text(request, HT + "methodName"), facts.text(request, HT + "absolutePath")
    return SentRequest(method, path, _headers(facts, request), _body(facts, request), expected)


@dataclass(frozen=True)
class UpdateCase:
    """An update, the graphs before it and the graphs after it; the default graph has an empty name."""

    name: str
    request: Path
    before: dict[str, Path]
    after: dict[str, Path]


@dataclass(frozen=True)
class UpdateSyntaxCase:
    """An update that is well written, or not."""

    name: str
    request: Path
    is_good: bool


def read_update_cases(manifest: Path) -> list[UpdateCase | UpdateSyntaxCase]:
    """The tests of a manifest of updates."""
    facts = Facts(manifest)
    cases: list[UpdateCase | UpdateSyntaxCase] = []
    for entry in facts.entries():
        kinds = {kind.value.removeprefix(MF) for kind in facts.values(entry, RDF + "type")}
        name = f"{manifest.parent.name}/{entry.value.rpartition('#')[2]}"
        action, result = facts.value(entry, MF + "action"), facts.value(entry, MF + "result")
        assert action is not None
        if kinds & {"PositiveUpdateSyntaxTest11", "NegativeUpdateSyntaxTest11", "NegativeSyntaxTest11"}:
            is_good = "PositiveUpdateSyntaxTest11" in kinds
            cases.append(UpdateSyntaxCase(name, file_of(action.value), is_good))
        elif kinds & {"UpdateEvaluationTest"}:
            assert result is not None
            request = file_of(facts.text(action, UT + "request"))
            cases.append(UpdateCase(name, request, _graphs(facts, action), _graphs(facts, result)))
    return cases


def _graphs(facts: Facts, node: Term) -> dict[str, Path]:
    default = facts.value(node, UT + "data")
    return {**_named_graphs(facts, node), **({} if default is None else {"": file_of(default.value)})}
