"""All data sets of a program as one: what the evaluators ask, whatever it comes from.

A statement that several data sets have is there once. All of them are at some version; together these are the version
that answers name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from pyoxigraph import DefaultGraph

from headwater.algebra.nodes import Node
from headwater.algebra.plan import QueryPlan
from headwater.datasets.change_log import IdQuad, Overlay
from headwater.datasets.dataset import DataSet, id_or_none
from headwater.datasets.errors import DataSetError
from headwater.datasets.mapped_files import Ints
from headwater.datasets.statement_columns import Pairs, Place, united
from headwater.datasets.views.preparation import Found, Preparation
from headwater.datasets.views.view_catalog import Views
from headwater.execution.static_data import Version
from headwater.kernel.compiling.static_views import AskByDefinition, View
from headwater.optimizer.statistics import PredicateCounts, Statistics
from headwater.terms.ids.inline_layout import NO_TERM, is_inline
from headwater.terms.ids.term_ids import decode_inline, encode
from headwater.terms.ids.term_texts import Kind, Kinds, term_of_text
from headwater.terms.model import NamedNode, Quad, Term
from headwater.terms.stored_forms import original, stored_quad

_REMEMBERED_TERMS = 1 << 16


class LinkedData:
    """Data sets, each at a version."""

    def __init__(self, datasets: Sequence[DataSet]) -> None:
        self.datasets = tuple(datasets)
        self._terms: dict[int, Term] = {}
        self._views = Views(self)
        self._preparation: Preparation | None = None
        self._ahead: LinkedData | None = None
        """A second reader of the same folders, for what is prepared."""

    @property
    def version(self) -> tuple[int, ...]:
        """The versions of the data sets, in their order."""
        return tuple(one.version for one in self.datasets)

    def differences(self, version: Version) -> list[Quad] | None:
        """The statements that may be other ones at a version; None where any may."""
        found: list[Quad] = []
        for one, its in zip(self.datasets, version, strict=True):
            changes = one.ahead(its)
            if changes is None:
                return None
            for change in changes:
                found += (*change.added, *change.removed)
        return found

    def move(self, version: Version) -> None:
        """Be at another version, and have the views follow."""
        following = self._views.begin(anew=self.differences(version) is None, prepared=self._taken(version))
        for place, (one, its) in enumerate(zip(self.datasets, version, strict=True)):
            others = [other for number, other in enumerate(self.datasets) if number != place]

            def tell(quad: IdQuad, sign: int, others: Sequence[DataSet] = others) -> None:
                if not any(other.has(quad) for other in others):
                    following.statement(quad, sign)

            one.advance(its, tell)
        following.end()

    def latest(self) -> Version:
        """The newest version there is."""
        return tuple(one.latest() for one in self.datasets)

    def prepare(self, version: Version, patience: float) -> Version:
        """The version that a move can go to at once: that one, one before it, or the one at which it is.

        What takes its time is done in the background; somebody may wait for some seconds.
        """
        if self._preparation is None:
            changed = self.differences(version)
            slow = self._views.slow(None if changed is None else map(_ids, changed))
            if not slow:
                return version
            self._preparation = Preparation(self.version, version, slow)
            self._preparation.begin(self._at)
        return self._preparation.version if self._preparation.is_done(patience) else self.version

    def _at(self, version: Version) -> LinkedData:
        if self._ahead is None:
            self._ahead = LinkedData([DataSet.open(one.folder) for one in self.datasets])
        self._ahead.move(version)
        return self._ahead

    def _taken(self, version: Version) -> Mapping[str, Found]:
        """What was prepared for a version. What was prepared for another one is of no use any more."""
        found, self._preparation = self._preparation, None
        if found is None:
            return {}
        # Even what is of no use is waited for: it reads what a move changes.
        views = found.result()
        return views if (found.since, found.version) == (self.version, version) else {}

    def view(self, plan: QueryPlan, part: Node, ask: AskByDefinition) -> View:
        """The solutions of a part, shared with whoever asks for the same."""
        return self._views.get(plan, part, ask)

    def statistics(self) -> Statistics:
        """What the planner goes by: counts by graph and predicate, as they were loaded."""
        graphs: dict[NamedNode | None, dict[NamedNode, PredicateCounts]] = {}
        for one in self.datasets:
            for graph, counts in one.counts().items():
                known = graphs.setdefault(graph, {})
                for predicate, count in counts.items():
                    known[predicate] = known[predicate] + count if predicate in known else count
        return Statistics(graphs)

    @property
    def states(self) -> list[Overlay]:
        return [one.state for one in self.datasets]

    def named_graphs(self) -> Iterator[NamedNode]:
        """The names of all graphs."""
        return iter(dict.fromkeys(graph for one in self.datasets for graph in one.named_graphs()))

    def quads_for_pattern(self, subject: Any, predicate: Any, object: Any, graph_name: Any = None, /) -> Iterator[Quad]:
        """The statements that match, as a store would give them; None stands for anything."""
        value = object if object is None else original(object)
        wanted = [id_or_none(term) for term in (subject, predicate, value, graph_name)]
        return (stored_quad(self._quad(quad)) for quad in self.id_quads(*wanted))

    def quads(self) -> Iterator[Quad]:
        """All statements as they were written."""
        return map(self._quad, self.id_quads(None, None, None, None))

    def id_quads(
        self, subject: int | None, predicate: int | None, object: int | None, graph: int | None
    ) -> Iterator[IdQuad]:
        """The statements that match, each once."""
        if len(self.datasets) == 1:
            return self.datasets[0].id_quads(subject, predicate, object, graph)
        found = (quad for one in self.datasets for quad in one.id_quads(subject, predicate, object, graph))
        return iter(dict.fromkeys(found))

    def _quad(self, quad: IdQuad) -> Quad:
        graph, s, p, o = quad
        name: Any = DefaultGraph() if graph == NO_TERM else self.term_of(graph)
        subject: Any = self.term_of(s)
        predicate: Any = self.term_of(p)
        return Quad(subject, predicate, self.term_of(o), name)

    def term_of(self, number: int) -> Term:
        """The term of an id that stands in the data."""
        known = self._terms.get(number)
        if known is not None:
            return known
        if is_inline(number):
            return decode_inline(number)
        text = self.text_of(number)
        if text is None:
            raise DataSetError(f"a data set is damaged: it has no term {number}; load its files again")
        if len(self._terms) >= _REMEMBERED_TERMS:
            self._terms.clear()
        term = self._terms[number] = term_of_text(text)
        return term

    def text_of(self, number: int) -> bytes | None:
        """The text of a hashed id, None where no data set has it."""
        for state in self.states:
            text = state.text_of(number)
            if text is not None:
                return text
        return self._views.texts.get(number)

    def kinds_of(self, ids: Ints) -> Kinds:
        """What hashed ids stand for, unknown where no data set has them."""
        found = np.zeros(ids.shape[0], dtype=np.uint8)
        for state in self.states:
            found = np.where(found == Kind.UNKNOWN, state.kinds_of(ids), found)
        return found

    def places(self) -> set[Place]:
        """The graphs and predicates that may have statements."""
        return {place for state in self.states for place in state.places()}

    def objects(self, place: Place, s: int) -> list[int]:
        """The objects of a subject."""
        if len(self.datasets) == 1:
            return self.datasets[0].state.objects(place, s)
        return list(dict.fromkeys(o for state in self.states for o in state.objects(place, s)))

    def subjects(self, place: Place, o: int) -> list[int]:
        """The subjects of an object."""
        if len(self.datasets) == 1:
            return self.datasets[0].state.subjects(place, o)
        return list(dict.fromkeys(s for state in self.states for s in state.subjects(place, o)))

    def pairs(self, place: Place) -> Pairs:
        """Subjects and objects of a predicate in a graph, in the order of the subjects."""
        return united([state.pairs(place) for state in self.states])

    def reversed_pairs(self, place: Place) -> Pairs:
        """Objects and subjects of a predicate in a graph, in the order of the objects."""
        return united([state.reversed_pairs(place) for state in self.states])


def _ids(quad: Quad) -> IdQuad:
    graph = NO_TERM if isinstance(quad.graph_name, DefaultGraph) else encode(quad.graph_name)
    return graph, encode(quad.subject), encode(quad.predicate), encode(quad.object)
