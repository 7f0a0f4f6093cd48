"""Updates that only work on whole graphs, evaluated without a copy of the other graphs.

    DROP SILENT GRAPH <old> ; MOVE <new> TO <city>

The operations are CLEAR, DROP, CREATE, COPY, MOVE and ADD (SPARQL 1.1 Update, sections 3.1.3 and 3.2). A graph without
statements is not kept, so it is not there for a later update.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyoxigraph import DefaultGraph

from headwater.datasets.errors import DataSetError
from headwater.language.lexer import Token, tokenize
from headwater.terms.model import BlankNode, NamedNode, Quad, Triple

if TYPE_CHECKING:
    from headwater.datasets.dataset import DataSet

_REMOVING = frozenset({"CLEAR", "DROP"})
_COPYING = frozenset({"COPY", "MOVE", "ADD"})
GraphName = NamedNode | BlankNode | DefaultGraph
ResolveIri = Callable[[str, str], NamedNode]
"""Finds the IRI that is written somewhere, by the declarations before it."""


@dataclass(frozen=True, slots=True)
class GraphOperation:
    """One operation: `target` is a graph, or NAMED or ALL; `source` is the graph that is copied."""

    keyword: str
    is_silent: bool
    target: NamedNode | DefaultGraph | str
    source: NamedNode | DefaultGraph | None = None


def read_graph_operations(text: str, resolve: ResolveIri) -> list[GraphOperation] | None:
    """The operations of an update that has no others; None for every other update."""
    reader = _OperationReader(text, tokenize(text).tokens, resolve)
    try:
        return list(reader.operations())
    except _OtherUpdate:
        return None


class _OtherUpdate(Exception):
    """Something that is no operation on whole graphs."""


@dataclass
class _OperationReader:
    text: str
    tokens: list[Token]
    resolve: ResolveIri
    _place: int = 0
    _prologue_end: int = 0

    def operations(self) -> Iterator[GraphOperation]:
        self._read_prologue()
        while self._key != "end":
            yield self._read_operation()
            if self._key != "end":
                self._take(";")
            self._read_prologue()

    @property
    def _key(self) -> str:
        return self.tokens[self._place].key

    def _next(self) -> Token:
        token = self.tokens[self._place]
        self._place = min(self._place + 1, len(self.tokens) - 1)
        return token

    def _take(self, *keys: str) -> str:
        token = self._next()
        if token.key not in keys:
            raise _OtherUpdate
        return token.key

    def _skip(self, key: str) -> bool:
        if self._key != key:
            return False
        self._next()
        return True

    def _read_prologue(self) -> None:
        while self._key in ("PREFIX", "BASE"):
            if self._take("PREFIX", "BASE") == "PREFIX":
                self._take("pname")
            self._prologue_end = self.tokens[self._place].end
            self._take("iri")

    def _read_operation(self) -> GraphOperation:
        keyword = self._take(*_REMOVING, *_COPYING, "CREATE")
        is_silent = self._skip("SILENT")
        if keyword in _COPYING:
            source = self._read_graph(needs_keyword=False)
            self._take("TO")
            return GraphOperation(keyword, is_silent, self._read_graph(needs_keyword=False), source)
        if keyword in _REMOVING and self._key in ("NAMED", "ALL"):
            return GraphOperation(keyword, is_silent, self._take("NAMED", "ALL"))
        if keyword == "CREATE" and self._key != "GRAPH":
            raise _OtherUpdate
        return GraphOperation(keyword, is_silent, self._read_graph(needs_keyword=True))

    def _read_graph(self, *, needs_keyword: bool) -> NamedNode | DefaultGraph:
        if self._skip("DEFAULT"):
            return DefaultGraph()
        if not self._skip("GRAPH") and needs_keyword:
            raise _OtherUpdate
        token = self.tokens[self._place]
        self._take("iri", "pname")
        return self.resolve(self.text[: self._prologue_end], self.text[token.start : token.end])


def evaluate_graph_operations(data: DataSet, operations: list[GraphOperation]) -> tuple[list[Quad], list[Quad]]:
    """The statements that the operations add and remove."""
    graphs = _ChangingGraphs(data)
    for one in operations:
        graphs.execute(one)
    return graphs.differences()


@dataclass
class _ChangingGraphs:
    """The graphs that operations touch, before them and after them."""

    data: DataSet
    _before: dict[GraphName, frozenset[Triple]] = field(default_factory=dict)
    _after: dict[GraphName, frozenset[Triple]] = field(default_factory=dict)
    _created: set[GraphName] = field(default_factory=set)

    def execute(self, operation: GraphOperation) -> None:
        """Change the graphs as one operation says."""
        target = operation.target
        if isinstance(target, str):
            names: set[GraphName] = {*self.data.named_graphs(), *self._after} - {DefaultGraph()}
            if target == "ALL":
                names.add(DefaultGraph())
            for name in names:
                self._empty(name)
        elif operation.source is not None:
            self._copy(operation, operation.source, target)
        elif operation.keyword == "CREATE":
            if self._exists(target) and not operation.is_silent:
                raise DataSetError(f"the graph {target} already exists")
            self._created.add(target)
        elif self._exists(target):
            self._empty(target)
            if operation.keyword == "CLEAR":
                self._created.add(target)
        elif not operation.is_silent:
            raise DataSetError(f"the graph {target} does not exist")

    def _copy(self, operation: GraphOperation, source: GraphName, target: GraphName) -> None:
        if not self._exists(source):
            if not operation.is_silent:
                raise DataSetError(f"the graph {source} does not exist")
            return
        if source == target:
            return
        kept = self._triples(target) if operation.keyword == "ADD" else frozenset()
        self._triples(target)
        self._after[target] = kept | self._triples(source)
        if operation.keyword == "MOVE":
            self._empty(source)

    def _empty(self, graph: GraphName) -> None:
        self._triples(graph)
        self._after[graph] = frozenset()
        self._created.discard(graph)

    def _exists(self, graph: GraphName) -> bool:
        return isinstance(graph, DefaultGraph) or graph in self._created or bool(self._triples(graph))

    def _triples(self, graph: GraphName) -> frozenset[Triple]:
        """The triples that a graph has now."""
        if graph not in self._after:
            found = frozenset(quad.triple for quad in self.data.quads(graph=graph))
            self._before[graph] = self._after[graph] = found
        return self._after[graph]

    def differences(self) -> tuple[list[Quad], list[Quad]]:
        """The statements that were added and removed by all operations together."""
        added: list[Quad] = []
        removed: list[Quad] = []
        for graph, after in self._after.items():
            before = self._before[graph]
            added += (Quad(t.subject, t.predicate, t.object, graph) for t in after - before)
            removed += (Quad(t.subject, t.predicate, t.object, graph) for t in before - after)
        return added, removed
