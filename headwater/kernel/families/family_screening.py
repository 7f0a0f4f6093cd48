"""Selects the triples of a window that a pattern with parameters can match for some member.

    ?p0 :value ?v        with members for :s1 and :s2, of a window on thousands of sensors

    V the values of the members, C the content of the windows:     ΔO = σ_V(ΔC) + σ_(V'−V)(C') − σ_(V−V')(C')

Triples that come and go are compared with the values that members had at the last tick. Where members have come or
gone, the triples with their values are selected from all that the windows hold at that moment.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from headwater.algebra.plan import QueryPlan
from headwater.algebra.window_graphs import windows_of
from headwater.kernel.columns.delta import Delta, stack_rows
from headwater.kernel.columns.relation import Relation
from headwater.kernel.columns.ring_index import Ints, Links
from headwater.kernel.columns.vocabulary import Vocabulary
from headwater.kernel.compiling.pattern_inputs import PatternCompiler
from headwater.kernel.compiling.static_parts import StaticParts
from headwater.kernel.families.member_tables import Key, MemberFollower, Values
from headwater.kernel.operators.operator import Operator
from headwater.kernel.operators.triple_patterns import TickClock
from headwater.language.patterns import TriplePattern
from headwater.terms.model import NamedNode, Variable
from headwater.windows.settings import QuerySettings

WindowContents = Callable[[], list[Ints]]
"""The triples that each window shows."""


class MemberFilterOperator(Operator):
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
        self._wanted = Relation(len(columns))

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

    def apply(self, deltas: Sequence[Delta]) -> Delta:
        (delta,) = deltas
        if not self._touched:
            return delta.map_rows(self._select_wanted)
        added, removed = self._select_wanted(delta.added), self._select_wanted(delta.removed)
        new, gone = self._changed_keys()
        content = self._content()
        self._wanted.take(gone.ids())
        self._wanted.add(new.ids())
        width = len(self.variables)
        return Delta(
            stack_rows([added, self._select(content, new)], width),
            stack_rows([removed, self._select(content, gone)], width),
        )

    def _changed_keys(self) -> tuple[Relation, Relation]:
        """The values that members have since the last tick, and those that no member has any more."""
        touched = np.array(list(self._touched), dtype=np.int64).reshape(len(self._touched), self._wanted.width)
        is_asked = np.array([key in self._asked for key in self._touched], dtype=np.bool_)
        self._touched = {}
        is_passing = _has_wanted_values(self._wanted, touched, np.arange(touched.shape[1], dtype=np.int32))
        new, gone = Relation(touched.shape[1]), Relation(touched.shape[1])
        new.add(touched[is_asked & ~is_passing])
        gone.add(touched[~is_asked & is_passing])
        return new, gone

    def _select_wanted(self, rows: Ints) -> Ints:
        return self._select(rows, self._wanted)

    def _select(self, rows: Ints, wanted: Relation) -> Ints:
        if not rows.shape[0] or not wanted.size:
            return rows[:0]
        for column, value in self._constants:
            rows = rows[rows[:, column] == value]
        return rows[_has_wanted_values(wanted, rows, self._columns)]

    @property
    def inputs(self) -> tuple[Operator, ...]:
        return (self._source,)

    def ids(self) -> Iterable[Ints]:
        yield self._wanted.ids()

    @property
    def nbytes(self) -> int:
        return self._wanted.nbytes


def _has_wanted_values(wanted: Relation, rows: Ints, columns: Links) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """For each row whether its values at some columns are wanted."""
    if not wanted.size or not rows.shape[0]:
        return np.zeros(rows.shape[0], dtype=np.bool_)
    _, counts, _ = wanted.index(tuple(range(wanted.width))).probe(wanted.rows, np.ascontiguousarray(rows), columns)
    return counts > 0


class FamilyPatternCompiler(PatternCompiler):
    """Compiles triple patterns; those with parameters read only triples with values of members."""

    def __init__(
        self,
        plan: QueryPlan,
        settings: QuerySettings,
        static_parts: StaticParts,
        vocabulary: Vocabulary,
        clock: TickClock,
        prefix: str,
        parameters: Sequence[Variable],
        contents: WindowContents,
        followers: list[MemberFollower],
    ) -> None:
        super().__init__(plan, settings, static_parts, vocabulary, clock, prefix)
        self._parameters = parameters
        self._contents = contents
        self._followers = followers

    def pattern(self, triple: TriplePattern, graph: NamedNode) -> Operator:
        """The solutions of a triple pattern; one with a parameter reads only triples that a member asks for."""
        terms = (triple.subject, triple.predicate, triple.object)
        asked = [(column, self._parameters.index(v)) for column, v in enumerate(terms) if v in self._parameters]
        if not asked or self._by_stream:
            return super().pattern(triple, graph)
        windows = windows_of(self._plan, graph)

        def content() -> Ints:
            shown = self._contents()
            return np.concatenate([shown[number] for number in windows])

        constants = [(1, self._vocabulary.id_of(terms[1]))] if isinstance(terms[1], NamedNode) else []
        columns, places = [column for column, _ in asked], [place for _, place in asked]
        screened = MemberFilterOperator(self._graph(graph), columns, places, content, constants)
        self._followers.append(screened)
        # Only this pattern reads these triples, so it is not shared with equal patterns.
        graphs, patterns = self._graphs, self._patterns
        self._graphs, self._patterns = {graph: screened}, {}
        try:
            return super().pattern(triple, graph)
        finally:
            self._graphs, self._patterns = graphs, patterns
