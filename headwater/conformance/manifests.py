"""The manifests of the W3C test suites: which tests there are, what each reads and what it expects.

A manifest is Turtle (`manifest.ttl` in each folder); its `mf:entries` list the tests in order:

    :agg01 a mf:QueryEvaluationTest ;
        mf:action [ qt:query <agg01.rq> ; qt:data <agg01.ttl> ] ;
        mf:result <agg01.srx> .

IRIs of a manifest are relative to its own file, so those of queries, data and results name files.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from urllib.parse import urlparse
from urllib.request import url2pathname

from pyoxigraph import BlankNode, Literal, NamedNode, Quad, Store

from headwater.terms.model import RDF, Term
from headwater.terms.rdf_documents import read_quads

MF = "http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#"
QT = "http://www.w3.org/2001/sw/DataAccess/tests/test-query#"


class CaseKind(Enum):
    """What a test asks for, by the type that its manifest gives it."""

    EVALUATION = "QueryEvaluationTest"
    CSV = "CSVResultFormatTest"
    GOOD_SYNTAX = "PositiveSyntaxTest"
    BAD_SYNTAX = "NegativeSyntaxTest"

    @property
    def evaluates(self) -> bool:
        return self in (CaseKind.EVALUATION, CaseKind.CSV)


@dataclass(frozen=True, slots=True)
class Case:
    """One test. `name` is unique in its `folder`; `lax` allows each row another number of times (REDUCED)."""

    folder: str
    name: str
    kind: CaseKind
    query: Path
    data: tuple[Path, ...] = ()
    graphs: tuple[Path, ...] = ()
    result: Path | None = None
    lax: bool = False

    @property
    def key(self) -> str:
        """What the list of known failures calls the test."""
        return f"{self.folder}/{self.name}"


def read_cases(path: Path, folder: str) -> list[Case]:
    """The tests of one manifest that are about queries, in its order."""
    facts = Store()
    facts.extend(read_quads(path))
    cases = (_read_case(facts, entry, folder) for entry in _entries(facts))
    return [case for case in cases if case is not None]


def file_of(iri: str) -> Path:
    """The file that a `file:` IRI names."""
    return Path(url2pathname(urlparse(iri).path))


def _entries(facts: Store) -> Iterator[NamedNode | BlankNode]:
    for listed in facts.quads_for_pattern(None, NamedNode(MF + "entries"), None):
        rest: Term = listed.object
        while isinstance(rest, BlankNode):
            first = _object(facts, rest, RDF + "first")
            if isinstance(first, NamedNode | BlankNode):
                yield first
            rest = _object(facts, rest, RDF + "rest") or NamedNode(RDF + "nil")


def _read_case(facts: Store, entry: NamedNode | BlankNode, folder: str) -> Case | None:
    """The test of one entry of a manifest; None if it is not about a query."""
    types = {_local(quad.object) for quad in _about(facts, entry, RDF + "type")}
    kind = next((kind for kind in CaseKind if types & {kind.value, kind.value + "11"}), None)
    action = _object(facts, entry, MF + "action")
    if kind is None or action is None:
        return None
    name = _local(entry)
    if isinstance(action, NamedNode):
        return Case(folder, name, kind, file_of(action.value))
    assert isinstance(action, BlankNode)
    query = _object(facts, action, QT + "query")
    assert isinstance(query, NamedNode)
    result = _object(facts, entry, MF + "result")
    return Case(
        folder,
        name,
        kind,
        file_of(query.value),
        _files(facts, action, "data"),
        _files(facts, action, "graphData"),
        file_of(result.value) if isinstance(result, NamedNode) else None,
        lax=_object(facts, entry, MF + "resultCardinality") == NamedNode(MF + "LaxCardinality"),
    )


def _files(facts: Store, action: BlankNode, role: str) -> tuple[Path, ...]:
    named = (quad.object for quad in _about(facts, action, QT + role))
    return tuple(sorted(file_of(term.value) for term in named if isinstance(term, NamedNode)))


def _about(facts: Store, subject: NamedNode | BlankNode, predicate: str) -> Iterator[Quad]:
    return iter(facts.quads_for_pattern(subject, NamedNode(predicate), None))


def _object(facts: Store, subject: NamedNode | BlankNode, predicate: str) -> Term | None:
    return next((quad.object for quad in _about(facts, subject, predicate)), None)


def _local(term: Term) -> str:
    text = term.value if isinstance(term, NamedNode | BlankNode | Literal) else str(term)
    return text.rpartition("#")[2]
