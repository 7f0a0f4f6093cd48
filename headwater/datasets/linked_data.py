"""All data sets of a program as one RDF dataset, which the evaluators read.

A statement that several data sets have is there once. Each data set is at a version; the tuple of these is the version
that answers name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from pyoxigraph import DefaultGraph

from headwater.algebra.nodes import Node
from headwater.algebra.plan import QueryPlan
from headwater.datasets.change_log import IdQuad, UpdatableColumns
from headwater.datasets.dataset import DataSet, id_or_none
from headwater.datasets.errors import DataSetError
from headwater.datasets.mapped_files import Ints
from headwater.datasets.statement_columns import GroupKey, Pairs, unite_pairs
from headwater.datasets.views.preparation import FoundView, Preparation
from headwater.datasets.views.view_catalog import ViewCatalog
from headwater.execution.static_data import Version
from headwater.kernel.compiling.static_views import EvaluateByReference, View
from headwater.optimizer.statistics import PredicateCounts, Statistics
from headwater.terms.ids.inline_layout import NO_TERM, is_inline
from headwater.terms.ids.term_ids import decode_inline, encode
from headwater.terms.ids.term_texts import TermKind, TermKinds, term_of_text
from headwater.terms.model import NamedNode, Quad, Term
from headwater.terms.stored_forms import restore_term, to_stored_quad

_REMEMBERED_TERMS = 1 << 16


class LinkedData:
    """The union of some data sets, each at a version, and the views over it."""

    def __init__(self, datasets: Sequence[DataSet]) -> None:
        self.datasets = tuple(datasets)
        self._terms: dict[int, Term] = {}
        self._catalog = ViewCatalog(self)
        self._preparation: Preparation | None = None
        self._second_reader: LinkedData | None = None
        """Reads the same folders at the version that is prepared."""

    @property
    def version(self) -> tuple[int, ...]:
        """The versions of the data sets, in their order."""
        return tuple(one.version for one in self.datasets)

    def differences(self, version: Version) -> list[Quad] | None:
        """The statements that may be added or removed on the way to a version; None if any may."""
        quads: list[Quad] = []
        for data, wanted in zip(self.datasets, version, strict=True):
            changes = data.changes_until(wanted)
            if changes is None:
                return None
            for change in changes:
                quads += (*change.added, *change.removed)
        return quads

    def move(self, version: Version) -> None:
        """Move all data sets to a version, and update the views."""
        is_reload = self.differences(version) is None
        maintenance = self._catalog.begin_maintenance(is_reload, self._take_prepared_views(version))
        for data, wanted in zip(self.datasets, version, strict=True):
            others = [other for other in self.datasets if other is not data]

            def on_statement(quad: IdQuad, sign: int, others: Sequence[DataSet] = others) -> None:
                if not any(other.columns.has_statement(quad) for other in others):
                    maintenance.add_statement(quad, sign)

            data.advance(wanted, on_statement)
        maintenance.update_views()

    def latest(self) -> Version:
        """The newest version there is."""
        return tuple(one.latest() for one in self.datasets)

    def prepare(self, version: Version, patience: float) -> Version:
        """The version to which a move takes no time: the given one, one before it, or the current one.

        Views that take long to find are found in the background; `patience` is how many seconds to wait for them.
        """
        if self._preparation is None:
            changed = self.differences(version)
            slow = self._catalog.slow_views(None if changed is None else map(_ids_of, changed))
            if not slow:
                return version
            self._preparation = Preparation(self.version, version, slow)
            self._preparation.begin(self._read_at)
        return self._preparation.version if self._preparation.is_done(patience) else self.version

    def _read_at(self, version: Version) -> LinkedData:
        if self._second_reader is None:
            self._second_reader = LinkedData([DataSet.open(one.folder) for one in self.datasets])
        self._second_reader.move(version)
        return self._second_reader

    def _take_prepared_views(self, version: Version) -> Mapping[str, FoundView]:
        """End the preparation, and give its views if they were prepared for a move from here to a version."""
        preparation, self._preparation = self._preparation, None
        if preparation is None:
            return {}
        # A preparation reads what a move changes: its end is waited for in any case.
        views = preparation.wait_for_views()
        return views if (preparation.since, preparation.version) == (self.version, version) else {}

    def view(self, plan: QueryPlan, part: Node, ask: EvaluateByReference) -> View:
        """The view of a static part, shared by all queries that have the same part."""
        return self._catalog.get_view(plan, part, ask)

    def statistics(self) -> Statistics:
        """Counts by graph and predicate as they were loaded, for the optimizer."""
        graphs: dict[NamedNode | None, dict[NamedNode, PredicateCounts]] = {}
        for one in self.datasets:
            for graph, counts in one.predicate_counts().items():
                known = graphs.setdefault(graph, {})
                for predicate, count in counts.items():
                    known[predicate] = known[predicate] + count if predicate in known else count
        return Statistics(graphs)

    @property
    def columns(self) -> list[UpdatableColumns]:
        return [one.columns for one in self.datasets]

    def named_graphs(self) -> Iterator[NamedNode]:
        """The names of all graphs."""
        return iter(dict.fromkeys(graph for one in self.datasets for graph in one.named_graphs()))

    def quads_for_pattern(self, subject: Any, predicate: Any, object: Any, graph_name: Any = None, /) -> Iterator[Quad]:
        """The statements that match, as a store would give them; None stands for anything."""
        value = object if object is None else restore_term(object)
        wanted = [id_or_none(term) for term in (subject, predicate, value, graph_name)]
        return (to_stored_quad(self._quad(quad)) for quad in self.id_quads(*wanted))

    def id_quads(
        self, subject: int | None, predicate: int | None, object: int | None, graph: int | None
    ) -> Iterator[IdQuad]:
        """The statements that match, without duplicates; None stands for anything."""
        if len(self.datasets) == 1:
            return self.datasets[0].id_quads(subject, predicate, object, graph)
        return self._id_quads_once(subject, predicate, object, graph)

    def _id_quads_once(
        self, subject: int | None, predicate: int | None, object: int | None, graph: int | None
    ) -> Iterator[IdQuad]:
        known: set[IdQuad] = set()
        for one in self.datasets:
            for quad in one.id_quads(subject, predicate, object, graph):
                if quad not in known:
                    known.add(quad)
                    yield quad

    def _quad(self, quad: IdQuad) -> Quad:
        graph, s, p, o = quad
        name: Any = DefaultGraph() if graph == NO_TERM else self.term_of(graph)
        subject: Any = self.term_of(s)
        predicate: Any = self.term_of(p)
        return Quad(subject, predicate, self.term_of(o), name)

    def term_of(self, term_id: int) -> Term:
        """The term of an id in the data."""
        known = self._terms.get(term_id)
        if known is not None:
            return known
        if is_inline(term_id):
            return decode_inline(term_id)
        text = self.text_of(term_id)
        if text is None:
            raise DataSetError(f"a data set is damaged: it has no term {term_id}; load its files again")
        if len(self._terms) >= _REMEMBERED_TERMS:
            self._terms.clear()
        term = self._terms[term_id] = term_of_text(text)
        return term

    def text_of(self, term_id: int) -> bytes | None:
        """The text of a hashed id; None if neither a data set nor a view has it."""
        for columns in self.columns:
            text = columns.text_of(term_id)
            if text is not None:
                return text
        return self._catalog.texts.get(term_id)

    def hashed_ids(self) -> list[Ints]:
        """All ids of terms of the data sets that are hashes, in several arrays."""
        logged = [np.fromiter(columns.texts, np.int64, len(columns.texts)) for columns in self.columns]
        return [*(columns.base.terms.texts.ids for columns in self.columns), *logged]

    def computed_ids(self) -> Ints:
        """The hashed ids of terms that views have and no data set."""
        return np.fromiter(self._catalog.texts, np.int64, len(self._catalog.texts))

    def texts_of_ids(self, ids: Ints) -> dict[int, bytes]:
        """The texts of those of some hashed ids that a data set or a view has."""
        is_known = self.kinds_of(ids) != TermKind.UNKNOWN
        if self._catalog.texts:
            is_known |= np.isin(ids, self.computed_ids())
        return {term_id: text for term_id in ids[is_known].tolist() if (text := self.text_of(term_id)) is not None}

    def kinds_of(self, ids: Ints) -> TermKinds:
        """The kinds of the terms of hashed ids; unknown where no data set has the text."""
        kinds = np.zeros(ids.shape[0], dtype=np.uint8)
        for columns in self.columns:
            kinds = np.where(kinds == TermKind.UNKNOWN, columns.kinds_of(ids), kinds)
        return kinds

    def group_keys(self) -> set[GroupKey]:
        """The groups, by graph and predicate, that may have statements."""
        return {key for columns in self.columns for key in columns.group_keys()}

    def objects_of(self, key: GroupKey, s: int) -> list[int]:
        """The objects of a subject in a group."""
        if len(self.datasets) == 1:
            return self.datasets[0].columns.objects_of(key, s)
        return list(dict.fromkeys(o for columns in self.columns for o in columns.objects_of(key, s)))

    def subjects_of(self, key: GroupKey, o: int) -> list[int]:
        """The subjects of an object in a group."""
        if len(self.datasets) == 1:
            return self.datasets[0].columns.subjects_of(key, o)
        return list(dict.fromkeys(s for columns in self.columns for s in columns.subjects_of(key, o)))

    def pairs_by_subject(self, key: GroupKey) -> Pairs:
        """Subjects and objects of a group, sorted by subject."""
        return unite_pairs([columns.pairs_by_subject(key) for columns in self.columns])

    def pairs_by_object(self, key: GroupKey) -> Pairs:
        """Objects and subjects of a group, sorted by object."""
        return unite_pairs([columns.pairs_by_object(key) for columns in self.columns])


def _ids_of(quad: Quad) -> IdQuad:
    graph = NO_TERM if isinstance(quad.graph_name, DefaultGraph) else encode(quad.graph_name)
    return graph, encode(quad.subject), encode(quad.predicate), encode(quad.object)
