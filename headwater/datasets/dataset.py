"""One data set: read at one version, moved to a later one when its reader says so, changed by whoever may write.

    data = DataSet.open("city")
    data.insert([Quad(…)])             # one version
    data.update("DELETE … INSERT … WHERE …")
    data.advance()                     # what others changed meanwhile

A reader sees the version at which it is until it moves on; so a tick never mixes two.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from pyoxigraph import BlankNode, DefaultGraph

from headwater.datasets.change_log import Change, ChangeLog, IdQuad, Overlay, Tell, tell_nobody
from headwater.datasets.errors import DataSetError
from headwater.datasets.folder import MANIFEST, lock_dataset, read_manifest
from headwater.datasets.loading.publish import publish
from headwater.datasets.statement_columns import Columns, Place
from headwater.datasets.updates import changes_of
from headwater.optimizer.statistics import PredicateCounts
from headwater.terms.ids.inline_layout import NO_TERM, is_inline
from headwater.terms.ids.term_ids import decode_inline, encode
from headwater.terms.ids.term_texts import term_of_text
from headwater.terms.model import Literal, NamedNode, Quad, Term, Triple
from headwater.terms.names import name_to_iri

PATIENCE_SECONDS = 10.0
"""How long a change waits for others."""
_LOOKED_AT = 16
"""So many objects of a predicate are looked at to see of what kind they are."""


class DataSet:
    """A data set in a folder, at a version. Its changes may be made by several threads."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._writing = threading.Lock()
        self._manifest_name = str(folder / MANIFEST)
        self._open()

    @classmethod
    def open(cls, folder: str | Path, version: int | None = None) -> DataSet:
        """The data set in a folder at a version, or as it is now; a `DataSetError` says why there is none."""
        found = cls(Path(folder).absolute())
        found.advance(version)
        return found

    def _open(self) -> None:
        while True:
            self._manifest = read_manifest(self.folder)
            self._stamp = self._manifest_stamp()
            try:
                base = Columns.open(self.folder / self._manifest.base)
                break
            except FileNotFoundError:
                # A load that has just come to its end took these columns away.
                if read_manifest(self.folder) == self._manifest:
                    raise
        self.state = Overlay(base)
        self._log = ChangeLog(self.folder / self._manifest.log)
        self._ahead: list[Change] = []
        self._graphs = dict.fromkeys(map(NamedNode, self._manifest.graphs))
        for graph in dict.fromkeys(graph for graph, _ in self.state.base.groups):
            self._know_graph(None if graph == NO_TERM else self.term_of(graph))
        self.version = self._manifest.version

    def _manifest_stamp(self) -> tuple[int, int]:
        try:
            found = os.stat(self._manifest_name)
        except FileNotFoundError:
            raise DataSetError(f"the data set {self.folder} was deleted while it was in use") from None
        return found.st_ino, found.st_mtime_ns

    def _know_graph(self, name: object) -> None:
        if isinstance(name, NamedNode):
            self._graphs[name] = None

    @property
    def statements(self) -> int:
        """How many statements it has."""
        return self.state.size

    def latest(self) -> int:
        """The newest version there is."""
        if self._manifest_stamp() != self._stamp:
            return DataSet.open(self.folder).version
        self._ahead.extend(self._log.news())
        return self._ahead[-1].version if self._ahead else self.version

    def ahead(self, version: int | None = None) -> list[Change] | None:
        """The changes that lead from here to a version, or to the newest; None where files were loaded meanwhile."""
        if self._manifest_stamp() != self._stamp or (version is not None and version < self.version):
            return None
        self._ahead.extend(self._log.news())
        return [change for change in self._ahead if version is None or change.version <= version]

    def advance(self, version: int | None = None, tell: Tell = tell_nobody) -> None:
        """Be at a version, or at the newest; `tell` hears of each statement after it came and before it goes.

        After files were loaded, and for a version before this one, it begins anew, and tells nobody.
        """
        changes = self.ahead(version)
        if changes is None:
            self._open()
            changes = self.ahead(version) or []
            tell = tell_nobody
        for change in changes:
            self._apply(change, tell)
        del self._ahead[: len(changes)]
        if version is not None and self.version < version:
            # A version before the last load is gone; one that is still to come is none.
            raise DataSetError(f"the data set {self.folder} has no version {version}: was its folder replaced?")

    def _apply(self, change: Change, tell: Tell = tell_nobody) -> None:
        self.state.apply(change, tell)
        self.version = change.version
        for quad in change.added:
            self._know_graph(quad.graph_name)

    def insert(self, statements: Iterable[Quad | Triple], graph: str | NamedNode | None = None) -> int:
        """Add statements, triples into a graph or the default graph; gives the version that has them."""
        return self.change(added=_quads(statements, graph))

    def remove(self, statements: Iterable[Quad | Triple], graph: str | NamedNode | None = None) -> int:
        """Take statements away; gives the version that does not have them any more."""
        return self.change(removed=_quads(statements, graph))

    def change(self, added: Iterable[Quad] = (), removed: Iterable[Quad] = ()) -> int:
        """Add and remove statements in one version: readers see all of it or nothing."""
        with self._writing, lock_dataset(self.folder, PATIENCE_SECONDS):
            self.advance()
            self._write(added, removed)
        return self.version

    def _write(self, added: Iterable[Quad], removed: Iterable[Quad]) -> None:
        change = Change(self.version + 1, tuple(added), tuple(removed))
        self._log.append(change)
        self._apply(change)

    def update(self, text: str) -> int:
        """Do what a SPARQL Update says, all of it or, where it fails, nothing; gives the version it made."""
        with self._writing, lock_dataset(self.folder, PATIENCE_SECONDS):
            self.advance()
            added, removed = changes_of(self, text)
            if added or removed:
                self._write(added, removed)
        return self.version

    def has(self, quad: IdQuad) -> bool:
        """Whether it has a statement."""
        graph, s, p, o = quad
        return self.state.contains((graph, p), s, o)

    def compact(self) -> int:
        """Put the changes together with the rest, so that whoever opens it has none to read; gives the version."""
        with self._writing, lock_dataset(self.folder, PATIENCE_SECONDS):
            self.advance()
            publish(self.folder, self._manifest, [])
            self.advance()
        return self.version

    @property
    def log_bytes(self) -> int:
        """How much there is to read of changes when it is opened."""
        return self._log.size

    def named_graphs(self) -> Iterator[NamedNode]:
        """The graphs that have a name, empty ones that somebody named included."""
        return iter(list(self._graphs))

    def term_of(self, number: int) -> Term:
        """The term of an id."""
        if is_inline(number):
            return decode_inline(number)
        text = self.state.text_of(number)
        if text is None:
            raise DataSetError(f"the data set {self.folder} is damaged: it has no term {number}; load its files again")
        return term_of_text(text)

    def id_quads(
        self, subject: int | None, predicate: int | None, object: int | None, graph: int | None
    ) -> Iterator[IdQuad]:
        """The statements that match, None standing for anything."""
        state = self.state
        for place in self._places(graph, predicate):
            g, p = place
            if subject is not None:
                found = state.objects(place, subject)
                yield from ((g, subject, p, o) for o in found if object is None or o == object)
            elif object is not None:
                yield from ((g, s, p, object) for s in state.subjects(place, object))
            else:
                s_column, o_column = state.pairs(place)
                yield from ((g, s, p, o) for s, o in zip(s_column.tolist(), o_column.tolist(), strict=True))

    def _places(self, graph: int | None, predicate: int | None) -> list[Place]:
        if graph is not None and predicate is not None:
            return [(graph, predicate)]
        places = ((g, p) for g, p in self.state.places() if graph in (None, g) and predicate in (None, p))
        return sorted(places)

    @property
    def base(self) -> str:
        """The name of the columns over which it is."""
        return self._manifest.base

    def quads(
        self, subject: Term | None = None, predicate: Term | None = None, object: Term | None = None
    ) -> Iterator[Quad]:
        """The statements that match, in all graphs, as they were written; None stands for anything."""
        wanted = (id_or_none(subject), id_or_none(predicate), id_or_none(object))
        for graph, s, p, o in self.id_quads(*wanted, None):
            name: Any = DefaultGraph() if graph == NO_TERM else self.term_of(graph)
            about: Any = self.term_of(s)
            said: Any = self.term_of(p)
            yield Quad(about, said, self.term_of(o), name)

    def counts(self) -> Mapping[NamedNode | None, Mapping[NamedNode, PredicateCounts]]:
        """How many statements each predicate had in each graph when files were last loaded."""
        found: dict[NamedNode | None, dict[NamedNode, PredicateCounts]] = {}
        for (graph, predicate), group in self.state.base.groups.items():
            place = (graph, predicate)
            name = None if graph == NO_TERM else self.term_of(graph)
            if isinstance(name, BlankNode):
                continue
            literals = self._has_literals(place)
            counts = PredicateCounts(group.end - group.start, group.subjects, group.objects, literals)
            found.setdefault(name, {})[self.term_of(predicate)] = counts  # type: ignore[arg-type, index]
        return found

    def _has_literals(self, place: Place) -> bool:
        """Whether some objects are literals: the first ones, and a few of the others, are looked at."""
        objects = self.state.base.reversed_pairs(place)[0]
        sample = objects[:: max(1, objects.shape[0] // _LOOKED_AT)].tolist()
        # Ids that hold their value are the smallest, and always literals.
        return any(number < 0 or isinstance(self.term_of(number), Literal) for number in sample)


def id_or_none(term: object) -> int | None:
    """The id to look for, None for anything; the default graph has one, too."""
    if term is None:
        return None
    return NO_TERM if isinstance(term, DefaultGraph) else encode(term)  # type: ignore[arg-type]


def _quads(statements: Iterable[Quad | Triple], graph: str | NamedNode | None) -> list[Quad]:
    place = DefaultGraph() if graph is None else name_to_iri(graph) if isinstance(graph, str) else graph
    found: list[Quad] = []
    for one in statements:
        if isinstance(one, Triple) or (graph is not None and isinstance(one.graph_name, DefaultGraph)):
            found.append(Quad(one.subject, one.predicate, one.object, place))
        else:
            found.append(one)
    return found
