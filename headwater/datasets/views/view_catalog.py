"""The views of a program's linked data: found once, shared by all queries, kept on disk, followed as the data changes.

Parts that say the same with other names for their variables are one view. A conjunction is followed statement by
statement; any other part is found again when a change can touch it (`finding`), in the background where that takes
its time (`preparing`).
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

from headwater.algebra.active_graphs import default_source
from headwater.algebra.nodes import Node
from headwater.algebra.plan import QueryKind, QueryPlan
from headwater.algebra.scope import visible
from headwater.algebra.wanted_patterns import wanted_by
from headwater.datasets.change_log import IdQuad
from headwater.datasets.mapped_files import Ints
from headwater.datasets.views.conjunctions import Conjunction
from headwater.datasets.views.differences import can_follow, rows_with
from headwater.datasets.views.preparation import Found, Wanted
from headwater.datasets.views.stored_views import ViewRelation, save_view, saved_view
from headwater.datasets.views.view_recipes import Recipe, Texts, view_of
from headwater.kernel.columns.row_counts import bag_difference
from headwater.kernel.columns.vocabulary import Vocabulary
from headwater.kernel.compiling.static_views import AskByDefinition, View
from headwater.kernel.expressions.compiled_expressions import CompiledExpression
from headwater.optimizer.shared_subplans import key_of
from headwater.terms.ids.term_ids import encode

if TYPE_CHECKING:
    from headwater.datasets.linked_data import LinkedData

WORTH_KEEPING_SECONDS = 0.05
"""A view that was found faster is found again at the next start. Views that are found again faster, all together, are
found between two ticks; others in the background."""


@dataclass
class _Known:
    """A view that somebody asked for; `seconds` is how long it took to find it."""

    key: str
    view: View
    recipe: Recipe
    seconds: float
    tests: list[CompiledExpression]
    wanted: frozenset[tuple[int | None, int | None, int | None]] | None
    """Which statements can matter to it: subject, predicate, object, None for any."""
    is_stale: bool = False

    @property
    def follows(self) -> Conjunction | None:
        """What a change of single statements is followed by; None where the view has to be found again."""
        conjunction = self.recipe.conjunction
        return conjunction if conjunction is not None and can_follow(conjunction) else None

    def kept(self, rows: Ints) -> Ints:
        """The rows for which the conditions hold."""
        for test in self.tests if rows.shape[0] else ():
            rows = rows[test.test_rows(rows)]
        return rows

    def is_touched_by(self, statement: IdQuad) -> bool:
        if self.wanted is None:
            return True
        _, *terms = statement
        return any(all(w is None or w == t for w, t in zip(one, terms, strict=True)) for one in self.wanted)


class Views:
    """The views over some linked data."""

    def __init__(self, data: LinkedData) -> None:
        self.data = data
        self._known: dict[str, _Known] = {}
        self.texts: dict[int, bytes] = {}
        """Terms that views made and no data set has."""

    def get(self, plan: QueryPlan, part: Node, ask: AskByDefinition) -> View:
        """The view of a part, its columns in the order of the part's variables."""
        key, columns = key_of(plan, part, default_source(plan))
        # Columns are in the order of the part's own variables: equal parts have them in the same order.
        order = [columns.index(variable) for variable in visible(part)]
        text = repr((key, order, plan.default_graphs, plan.named_graphs))
        known = self._known.get(text)
        if known is None or known.is_stale:
            known = self._known[text] = self._new(text, Recipe(plan, part, Conjunction.of(plan, part), ask))
        return known.view

    def _new(self, key: str, recipe: Recipe) -> _Known:
        patterns = wanted_by(_plan_of(recipe.plan, recipe.part))
        wanted = None
        if patterns is not None:
            wanted = frozenset((_id(one.subject), _id(one.predicate), _id(one.object)) for one in patterns)
        start = time.monotonic()
        view, is_stored = self._found(key, recipe)
        seconds = WORTH_KEEPING_SECONDS if is_stored else time.monotonic() - start
        return _Known(key, view, recipe, seconds, self._tests(recipe.conjunction), wanted)

    def _tests(self, conjunction: Conjunction | None) -> list[CompiledExpression]:
        if conjunction is None:
            return []
        vocabulary = Vocabulary(self.data.text_of, self.data.kinds_of)
        names, base = conjunction.variables, conjunction.base
        return [CompiledExpression(one, names, vocabulary, base=base) for one in conjunction.conditions]

    def _found(self, key: str, recipe: Recipe) -> tuple[View, bool]:
        """A view, and whether it is one that is kept in the folder."""
        folder, version = self._folder(key), self._about()
        stored = None if folder is None else saved_view(folder, key, version)
        if stored is not None:
            self.texts.update(stored.texts)
            return stored.view, True
        start = time.monotonic()
        texts: Texts = {}
        view = view_of(recipe.rows(self.data, texts))
        self.texts.update(texts)
        if folder is None or time.monotonic() - start < WORTH_KEEPING_SECONDS:
            return view, False
        with suppress(OSError):
            # A folder that may only be read does without.
            save_view(folder, key, version, view, texts)
        stored = saved_view(folder, key, version)
        return (view, False) if stored is None else (stored.view, True)

    def _folder(self, key: str) -> Path | None:
        if not self.data.datasets:
            return None
        # A folder never changes, so that nobody finds the rows of one version beside the words of another.
        name, version = (
            hashlib.blake2b(text.encode(), digest_size=12).hexdigest() for text in (key, repr(self._about()))
        )
        return self.data.datasets[0].folder / "views" / f"{name}-{version}"

    def _about(self) -> list[list[object]]:
        """What the rows of a view depend on."""
        return [[str(one.folder), one.version, one.base] for one in self.data.datasets]

    def slow(self, statements: Iterable[IdQuad] | None) -> list[Wanted]:
        """The views that a change of statements, or of anything, has found again, where that takes its time."""
        anew = statements is None
        known = [one for one in self._known.values() if not one.is_stale and (anew or one.follows is None)]
        if statements is not None and _take_their_time(known):
            listed = list(statements)
            known = [one for one in known if any(map(one.is_touched_by, listed))]
        if not _take_their_time(known):
            return []
        return [Wanted(one.key, one.recipe, one.view.relation if one.view.followers else None) for one in known]

    def begin(self, *, anew: bool = False, prepared: Mapping[str, Found] | None = None) -> Following:
        """Follow changes of the data, statement by statement; with `anew` the data may be anything afterwards.

        `prepared` has views as they will be.
        """
        return Following(self, self._known, anew, prepared or {})

    def again(self, known: _Known, found: Found | None) -> None:
        """Find a view anew, and tell those who follow it how it changed; others ask for it again."""
        if found is None:
            if not known.view.followers:
                known.is_stale = True
                return
            start = time.monotonic()
            texts: Texts = {}
            found = Found(known.recipe.rows(self.data, texts), None, texts)
            known.seconds = time.monotonic() - start
        self.texts.update(found.texts)
        if not known.view.followers:
            known.view = view_of(found.rows)
            return
        change = found.change or bag_difference(found.rows, known.view.relation.ids())
        self.show(known, change.added, change.removed)

    def show(self, known: _Known, added: Ints, removed: Ints) -> None:
        """Change the rows of a view."""
        relation = known.view.relation
        assert isinstance(relation, ViewRelation)
        if added.shape[0] or removed.shape[0]:
            relation.change(added, removed)
            for follower in known.view.followers:
                follower.add_change(added, removed)


class Following:
    """What changes of single statements make of the views; `end` has the views show it."""

    def __init__(self, views: Views, known: dict[str, _Known], anew: bool, prepared: Mapping[str, Found]) -> None:
        self._views = views
        self._prepared = prepared
        self._known = list(known.values())
        self._again = {id(one) for one in self._known if anew}
        self._net: dict[int, Counter[tuple[int, ...]]] = {}

    def statement(self, statement: IdQuad, sign: int) -> None:
        """A statement that has come, or that will go; the data has it."""
        for known in self._known:
            if id(known) in self._again or known.is_stale or not known.is_touched_by(statement):
                continue
            conjunction = known.follows
            if conjunction is None:
                self._again.add(id(known))
                continue
            rows = rows_with(conjunction, statement, self._views.data)
            if rows.shape[0]:
                net = self._net.setdefault(id(known), Counter())
                for row in map(tuple, rows.tolist()):
                    net[row] += sign

    def end(self) -> None:
        for known in self._known:
            if known.is_stale:
                continue
            if id(known) in self._again:
                self._views.again(known, self._prepared.get(known.key))
            elif id(known) in self._net:
                net, width = self._net[id(known)], known.view.relation.width
                self._views.show(known, known.kept(_rows(net, 1, width)), known.kept(_rows(net, -1, width)))


def _take_their_time(known: list[_Known]) -> bool:
    return sum(one.seconds for one in known) >= WORTH_KEEPING_SECONDS


def _rows(net: Counter[tuple[int, ...]], sign: int, width: int) -> Ints:
    found = [row for row, n in net.items() for _ in range(n * sign)]
    return np.array(found, dtype=np.int64).reshape(len(found), width)


def _plan_of(plan: QueryPlan, part: Node) -> QueryPlan:
    return replace(plan, root=part, variables=visible(part), kind=QueryKind.SELECT)


def _id(term: object) -> int | None:
    return None if term is None else encode(term)  # type: ignore[arg-type]
