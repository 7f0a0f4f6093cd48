"""The views of a program's linked data: found once, shared by all queries, kept on disk, followed as the data changes.

Parts that say the same with other names for their variables are one view. A conjunction is evaluated on the columns,
and followed statement by statement; any other part is found by definition, and found again when a change can touch it.
"""

from __future__ import annotations

import hashlib
import time
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from headwater.algebra.nodes import Node
from headwater.algebra.plan import QueryKind, QueryPlan
from headwater.algebra.scope import visible
from headwater.algebra.sources import default_source
from headwater.algebra.wanted import wanted_by
from headwater.datasets.changes import IdQuad
from headwater.datasets.conjunctions import Conjunction
from headwater.datasets.differences import can_follow, rows_with
from headwater.datasets.kernel_views import rows_by_kernel
from headwater.datasets.mapped import Ints
from headwater.datasets.matching import solutions
from headwater.datasets.stored_views import ViewRelation, save_view, saved_view
from headwater.datasets.tables import table_of
from headwater.kernel.delta import UNBOUND
from headwater.kernel.expressions import CompiledExpression
from headwater.kernel.ordering import difference
from headwater.kernel.views import View
from headwater.kernel.vocabulary import Vocabulary
from headwater.optimizer.shared_subplans import key_of
from headwater.terms.ids import encode, term_text
from headwater.terms.inline_layout import is_inline
from headwater.terms.model import Row

if TYPE_CHECKING:
    from headwater.datasets.linked_data import LinkedData

WORTH_KEEPING_SECONDS = 0.05
"""A view that was found faster is found again at the next start."""


@dataclass
class _Known:
    """A view that somebody asked for."""

    view: View
    conjunction: Conjunction | None
    again: Callable[[], Ints]
    tests: list[CompiledExpression]
    wanted: frozenset[tuple[int | None, int | None, int | None]] | None
    """Which statements can matter to it: subject, predicate, object, None for any."""
    is_stale: bool = False

    def kept(self, rows: Ints) -> Ints:
        """The rows for which the conditions hold."""
        for test in self.tests if rows.shape[0] else ():
            rows = rows[test.holds(rows)]
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

    def get(self, plan: QueryPlan, part: Node, ask: Callable[[], list[Row]]) -> View:
        """The view of a part, its columns in the order of the part's variables."""
        key, columns = key_of(plan, part, default_source(plan))
        # Columns are in the order of the part's own variables: equal parts have them in the same order.
        order = [columns.index(variable) for variable in visible(part)]
        text = repr((key, order, plan.default_graphs, plan.named_graphs))
        known = self._known.get(text)
        if known is None or known.is_stale:
            known = self._known[text] = self._new(plan, part, text, ask)
        return known.view

    def _new(self, plan: QueryPlan, part: Node, key: str, ask: Callable[[], list[Row]]) -> _Known:
        conjunction = Conjunction.of(plan, part)
        patterns = wanted_by(_plan_of(plan, part))
        wanted = None
        if patterns is not None:
            wanted = frozenset((_id(one.subject), _id(one.predicate), _id(one.object)) for one in patterns)
        view = self._found(plan, part, key, conjunction, ask)

        def again() -> Ints:
            return self._rows(plan, part, conjunction, ask, self.texts)

        return _Known(view, conjunction, again, self._tests(conjunction), wanted)

    def _tests(self, conjunction: Conjunction | None) -> list[CompiledExpression]:
        if conjunction is None:
            return []
        vocabulary = Vocabulary(self.data.text_of)
        names, base = conjunction.variables, conjunction.base
        return [CompiledExpression(one, names, vocabulary, base=base) for one in conjunction.conditions]

    def _rows(
        self,
        plan: QueryPlan,
        part: Node,
        conjunction: Conjunction | None,
        ask: Callable[[], list[Row]],
        texts: dict[int, bytes],
    ) -> Ints:
        """The solutions of a part, on columns where that can be done."""
        if conjunction is not None:
            return solutions(conjunction, self.data)
        table = table_of(plan, part, self.data)
        if table is not None:
            return table.rows(tuple(variable.value for variable in visible(part)))
        rows = rows_by_kernel(plan, part, self.data, texts)
        return self._encoded(ask(), len(visible(part)), texts) if rows is None else rows

    def _found(
        self, plan: QueryPlan, part: Node, key: str, conjunction: Conjunction | None, ask: Callable[[], list[Row]]
    ) -> View:
        folder, version = self._folder(key), self._about()
        stored = None if folder is None else saved_view(folder, key, version)
        if stored is not None:
            self.texts.update(stored.texts)
            return stored.view
        start = time.monotonic()
        texts: dict[int, bytes] = {}
        rows = self._rows(plan, part, conjunction, ask, texts)
        sure = frozenset(place for place in range(rows.shape[1]) if not (rows[:, place] == UNBOUND).any())
        view = View(ViewRelation(rows), sure)
        self.texts.update(texts)
        if folder is None or time.monotonic() - start < WORTH_KEEPING_SECONDS:
            return view
        with suppress(OSError):
            # A folder that may only be read does without.
            save_view(folder, key, version, view, texts)
        stored = saved_view(folder, key, version)
        return view if stored is None else stored.view

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

    def _encoded(self, rows: Iterable[Row], width: int, texts: dict[int, bytes]) -> Ints:
        known: dict[object, int] = {None: UNBOUND}
        listed: list[list[int]] = []
        for row in rows:
            ids: list[int] = []
            for term in row:
                number = known.get(term)
                if number is None:
                    assert term is not None
                    number = known[term] = encode(term)
                    if not is_inline(number) and self.data.text_of(number) is None:
                        texts[number] = term_text(term).encode()
                ids.append(number)
            listed.append(ids)
        return np.array(listed, dtype=np.int64).reshape(len(listed), width)

    def begin(self, *, anew: bool = False) -> Following:
        """Follow changes of the data, statement by statement; with `anew` the data may be anything afterwards."""
        return Following(self, self._known, anew)

    def again(self, known: _Known) -> None:
        """Find a view anew, and tell those who follow it how it changed; others ask for it again."""
        if not known.view.followers:
            known.is_stale = True
            return
        relation = known.view.relation
        assert isinstance(relation, ViewRelation)
        change = difference(known.again(), relation.ids())
        self.show(known, change.added, change.removed)

    def show(self, known: _Known, added: Ints, removed: Ints) -> None:
        """Change the rows of a view."""
        relation = known.view.relation
        assert isinstance(relation, ViewRelation)
        if added.shape[0] or removed.shape[0]:
            relation.change(added, removed)
            for follower in known.view.followers:
                follower.differ(added, removed)


class Following:
    """What changes of single statements make of the views; `end` has the views show it."""

    def __init__(self, views: Views, known: dict[str, _Known], anew: bool) -> None:
        self._views = views
        self._known = list(known.values())
        self._again = {id(one) for one in self._known if anew}
        self._net: dict[int, Counter[tuple[int, ...]]] = {}

    def statement(self, statement: IdQuad, sign: int) -> None:
        """A statement that has come, or that will go; the data has it."""
        for known in self._known:
            if id(known) in self._again or known.is_stale or not known.is_touched_by(statement):
                continue
            conjunction = known.conjunction
            if conjunction is None or not can_follow(conjunction):
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
                self._views.again(known)
            elif id(known) in self._net:
                net, width = self._net[id(known)], known.view.relation.width
                self._views.show(known, known.kept(_rows(net, 1, width)), known.kept(_rows(net, -1, width)))


def _rows(net: Counter[tuple[int, ...]], sign: int, width: int) -> Ints:
    found = [row for row, n in net.items() for _ in range(n * sign)]
    return np.array(found, dtype=np.int64).reshape(len(found), width)


def _plan_of(plan: QueryPlan, part: Node) -> QueryPlan:
    return replace(plan, root=part, variables=visible(part), kind=QueryKind.SELECT)


def _id(term: object) -> int | None:
    return None if term is None else encode(term)  # type: ignore[arg-type]
