"""The statements of a data set in a pyoxigraph store, kept at its newest version: what queries are evaluated on.

The store is made once. After that each change of the data set is applied to it, in one transaction, so that a query
sees a version as a whole. Only where files were loaded is it made anew.

A store cannot be given a set of statements to remove in one transaction. So such a change is an update whose
solutions are the statements, numbered, and whose terms are found by functions of ours:

    DELETE { GRAPH ?g { ?s ?p ?o } } WHERE { VALUES ?n { 0 1 } BIND(<urn:…:subject>(?n) AS ?s) … }
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyoxigraph import DefaultGraph, RdfFormat, Store

from headwater.datasets.change_log import DataChange
from headwater.datasets.dataset import DataSet
from headwater.terms.checking.checked_parsing import read_document
from headwater.terms.checking.query_texts import check_update
from headwater.terms.ids.inline_layout import NO_TERM, is_inline
from headwater.terms.ids.term_ids import decode_inline, term_text
from headwater.terms.model import BlankNode, Literal, NamedNode, Quad, Term, Triple
from headwater.terms.stored_forms import is_stored_form, restore_triple, to_stored_quad, to_stored_term

_INTERNAL = "urn:headwater:mirror:"
_PLACES = ("subject", "predicate", "object", "graph")
_LARGEST_CHANGE = 200_000
"""Statements to remove from which on a new store is made."""
_STATEMENTS_AT_A_TIME = 100_000
_REMEMBERED_TEXTS = 1 << 19
_MAY_BE_CHANGED = b"^^<http://www.w3.org/2001/XMLSchema#"

GraphName = NamedNode | BlankNode | DefaultGraph
ExtraGraphs = Mapping[NamedNode, Collection[Triple]]
"""Graphs that are shown to queries beside those of the data set: what windows hold."""


@dataclass(frozen=True)
class MirroredVersion:
    """The store at a version. Later changes reach the store, too, and a query that has begun does not see them."""

    store: Store
    version: int
    holds_stored_forms: bool
    """Whether some literal may be in the store in a form of its own (see `headwater.terms.stored_forms`)."""
    named_graphs: tuple[NamedNode, ...]


@dataclass
class StoreMirror:
    """Follows the data set of a folder; `find_extra_graphs` gives the graphs that queries see besides."""

    folder: Path
    find_extra_graphs: Callable[[], ExtraGraphs] | None = None
    _lock: threading.RLock = field(default_factory=threading.RLock)
    _data: DataSet | None = None
    _store: Store = field(default_factory=Store)
    _holds_stored_forms: bool = False
    _first_version: int = 0
    _changed_at: dict[GraphName, int] = field(default_factory=dict)
    _extra: dict[NamedNode, frozenset[Triple]] = field(default_factory=dict)

    def latest(self, wanted: Collection[NamedNode] | None = None) -> MirroredVersion:
        """The store with the newest version in it; `wanted` are the extra graphs that are read now, None: all."""
        with self._lock:
            data = self._advance()
            if self.find_extra_graphs is not None:
                self._show_extra_graphs(data, self.find_extra_graphs(), wanted)
            named = tuple(one for one in self._store.named_graphs() if isinstance(one, NamedNode))
            return MirroredVersion(self._store, data.version, self._holds_stored_forms, named)

    def graph_version(self, graph: GraphName) -> int:
        """The version that changed a graph last, as far as is known: no version after it did."""
        with self._lock:
            self._advance()
            return self._changed_at.get(graph, self._first_version)

    def read_graph(self, graph: GraphName) -> tuple[list[Triple], int]:
        """The triples of a graph as they were written, and the version that changed it last."""
        with self._lock:
            self.latest([graph] if isinstance(graph, NamedNode) else [])
            quads = self._store.quads_for_pattern(None, None, None, graph)
            return [restore_triple(quad.triple) for quad in quads], self.graph_version(graph)

    def _advance(self) -> DataSet:
        """Apply what changed in the data set since the last call."""
        if self._data is None:
            self._data = DataSet.open(self.folder)
            self._fill(self._data)
            return self._data
        changes = self._data.changes_until()
        if changes is None or sum(len(one.removed) for one in changes) > _LARGEST_CHANGE:
            self._data.advance()
            self._fill(self._data)
        elif changes:
            for change in changes:
                self._apply(change)
            self._data.advance(changes[-1].version)
        return self._data

    def _fill(self, data: DataSet) -> None:
        store = Store()
        self._holds_stored_forms = False
        for block in _statement_blocks(data, self._note_form):
            store.bulk_extend(read_document(block, RdfFormat.N_QUADS))
        for graph in data.named_graphs():
            store.add_graph(graph)
        self._store = store
        self._first_version = data.version
        self._changed_at.clear()
        self._extra.clear()

    def _note_form(self, term: Term) -> None:
        self._holds_stored_forms = self._holds_stored_forms or is_stored_form(term)

    def _apply(self, change: DataChange) -> None:
        added = [to_stored_quad(quad) for quad in change.added]
        removed = [to_stored_quad(quad) for quad in change.removed]
        for quad in added:
            self._note_form(quad.object)
        self._change_store(added, removed)
        for quad in (*added, *removed):
            self._changed_at[quad.graph_name] = change.version

    def _change_store(self, added: Collection[Quad], removed: Collection[Quad]) -> None:
        """Remove and add statements in one transaction, and the names of graphs that are empty then."""
        if not removed:
            self._store.extend(added)
            return
        kept = set(added)
        gone = [quad for quad in removed if quad not in kept]
        quads = [*gone, *kept]
        if any(isinstance(quad.graph_name, BlankNode) for quad in quads):
            # No update can name such a graph.
            for quad in gone:
                self._store.remove(quad)
            self._store.extend(kept)
        else:
            text = _change_text(len(gone), len(quads))
            check_update(text)
            self._store.update(text, custom_functions=_term_functions(quads))
        for graph in {quad.graph_name for quad in gone}:
            is_empty = next(self._store.quads_for_pattern(None, None, None, graph), None) is None
            if is_empty and not isinstance(graph, DefaultGraph):
                self._store.remove_graph(graph)

    def is_extra(self, graph: GraphName) -> bool:
        """Whether a graph is one that is shown besides: none of the data set has its name."""
        with self._lock:
            found = {} if self.find_extra_graphs is None else self.find_extra_graphs()
            return graph in found and graph not in {*self._advance().named_graphs()}

    def _show_extra_graphs(self, data: DataSet, found: ExtraGraphs, wanted: Collection[NamedNode] | None) -> None:
        """Put what the extra graphs hold now in place of what they held; a graph of the data set comes first."""
        if not found and not self._extra:
            return
        own = {*data.named_graphs()}
        graphs = {name: found[name] for name in found if name not in own and (wanted is None or name in wanted)}
        # What is not read now may stay as it is, if it is still there.
        kept = {name for name in self._extra if name in found and name not in own and name not in graphs}
        added: list[Quad] = []
        removed: list[Quad] = []
        for name in {*graphs, *self._extra} - kept:
            before = self._extra.get(name, frozenset())
            after = frozenset(graphs.get(name, ()))
            added += (to_stored_quad(Quad(t.subject, t.predicate, t.object, name)) for t in after - before)
            removed += (to_stored_quad(Quad(t.subject, t.predicate, t.object, name)) for t in before - after)
            self._extra[name] = after
        for quad in added:
            self._note_form(quad.object)
        if added or removed:
            self._change_store(added, removed)
        for name in [*self._extra]:
            if name in kept:
                continue
            if name in graphs:
                self._store.add_graph(name)
            else:
                del self._extra[name]
                if name in own:
                    self._store.extend(map(to_stored_quad, data.quads(graph=name)))
                else:
                    self._store.remove_graph(name)


def _change_text(removed: int, all_quads: int) -> str:
    """The update that removes the first statements of a list and adds the others."""
    parts = []
    for what, low, high in (("old", 0, removed), ("new", removed, all_quads)):
        if low == high:
            continue
        numbers = " ".join(map(str, range(low, high)))
        bound = " ".join(f"BIND(<{_INTERNAL}{place}>(?n) AS ?{what}_{place})" for place in _PLACES)
        # The default graph has no name, so its statements have variables of their own.
        plain = " ".join(
            f"BIND(IF(BOUND(?{what}_graph), ?unbound, ?{what}_{place}) AS ?{what}_plain_{place})"
            for place in _PLACES[:3]
        )
        parts.append(f"{{ VALUES ?n {{ {numbers} }} {bound} {plain} }}")
    old = _quad_template("old") if removed else ""
    new = _quad_template("new") if removed < all_quads else ""
    return f"DELETE {{ {old} }} INSERT {{ {new} }} WHERE {{ {' UNION '.join(parts)} }}"


def _quad_template(what: str) -> str:
    named = " ".join(f"?{what}_{place}" for place in _PLACES[:3])
    plain = " ".join(f"?{what}_plain_{place}" for place in _PLACES[:3])
    return f"{plain} . GRAPH ?{what}_graph {{ {named} }}"


def _term_functions(quads: list[Quad]) -> dict[NamedNode, Callable[..., Term | None]]:
    """For each place the function that finds the term of a numbered statement."""

    def finder(place: str) -> Callable[..., Term | None]:
        def find(number: Term) -> Term | None:
            assert isinstance(number, Literal)
            quad = quads[int(number.value)]
            found: Any = quad.graph_name if place == "graph" else getattr(quad, place)
            return None if isinstance(found, DefaultGraph) else found

        return find

    return {NamedNode(_INTERNAL + place): finder(place) for place in _PLACES}


def _statement_blocks(data: DataSet, note_form: Callable[[Term], None]) -> Iterator[bytes]:
    """All statements as N-Quads with literals in their stored forms, some at a time."""
    texts: dict[int, bytes] = {}

    def text_of(term_id: int) -> bytes:
        known = texts.get(term_id)
        if known is not None:
            return known
        if len(texts) >= _REMEMBERED_TEXTS:
            texts.clear()
        written = texts[term_id] = _stored_text(data, term_id, note_form)
        return written

    lines: list[bytes] = []
    for g, s, p, o in data.id_quads(None, None, None, None):
        graph = b"" if g == NO_TERM else text_of(g)
        lines.append(b"%b %b %b %b .\n" % (text_of(s), text_of(p), text_of(o), graph))
        if len(lines) >= _STATEMENTS_AT_A_TIME:
            yield b"".join(lines)
            lines.clear()
    yield b"".join(lines)


def _stored_text(data: DataSet, term_id: int, note_form: Callable[[Term], None]) -> bytes:
    """The text of a term in its stored form."""
    text = None if is_inline(term_id) else data.columns.text_of(term_id)
    if text is not None and _MAY_BE_CHANGED not in text:
        return text
    term = decode_inline(term_id) if is_inline(term_id) else data.term_of(term_id)
    stored = to_stored_term(term)
    note_form(stored)
    return term_text(stored).encode()


def graph_of(name: str | None) -> NamedNode | DefaultGraph:
    """The graph of a name; the default graph where there is none."""
    return DefaultGraph() if name is None else NamedNode(name)


def quads_in(triples: Iterable[Triple], graph: NamedNode | DefaultGraph) -> list[Quad]:
    """Triples as statements of a graph."""
    return [Quad(t.subject, t.predicate, t.object, graph) for t in triples]
