"""The views of a program's linked data: found once, shared by all queries, kept on disk, updated as the data changes.

Static parts that differ only in the names of variables share one view. The view of a conjunction is maintained
incrementally, statement by statement (`statement_deltas`); any other view is found again when a change can touch it
(`view_definitions`), in the background where that takes long (`preparation`).
"""

from __future__ import annotations

import hashlib
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from headwater.algebra.active_graphs import default_active_graph
from headwater.algebra.nodes import Node
from headwater.algebra.plan import QueryKind, QueryPlan
from headwater.algebra.scope import visible_variables
from headwater.algebra.wanted_patterns import wanted_patterns_of
from headwater.datasets.change_log import IdQuad
from headwater.datasets.mapped_files import Ints
from headwater.datasets.views.conjunctions import Conjunction
from headwater.datasets.views.preparation import FoundView, WantedView
from headwater.datasets.views.statement_deltas import find_solutions_using, is_incrementally_maintainable
from headwater.datasets.views.stored_views import ViewRelation, load_view, save_view
from headwater.datasets.views.view_definitions import Texts, ViewDefinition, make_view
from headwater.kernel.columns.row_counts import bag_difference
from headwater.kernel.columns.vocabulary import Vocabulary
from headwater.kernel.compiling.static_views import EvaluateByReference, View
from headwater.kernel.expressions.compiled_expressions import CompiledExpression
from headwater.optimizer.shared_subplans import subplan_key
from headwater.terms.ids.term_ids import encode

if TYPE_CHECKING:
    from headwater.datasets.linked_data import LinkedData

SLOW_SECONDS = 0.05
"""A view that takes at least this long to find is kept on disk for the next start. Views that a change touches are
found again in the background if all together take at least this long, otherwise between two ticks."""


@dataclass
class _CatalogView:
    """A view that a query uses; `seconds` is how long it took to find it."""

    key: str
    view: View
    definition: ViewDefinition
    seconds: float
    conditions: list[CompiledExpression]
    patterns: frozenset[tuple[int | None, int | None, int | None]] | None
    """Which statements can change it: subject, predicate, object, None for any. None: any statement can."""
    is_stale: bool = False

    @property
    def incremental_part(self) -> Conjunction | None:
        """The conjunction by which it is maintained statement by statement; None if it has to be found again."""
        conjunction = self.definition.conjunction
        return conjunction if conjunction is not None and is_incrementally_maintainable(conjunction) else None

    def filter_rows(self, rows: Ints) -> Ints:
        """The rows for which the conditions hold."""
        for condition in self.conditions if rows.shape[0] else ():
            rows = rows[condition.test_rows(rows)]
        return rows

    def is_touched_by(self, statement: IdQuad) -> bool:
        if self.patterns is None:
            return True
        _, *terms = statement
        return any(all(w is None or w == t for w, t in zip(one, terms, strict=True)) for one in self.patterns)


class ViewCatalog:
    """The views over some linked data."""

    def __init__(self, data: LinkedData) -> None:
        self.data = data
        self._views: dict[str, _CatalogView] = {}
        self.texts: dict[int, bytes] = {}
        """The texts of terms that views made and no data set has."""

    def get_view(self, plan: QueryPlan, part: Node, ask: EvaluateByReference) -> View:
        """The view of a static part, its columns in the order of the part's variables."""
        key, columns = subplan_key(plan, part, default_active_graph(plan))
        # Columns are in the order of the part's own variables: equal parts have them in the same order.
        order = [columns.index(variable) for variable in visible_variables(part)]
        text = repr((key, order, plan.default_graphs, plan.named_graphs))
        entry = self._views.get(text)
        if entry is None or entry.is_stale:
            definition = ViewDefinition(plan, part, Conjunction.of(plan, part), ask)
            entry = self._views[text] = self._create_view(text, definition)
        return entry.view

    def _create_view(self, key: str, definition: ViewDefinition) -> _CatalogView:
        wanted = wanted_patterns_of(_plan_of(definition.plan, definition.part))
        patterns = None
        if wanted is not None:
            patterns = frozenset((_id_of(one.subject), _id_of(one.predicate), _id_of(one.object)) for one in wanted)
        start = time.monotonic()
        view, is_stored = self._load_or_find(key, definition)
        seconds = SLOW_SECONDS if is_stored else time.monotonic() - start
        return _CatalogView(key, view, definition, seconds, self._conditions_of(definition.conjunction), patterns)

    def _conditions_of(self, conjunction: Conjunction | None) -> list[CompiledExpression]:
        if conjunction is None:
            return []
        vocabulary = Vocabulary(self.data.text_of, self.data.kinds_of)
        names, base = conjunction.variables, conjunction.base
        return [CompiledExpression(one, names, vocabulary, base=base) for one in conjunction.conditions]

    def _load_or_find(self, key: str, definition: ViewDefinition) -> tuple[View, bool]:
        """A view, and whether it is kept in the folder."""
        folder, versions = self._folder_of(key), self._data_versions()
        stored = None if folder is None else load_view(folder, key, versions)
        if stored is not None:
            self.texts.update(stored.texts)
            return stored.view, True
        start = time.monotonic()
        texts: Texts = {}
        view = make_view(definition.find_rows(self.data, texts))
        self.texts.update(texts)
        if folder is None or time.monotonic() - start < SLOW_SECONDS:
            return view, False
        with suppress(OSError):
            # In a read-only folder no view is kept.
            save_view(folder, key, versions, view, texts)
        stored = load_view(folder, key, versions)
        return (view, False) if stored is None else (stored.view, True)

    def _folder_of(self, key: str) -> Path | None:
        if not self.data.datasets:
            return None
        # Each version has a folder of its own, so that a reader never mixes the files of two.
        name, version = (
            hashlib.blake2b(text.encode(), digest_size=12).hexdigest() for text in (key, repr(self._data_versions()))
        )
        return self.data.datasets[0].folder / "views" / f"{name}-{version}"

    def _data_versions(self) -> list[list[object]]:
        """The states of the data sets, which determine the rows of a view."""
        return [[str(one.folder), one.version, one.base_name] for one in self.data.datasets]

    def slow_views(self, statements: Iterable[IdQuad] | None) -> list[WantedView]:
        """The views that have to be found again after a change of statements (None: of any), if that takes long."""
        is_reload = statements is None
        views = [one for one in self._views.values() if not one.is_stale and (is_reload or not one.incremental_part)]
        if statements is not None and _are_slow(views):
            listed = list(statements)
            views = [one for one in views if any(map(one.is_touched_by, listed))]
        if not _are_slow(views):
            return []
        return [WantedView(one.key, one.definition, one.view.relation if one.view.followers else None) for one in views]

    def begin_maintenance(self, is_reload: bool, prepared: Mapping[str, FoundView]) -> ViewMaintenance:
        """Begin to update the views; with `is_reload` any statement may be another one afterwards.

        `prepared` has views at the version to which the data moves.
        """
        return ViewMaintenance(self, self._views, is_reload, prepared)

    def replace_rows(self, entry: _CatalogView, found: FoundView | None) -> None:
        """Give a view its new rows, which are found now if nobody prepared them, and its followers the delta.

        A view without followers is found again when a query asks for it.
        """
        if found is None:
            if not entry.view.followers:
                entry.is_stale = True
                return
            start = time.monotonic()
            texts: Texts = {}
            found = FoundView(entry.definition.find_rows(self.data, texts), None, texts)
            entry.seconds = time.monotonic() - start
        self.texts.update(found.texts)
        if not entry.view.followers:
            entry.view = make_view(found.rows)
            return
        delta = found.delta or bag_difference(found.rows, entry.view.relation.ids())
        self.change_rows(entry, delta.added, delta.removed)

    def change_rows(self, entry: _CatalogView, added: Ints, removed: Ints) -> None:
        """Add rows to a view and remove rows from it, and pass both on to its followers."""
        relation = entry.view.relation
        assert isinstance(relation, ViewRelation)
        if added.shape[0] or removed.shape[0]:
            relation.change(added, removed)
            for follower in entry.view.followers:
                follower.add_change(added, removed)


class ViewMaintenance:
    """Collects how statements change the views while the data moves; `update_views` then changes their rows."""

    def __init__(
        self,
        catalog: ViewCatalog,
        views: dict[str, _CatalogView],
        is_reload: bool,
        prepared: Mapping[str, FoundView],
    ) -> None:
        self._catalog = catalog
        self._prepared = prepared
        self._views = list(views.values())
        self._to_find = {id(one) for one in self._views if is_reload}
        self._deltas: dict[int, Counter[tuple[int, ...]]] = {}

    def add_statement(self, statement: IdQuad, sign: int) -> None:
        """Take a statement into account that was added (1) or will be removed (-1); the data has it at the moment."""
        for entry in self._views:
            if id(entry) in self._to_find or entry.is_stale or not entry.is_touched_by(statement):
                continue
            conjunction = entry.incremental_part
            if conjunction is None:
                self._to_find.add(id(entry))
                continue
            rows = find_solutions_using(conjunction, statement, self._catalog.data)
            if rows.shape[0]:
                delta = self._deltas.setdefault(id(entry), Counter())
                for row in map(tuple, rows.tolist()):
                    delta[row] += sign

    def update_views(self) -> None:
        for entry in self._views:
            if entry.is_stale:
                continue
            if id(entry) in self._to_find:
                self._catalog.replace_rows(entry, self._prepared.get(entry.key))
            elif id(entry) in self._deltas:
                delta, width = self._deltas[id(entry)], entry.view.relation.width
                added, removed = (entry.filter_rows(_rows_of(delta, sign, width)) for sign in (1, -1))
                self._catalog.change_rows(entry, added, removed)


def _are_slow(views: list[_CatalogView]) -> bool:
    return sum(one.seconds for one in views) >= SLOW_SECONDS


def _rows_of(delta: Counter[tuple[int, ...]], sign: int, width: int) -> Ints:
    """The rows that a delta adds (1) or removes (-1)."""
    rows = [row for row, n in delta.items() for _ in range(n * sign)]
    return np.array(rows, dtype=np.int64).reshape(len(rows), width)


def _plan_of(plan: QueryPlan, part: Node) -> QueryPlan:
    return replace(plan, root=part, variables=visible_variables(part), kind=QueryKind.SELECT)


def _id_of(term: object) -> int | None:
    return None if term is None else encode(term)  # type: ignore[arg-type]
