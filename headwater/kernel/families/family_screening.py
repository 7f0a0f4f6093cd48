"""Of the triples of a window, those that a pattern with parameters can match for some member; others are not even kept.

    ?p0 :value ?v        with the members asking for :s1 and :s2, of a window on thousands of sensors

    V the values asked for, C what the windows hold:     ΔO = σ_V(ΔC) + σ_(V'−V)(C') − σ_(V−V')(C')

What comes and goes is screened by the values that were asked for so far. Where members have come or gone, the triples
of their values are looked for among all that the windows hold at that moment, which nobody has to remember for that.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from headwater.algebra.plan import QueryPlan
from headwater.execution.static_data import StaticData
from headwater.kernel.columns.delta import Delta, stack_rows
from headwater.kernel.columns.relation import Relation
from headwater.kernel.columns.ring_index import Ints, Links
from headwater.kernel.columns.vocabulary import Vocabulary
from headwater.kernel.compiling.pattern_inputs import Leaves
from headwater.kernel.families.member_tables import FollowsMembers, Key, Values
from headwater.kernel.operators.operator import Operator
from headwater.kernel.operators.triple_patterns import TickClock
from headwater.language.patterns import TriplePattern
from headwater.terms.model import NamedNode, Variable
from headwater.windows.settings import QuerySettings

Contents = Callable[[], list[Ints]]
"""The triples that each window shows."""


class Screened(Operator):
    """The rows of `source` that have at `columns` values which members give to the parameters at `places`, and in other
    columns the `constants`. `content` gives all rows of the source as they are now.

    State: the values.
    """

    def __init__(
        self,
        source: Operator,
        columns: Sequence[int],
        places: Sequence[int],
        content: Callable[[], Ints],
        constants: Sequence[tuple[int, int]] = (),
    ) -> None:
        self.variables = source.variables
        self._source = source
        self._columns: Links = np.array(columns, dtype=np.int32)
        self._places = places
        self._content = content
        self._constants = constants
        self._asked: Counter[Key] = Counter()
        self._touched: dict[Key, None] = {}
        self._passing = Relation(len(columns))

    def enter(self, members: Sequence[Values]) -> None:
        """Members have come, each with the values of all parameters of the family."""
        for member in members:
            key = self._key(member)
            self._asked[key] += 1
            self._touched[key] = None

    def leave(self, member: Values) -> None:
        """A member has gone."""
        key = self._key(member)
        self._asked[key] -= 1
        self._touched[key] = None
        if not self._asked[key]:
            del self._asked[key]

    def _key(self, member: Values) -> Key:
        return tuple(member[place] for place in self._places)

    def advance(self) -> Delta:
        delta = self._source.advance()
        if not self._touched:
            return delta.map_rows(self._passed)
        added, removed = self._passed(delta.added), self._passed(delta.removed)
        new, gone = self._changed_keys()
        content = self._content()
        self._passing.take(gone.ids())
        self._passing.add(new.ids())
        width = len(self.variables)
        return Delta(
            stack_rows([added, self._chosen(content, new)], width),
            stack_rows([removed, self._chosen(content, gone)], width),
        )

    def _changed_keys(self) -> tuple[Relation, Relation]:
        """The values that are asked for since the last tick, and those that are not any more."""
        touched = np.array(list(self._touched), dtype=np.int64).reshape(len(self._touched), self._passing.width)
        is_asked = np.array([key in self._asked for key in self._touched], dtype=np.bool_)
        self._touched = {}
        is_passing = _found(self._passing, touched, np.arange(touched.shape[1], dtype=np.int32))
        new, gone = Relation(touched.shape[1]), Relation(touched.shape[1])
        new.add(touched[is_asked & ~is_passing])
        gone.add(touched[~is_asked & is_passing])
        return new, gone

    def _passed(self, rows: Ints) -> Ints:
        return self._chosen(rows, self._passing)

    def _chosen(self, rows: Ints, wanted: Relation) -> Ints:
        if not rows.shape[0] or not wanted.size:
            return rows[:0]
        for column, value in self._constants:
            rows = rows[rows[:, column] == value]
        return rows[_found(wanted, rows, self._columns)]

    @property
    def inputs(self) -> tuple[Operator, ...]:
        return (self._source,)

    def ids(self) -> Iterable[Ints]:
        yield self._passing.ids()

    @property
    def nbytes(self) -> int:
        return self._passing.nbytes


def _found(wanted: Relation, rows: Ints, columns: Links) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """For each row whether its values at some columns are wanted."""
    if not wanted.size or not rows.shape[0]:
        return np.zeros(rows.shape[0], dtype=np.bool_)
    _, counts, _ = wanted.index(tuple(range(wanted.width))).probe(wanted.rows, np.ascontiguousarray(rows), columns)
    return counts > 0


class FamilyLeaves(Leaves):
    """Makes the operators of triple patterns; those of patterns with parameters read screened triples."""

    def __init__(
        self,
        plan: QueryPlan,
        settings: QuerySettings,
        static: StaticData,
        vocabulary: Vocabulary,
        clock: TickClock,
        prefix: str,
        parameters: Sequence[Variable],
        contents: Contents,
        followers: list[FollowsMembers],
    ) -> None:
        super().__init__(plan, settings, static, vocabulary, clock, prefix)
        self._parameters = parameters
        self._contents = contents
        self._followers = followers

    def pattern(self, triple: TriplePattern, graph: NamedNode) -> Operator:
        terms = (triple.subject, triple.predicate, triple.object)
        asked = [(column, self._parameters.index(v)) for column, v in enumerate(terms) if v in self._parameters]
        if not asked or self._by_stream:
            return super().pattern(triple, graph)
        windows = self.windows_of(graph)

        def content() -> Ints:
            shown = self._contents()
            return np.concatenate([shown[number] for number in windows])

        constants = [(1, self._vocabulary.id_of(terms[1]))] if isinstance(terms[1], NamedNode) else []
        columns, places = [column for column, _ in asked], [place for _, place in asked]
        screened = Screened(self._graph(graph), columns, places, content, constants)
        self._followers.append(screened)
        # Nobody else reads these triples, so what is made of them is no pattern that others could share.
        graphs, patterns = self._graphs, self._patterns
        self._graphs, self._patterns = {graph: screened}, {}
        try:
            return super().pattern(triple, graph)
        finally:
            self._graphs, self._patterns = graphs, patterns
