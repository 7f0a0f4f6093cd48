"""One data set: read at one version, moved to a later one when its reader asks for it, and changed by any process.

    data = DataSet.open("city")
    data.insert([Quad(…)])             # one version
    data.update("DELETE … INSERT … WHERE …")
    data.advance()                     # sees what others changed meanwhile

A reader stays at its version until it calls `advance`. So a tick never mixes two versions.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from pyoxigraph import BlankNode, DefaultGraph

from headwater.datasets.change_log import ChangeLog, DataChange, IdQuad, OnStatement, UpdatableColumns, ignore_statement
from headwater.datasets.checksums import check_files
from headwater.datasets.errors import DataSetError, report_dataset_damage
from headwater.datasets.folder import MANIFEST, lock_dataset, read_manifest, sync_of
from headwater.datasets.loading.publish import publish_version
from headwater.datasets.remote_updates import RemoteAccess
from headwater.datasets.statement_columns import GroupKey, StatementColumns
from headwater.datasets.updates import evaluate_update
from headwater.errors import warn_old_name
from headwater.optimizer.statistics import PredicateCounts
from headwater.terms.arguments import check_path, check_statements, check_text
from headwater.terms.ids.inline_layout import NO_TERM, is_inline
from headwater.terms.ids.term_ids import decode_inline, encode
from headwater.terms.ids.term_texts import term_of_text
from headwater.terms.model import Literal, NamedNode, Quad, Term, Triple
from headwater.terms.names import name_to_iri

LOCK_WAIT_SECONDS = 10.0
"""How long a change waits for the changes of others to end."""
_AT_A_TIME = 4096
"""How many statements are read from columns at a time."""

_SAMPLED_OBJECTS = 16
"""How many objects of a predicate are sampled to find out whether there are literals."""


FindChanges: TypeAlias = Callable[["DataSet"], tuple[Collection[Quad], Collection[Quad]]]
"""Finds the statements to add and to remove in the newest version of a data set."""


class DataSet:
    """A data set in a folder, at a version. Several threads may change it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.remote = RemoteAccess()
        """How LOAD and SERVICE of updates reach what they name; an engine sets its own."""
        self._write_lock = threading.Lock()
        self._manifest_name = str(folder / MANIFEST)
        self._sync = sync_of(folder)
        self._open()

    @classmethod
    def open(cls, folder: str | Path, version: int | None = None) -> DataSet:
        """Open the data set in a folder at a version, or at the newest; a `DataSetError` says why there is none."""
        data = cls(check_path("the folder of a data set", folder).absolute())
        data.advance(version)
        return data

    def _open(self) -> None:
        """Read the manifest and open the columns, the log and the graphs of the version that it names."""
        with report_dataset_damage(self.folder):
            self._open_columns()
            self._graphs = dict.fromkeys(map(NamedNode, self._manifest.graphs))
            for graph in dict.fromkeys(graph for graph, _ in self.columns.base.groups):
                self._add_graph(None if graph == NO_TERM else self.term_of(graph))
        self._log = ChangeLog(self.folder / self._manifest.log, self._manifest.version)
        self._pending: list[DataChange] = []
        self.version = self._manifest.version

    def _open_columns(self) -> None:
        while True:
            self._manifest = read_manifest(self.folder)
            self._stamp = self._manifest_stamp()
            try:
                check_files(self.folder / self._manifest.base)
                base = StatementColumns.open(self.folder / self._manifest.base)
                break
            except (FileNotFoundError, DataSetError):
                # A load that has just ended removed these columns.
                if read_manifest(self.folder) == self._manifest:
                    raise
        self.columns = UpdatableColumns(base)

    def _manifest_stamp(self) -> tuple[int, int]:
        try:
            status = os.stat(self._manifest_name)
        except FileNotFoundError:
            raise DataSetError(f"the data set {self.folder} was deleted while it was in use") from None
        return status.st_ino, status.st_mtime_ns

    def _add_graph(self, name: object) -> None:
        if isinstance(name, NamedNode):
            self._graphs[name] = None

    @property
    def statements(self) -> int:
        """The count of statements."""
        return self.columns.size

    def latest(self) -> int:
        """The newest version there is."""
        if self._manifest_stamp() != self._stamp:
            return DataSet.open(self.folder).version
        self._read_log()
        return self._pending[-1].version if self._pending else self.version

    def _read_log(self) -> None:
        with report_dataset_damage(self.folder):
            try:
                self._pending.extend(self._log.read_new_changes())
            except FileNotFoundError:
                # A load that has just ended removed this log.
                if self._manifest_stamp() == self._stamp:
                    path = self.folder / self._manifest.log
                    raise DataSetError(
                        f"{path} is missing, and with it the changes after version {self._manifest.version}: put it "
                        f"back from a copy of the data set, or give them up with: touch {path}"
                    ) from None

    def changes_until(self, version: int | None = None) -> list[DataChange] | None:
        """The changes from here to a version, or to the newest; None if files were loaded meanwhile."""
        if self._manifest_stamp() != self._stamp or (version is not None and version < self.version):
            return None
        self._read_log()
        return [change for change in self._pending if version is None or change.version <= version]

    def advance(
        self,
        version: int | None = None,
        on_statement: OnStatement = ignore_statement,
        *,
        tell: OnStatement | None = None,
    ) -> None:
        """Move to a version, or to the newest; `on_statement` is called after each addition and before each removal.

        If files were loaded meanwhile, or the version is before this one, the folder is opened again, and
        `on_statement` is not called. `tell` is its old name.
        """
        if tell is not None:
            warn_old_name("DataSet.advance(tell=…)", "on_statement")
            on_statement = tell
        changes = self.changes_until(version)
        if changes is None:
            self._open()
            changes = self.changes_until(version) or []
            on_statement = ignore_statement
        for change in changes:
            self._apply(change, on_statement)
        del self._pending[: len(changes)]
        if version is not None and self.version < version:
            # Versions before the last load are gone.
            raise DataSetError(f"the data set {self.folder} has no version {version}: was its folder replaced?")

    def _apply(self, change: DataChange, on_statement: OnStatement = ignore_statement) -> None:
        self.columns.apply_change(change, on_statement)
        self.version = change.version
        for quad in change.added:
            self._add_graph(quad.graph_name)

    def insert(self, statements: Iterable[Quad | Triple], graph: str | NamedNode | None = None) -> int:
        """Add statements, triples to a graph or the default graph; gives the version that has them."""
        return self.change(added=_statements_to_quads(statements, graph))

    def remove(self, statements: Iterable[Quad | Triple], graph: str | NamedNode | None = None) -> int:
        """Remove statements; gives the version that does not have them any more."""
        return self.change(removed=_statements_to_quads(statements, graph))

    def change(self, added: Iterable[Quad] = (), removed: Iterable[Quad] = ()) -> int:
        """Add and remove statements in one version: readers see all of it or nothing."""
        with self._write_lock, lock_dataset(self.folder, LOCK_WAIT_SECONDS):
            self.advance()
            self._write(added, removed)
        return self.version

    def revise(self, find_changes: FindChanges) -> int:
        """Add and remove what a function finds in the newest version; gives the version that has it.

        Nobody else changes the data set meanwhile. Where it finds nothing, no version is made.
        """
        with self._write_lock, lock_dataset(self.folder, LOCK_WAIT_SECONDS):
            self.advance()
            added, removed = find_changes(self)
            if added or removed:
                self._write(added, removed)
        return self.version

    def _write(self, added: Iterable[Quad], removed: Iterable[Quad]) -> None:
        new = tuple(added)
        self.columns.check_terms(new)
        change = DataChange(self.version + 1, new, tuple(filter(self.columns.has_terms, removed)))
        with report_dataset_damage(self.folder):
            self._log.append(change, sync=self._sync)
        self._apply(change)

    def update(self, text: str, *, base_iri: str | None = None) -> int:
        """Execute a SPARQL Update, all of it or, if it fails, nothing; gives the version that it made.

        Relative IRIs are resolved against `base_iri` where the text has no BASE before them.
        """
        check_text("an update", text)
        return self.revise(lambda newest: evaluate_update(newest, text, base_iri))

    def verify(self) -> None:
        """Compare every byte on disk with its checksum; a `DataSetError` names the file that is damaged."""
        with report_dataset_damage(self.folder):
            check_files(self.folder / self._manifest.base, every_byte=True)

    def compact(self) -> int:
        """Write the changes into the columns, so that no log is read when it is opened; gives the version."""
        with self._write_lock, lock_dataset(self.folder, LOCK_WAIT_SECONDS):
            self.advance()
            publish_version(self.folder, self._manifest, [])
            self.advance()
        return self.version

    @property
    def log_bytes(self) -> int:
        """How many bytes of changes are read when it is opened."""
        return self._log.bytes_read

    def named_graphs(self) -> Iterator[NamedNode]:
        """The named graphs, including empty ones that a load named."""
        return iter(list(self._graphs))

    def term_of(self, term_id: int = NO_TERM, *, number: int | None = None) -> Term:
        """The term of an id; `number` is the old name of `term_id`."""
        if number is not None:
            warn_old_name("DataSet.term_of(number=…)", "term_id")
            term_id = number
        if is_inline(term_id):
            return decode_inline(term_id)
        text = self.columns.text_of(term_id)
        if text is None:
            raise DataSetError(f"the data set {self.folder} is damaged: it has no term {term_id}; load its files again")
        return term_of_text(text)

    def id_quads(
        self, subject: int | None, predicate: int | None, object: int | None, graph: int | None
    ) -> Iterator[IdQuad]:
        """The statements that match; None stands for anything."""
        columns = self.columns
        for key in self._group_keys(graph, predicate):
            g, p = key
            if subject is not None:
                objects = columns.objects_of(key, subject)
                yield from ((g, subject, p, o) for o in objects if object is None or o == object)
            elif object is not None:
                yield from ((g, s, p, object) for s in columns.subjects_of(key, object))
            else:
                s_column, o_column = columns.pairs_by_subject(key)
                for low in range(0, s_column.shape[0], _AT_A_TIME):
                    part = slice(low, low + _AT_A_TIME)
                    yield from (
                        (g, s, p, o) for s, o in zip(s_column[part].tolist(), o_column[part].tolist(), strict=True)
                    )

    def _group_keys(self, graph: int | None, predicate: int | None) -> list[GroupKey]:
        if graph is not None and predicate is not None:
            return [(graph, predicate)]
        keys = ((g, p) for g, p in self.columns.group_keys() if graph in (None, g) and predicate in (None, p))
        return sorted(keys)

    @property
    def base_name(self) -> str:
        """The name of the folder with the columns on disk."""
        return self._manifest.base

    def quads(
        self,
        subject: Term | None = None,
        predicate: Term | None = None,
        object: Term | None = None,
        *,
        graph: NamedNode | BlankNode | DefaultGraph | None = None,
    ) -> Iterator[Quad]:
        """The statements that match, as they were written; None stands for anything, also for any graph."""
        wanted = (id_or_none(subject), id_or_none(predicate), id_or_none(object))
        for graph_id, s, p, o in self.id_quads(*wanted, id_or_none(graph)):
            name: Any = DefaultGraph() if graph_id == NO_TERM else self.term_of(graph_id)
            subject_term: Any = self.term_of(s)
            predicate_term: Any = self.term_of(p)
            yield Quad(subject_term, predicate_term, self.term_of(o), name)

    def predicate_counts(self) -> Mapping[NamedNode | None, Mapping[NamedNode, PredicateCounts]]:
        """How many statements each predicate had in each graph when files were last loaded."""
        by_graph: dict[NamedNode | None, dict[NamedNode, PredicateCounts]] = {}
        for (graph, predicate), group in self.columns.base.groups.items():
            name = None if graph == NO_TERM else self.term_of(graph)
            if isinstance(name, BlankNode):
                continue
            literals = self._has_literals((graph, predicate))
            counts = PredicateCounts(group.end - group.start, group.subjects, group.objects, literals)
            by_graph.setdefault(name, {})[self.term_of(predicate)] = counts  # type: ignore[arg-type, index]
        return by_graph

    def _has_literals(self, key: GroupKey) -> bool:
        """Whether some objects in a sample are literals."""
        objects = self.columns.base.pairs_by_object(key)[0]
        sample = objects[:: max(1, objects.shape[0] // _SAMPLED_OBJECTS)].tolist()
        # Inline ids are negative and always literals.
        return any(term_id < 0 or isinstance(self.term_of(term_id), Literal) for term_id in sample)

    @property
    def base(self) -> str:
        """Deprecated: `base_name`."""
        warn_old_name("DataSet.base", "base_name")
        return self.base_name

    def ahead(self, version: int | None = None) -> list[DataChange] | None:
        """Deprecated: `changes_until`."""
        warn_old_name("DataSet.ahead", "changes_until")
        return self.changes_until(version)

    def counts(self) -> Mapping[NamedNode | None, Mapping[NamedNode, PredicateCounts]]:
        """Deprecated: `predicate_counts`."""
        warn_old_name("DataSet.counts", "predicate_counts")
        return self.predicate_counts()

    def has(self, quad: IdQuad) -> bool:
        """Deprecated: `id_quads`."""
        warn_old_name("DataSet.has", "id_quads")
        return self.columns.has_statement(quad)


def id_or_none(term: object) -> int | None:
    """The id of a term or of the default graph in a pattern; None for anything."""
    if term is None:
        return None
    return NO_TERM if isinstance(term, DefaultGraph) else encode(term)  # type: ignore[arg-type]


def _statements_to_quads(statements: Iterable[Quad | Triple], graph: str | NamedNode | None) -> list[Quad]:
    name = DefaultGraph() if graph is None else name_to_iri(graph) if isinstance(graph, str) else graph
    quads: list[Quad] = []
    for one in check_statements("statements", statements):
        if isinstance(one, Triple) or (graph is not None and isinstance(one.graph_name, DefaultGraph)):
            quads.append(Quad(one.subject, one.predicate, one.object, name))
        else:
            quads.append(one)
    return quads
