"""The W3C SPARQL query tests that have a query to parse, read from their manifests."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pyoxigraph import BlankNode, NamedNode, RdfFormat, Store

from headwater.terms.model import RDF

MANIFEST = "http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#"
QUERY = "http://www.w3.org/2001/sw/DataAccess/tests/test-query#query"


@dataclass(frozen=True)
class W3cTest:
    """One test: its kind (the local name of its class) and the file with the query."""

    kind: str
    path: Path

    @property
    def must_parse(self) -> bool:
        return "Negative" not in self.kind


def manifest_entries(folder: Path) -> Iterator[W3cTest]:
    """The query tests of every manifest in the folders directly below this one."""
    for manifest in sorted(folder.glob("*/manifest.ttl")):
        store = Store()
        store.load(path=str(manifest), format=RdfFormat.TURTLE, base_iri=manifest.as_uri())
        for quad in store.quads_for_pattern(None, NamedNode(RDF + "type"), None):
            kind = quad.object.value if isinstance(quad.object, NamedNode) else ""
            if not kind.startswith(MANIFEST) or "Update" in kind:
                continue
            for action in store.quads_for_pattern(quad.subject, NamedNode(MANIFEST + "action"), None):
                yield from (W3cTest(kind[len(MANIFEST) :], path) for path in _query_files(store, action.object, folder))


def _query_files(store: Store, action: object, folder: Path) -> Iterator[Path]:
    found = [action]
    if isinstance(action, BlankNode):
        found = [quad.object for quad in store.quads_for_pattern(action, NamedNode(QUERY), None)]
    for node in found:
        if isinstance(node, NamedNode) and node.value.endswith(".rq"):
            yield folder / Path(*node.value.rsplit("/", 2)[1:])
