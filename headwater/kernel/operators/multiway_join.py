"""The multiway join with an adaptive probing order (OA1, OA5, OA6; algorithms 3, 4, 5 of the paper).

    (R₁ + ΔR₁) ⋈ … ⋈ (Rₙ + ΔRₙ)  −  R₁ ⋈ … ⋈ Rₙ   =   Σᵢ  R'₁ ⋈ … ⋈ R'ᵢ₋₁ ⋈ ΔRᵢ ⋈ Rᵢ₊₁ ⋈ … ⋈ Rₙ

A new mapping of one input walks through the others. Before each step the ring indexes say, without looking at a row,
how many rows each remaining input would contribute, and every mapping goes where that number is smallest: mappings of
one batch may take different ways (`steps` counts them). What an index said about an input that was not chosen stays
true until a variable more is known of it, so nobody is asked twice. The input that was best last time is asked first;
if it leaves so few mappings that less could not be much less, the others are not asked at all. An input with which
nothing is shared comes last.
The sum holds whatever the order of the inputs is; those that hold the most come first in it.

Static inputs screen the others: a mapping without a partner in a static view can never lead to a result, so it is not
even kept. What the view said about those that stay is what the first step of their walk needs anyway.

An input that lost all it had at once (`Delta.is_fresh`) takes every result with it: nothing is taken out row by row.
Where NOW or [TRIPLES 1] is joined, that is at every tick, and results need no lists of who made them.

Two inputs that are one pattern under two names (`twins`) are one relation, whose rows are kept and indexed once. What
comes walks from the first of the two and from the second, or is mirrored instead of walking once more; results in which
both rows are new are found twice, and counted once.

Variables that inputs share must be bound in all of their rows; `CompatibleJoin` is for those that may not be.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from headwater.kernel.columns.delta import Condition, Delta, no_rows, stacked
from headwater.kernel.columns.prefetching import prefetch
from headwater.kernel.columns.relation import IndexUse, Key, Relation
from headwater.kernel.columns.ring_index import AHEAD, Ints, Links, plain
from headwater.kernel.operators.constant import Constant
from headwater.kernel.operators.join_results import Results
from headwater.kernel.operators.operator import Operator
from headwater.kernel.operators.twin_inputs import mirror_of, twins_among
from headwater.terms.compiled_code import compiled

_WORTH_ASKING = 0.5
"""While the best input known has fewer partners than this for each mapping, another one is not worth the question."""

_WORTH_PARTING = 256
"""So many rows less must be looked at before a batch is parted: a part costs as much as some hundred rows."""

_WORTH_A_LOOK = 256
"""So many mappings are looked up in the last input before they are made; fewer are sooner made."""

_FEW = 256
"""So many rows that all go are read at once, and their tables emptied; more are left for whoever asks."""

_REVIEWED_EVERY = 64
"""After so many ticks the indexes are looked at."""

Found = tuple[Ints, Ints, int]
"""What an index says about some probes: heads, counts, and the sum of the counts."""
Known = dict[int, tuple[Key, Found]]
"""What was said about the inputs that may come next, and on which key."""


@dataclass(frozen=True, slots=True)
class _Candidate:
    """An input that may come next: the columns it is probed on, and where their values stand in the leaves so far.

    `holder` is the leaf that has them all, in `columns`, or None where several have some: then `gathered` says of each
    of these which columns they are and where in the key they go.
    """

    number: int
    key: Key
    holder: int | None
    columns: Links
    gathered: tuple[tuple[int, Links, Links], ...]
    done: int


@compiled
def _fetch(rows, tree, leaf, columns, places, values):  # type: ignore[no-untyped-def]
    """Some columns of the rows that stand at a leaf of each tree."""
    for n in range(tree.shape[0]):
        if n + AHEAD < tree.shape[0]:
            prefetch(rows, tree[n + AHEAD, leaf])
        row = tree[n, leaf]
        for k in range(columns.shape[0]):
            values[n, places[k]] = rows[row, columns[k]]


class MultiwayJoin(Operator):
    """Joins any number of inputs. `order` fixes the probing order for comparison: of the inputs that share a variable
    with those before, the first in this order comes next.

    An index that saw more inserts than `inserts_per_probe` for each probe is dropped until it is needed again (CQ7):
    windows that move a lot and are seldom asked do without. None keeps all.

    Of the results those are made that satisfy a `condition`, if there is one: what goes was judged when it came.
    """

    def __init__(
        self,
        inputs: Sequence[Operator],
        variables: tuple[str, ...],
        *,
        order: tuple[int, ...] | None = None,
        inserts_per_probe: float | None = 100.0,
        condition: Condition | None = None,
    ) -> None:
        self.variables = variables
        self.condition = condition
        self.order = order
        self.steps: Counter[tuple[int, int]] = Counter()
        """How many mappings of so many leaves went to which input next."""
        self._inputs = tuple(inputs)
        self._relations = [Relation(len(one.variables)) for one in inputs]
        self._all_done = (1 << len(self._inputs)) - 1
        self._results = Results(len(self._inputs))
        self._young: list[tuple[Ints, Ints]] = []
        """Results that no leaf has a list of yet, with their values: where NOW is joined, they go all at once."""
        self._candidates: dict[int, tuple[_Candidate, ...]] = {}
        self._constants = [i for i, one in enumerate(inputs) if isinstance(one, Constant)]
        self._changing = [i for i, one in enumerate(inputs) if not isinstance(one, Constant)]
        self._screens = [[self._candidate(1 << i, j) for j in self._constants if i != j] for i in range(len(inputs))]
        # What a static input screens is not all that its twin would hold.
        self._twins = twins_among(inputs, [i for i in self._changing if not any(self._screens[i])])
        self._mirror = mirror_of(inputs, self._twins)
        for i, twin in self._twins.items():
            self._changing.remove(twin)
            self._relations[twin] = self._relations[i]
        self._is_loaded = False
        self._nothing = Delta.nothing(len(variables))
        self._nothing_of = [no_rows(len(one.variables)) for one in inputs]
        self._inserts_per_probe = inserts_per_probe
        self._until_review = _REVIEWED_EVERY
        self._sources = self._sources_of(variables)

    def _roles(self, i: int) -> tuple[int, ...]:
        """The inputs whose rows a relation holds."""
        return (i, self._twins[i]) if i in self._twins else (i,)

    def _sources_of(self, variables: tuple[str, ...]) -> tuple[tuple[int, Links, Links], ...]:
        """The inputs that give values to the results: their columns, and where the values go."""
        holders = []
        for variable in variables:
            i, one = next((i, one) for i, one in enumerate(self._inputs) if variable in one.variables)
            holders.append((i, one.column(variable)))
        return _by_leaf(holders)

    def advance(self) -> Delta:
        removed: list[Ints] = []
        added: list[Ints] = []
        if not self._is_loaded:
            self._is_loaded = True
            for i in self._constants:
                added.extend(self._load(i))
        deltas = [(i, self._inputs[i].advance()) for i in self._changing]
        fresh = [i for i, delta in deltas if delta.is_fresh]
        before = self._begin_anew(fresh) if fresh else None
        arriving: list[tuple[int, Ints, Known]] = []
        for i, delta in deltas:
            rows = delta.added
            # Where there is nothing and nothing comes, what goes was never kept.
            if not delta.is_fresh and delta.removed.shape[0] and (rows.shape[0] or self._relations[i].size):
                numbers, rows = self._lose(i, rows, delta.removed)
                if numbers.shape[0] and self._keep_young().size:
                    for role in self._roles(i):
                        trees = self._results.remove_made_by(role, numbers, self._capacities())
                        removed.append(self._values(trees))
            if rows.shape[0]:
                rows, known = self._screened(i, rows)
                if rows.shape[0]:
                    arriving.append((i, rows, known))
        # Any order will do. While an input is still empty, what comes to the others makes nothing: it comes last.
        if len(arriving) > 1:
            arriving.sort(key=lambda arrival: -self._relations[arrival[0]].size)
        for i, rows, known in arriving:
            added.extend(self._gain(i, rows, known))
        self._until_review -= 1
        if not self._until_review and self._inserts_per_probe is not None:
            self._until_review = _REVIEWED_EVERY
            for relation in self._relations:
                relation.review(self._inserts_per_probe)
        width = len(self.variables)
        if before is not None and before is not self._nothing.removed:
            return Delta(stacked(added, width), before, is_fresh=True)
        if not added and not removed:
            return self._nothing
        return Delta(stacked(added, width), stacked(removed, width))

    def _load(self, i: int) -> list[Ints]:
        """The rows of a static input; where it is a view and other inputs are still to come, the view itself."""
        constant = self._inputs[i]
        assert isinstance(constant, Constant)
        view = constant.taken() if self._changing else None
        if view is None:
            return self._gain(i, constant.advance().added, {})
        self._relations[i] = view
        return []

    def _begin_anew(self, fresh: list[int]) -> Ints | Callable[[], Ints]:
        """Some inputs lost all they had, and with it every result goes; gives the results there were."""
        relations = list(self._relations)
        if self.result_count + sum(relations[i].size for i in fresh) <= _FEW:
            gone = [values for _, values in self._young]
            if self._results.size:
                gone.append(self._values(self._results.trees()))
            self._young = []
            for i in fresh:
                relations[i].clear()
            self._results.clear()
            return stacked(gone, len(self.variables)) if gone else self._nothing.removed
        results = self._keep_young()
        for i in fresh:
            anew = Relation(len(self._inputs[i].variables))
            for role in self._roles(i):
                self._relations[role] = anew
        self._results = Results(len(self._inputs))
        if len(fresh) == len(self._changing):
            return lambda: self._values(results.trees(), relations)
        # The other inputs go on to change, and row numbers would not mean the same later.
        return self._values(results.trees(), relations)

    def _lose(self, i: int, added: Ints, gone: Ints) -> tuple[Ints, Ints]:
        """Take rows from an input; gives the numbers they had, and what is left to add of what comes."""
        relation = self._relations[i]
        numbers = relation.take_oldest(gone)
        if numbers is not None:
            return numbers, added
        gone, _ = self._screened(i, gone)
        return relation.exchange(added, gone)

    def _screened(self, i: int, rows: Ints) -> tuple[Ints, Known]:
        """The rows of an input that have a partner in every static input, and what those inputs said about them."""
        known: Known = {}
        for screen in self._screens[i]:
            if screen is None:
                continue
            found = self._ask(screen, rows)
            known[screen.number] = (screen.key, found)
            if found[2] == 0:
                return rows[:0], {}
            if rows.shape[0] == 1:
                continue
            partnered = np.flatnonzero(found[1])
            if partnered.shape[0] < rows.shape[0]:
                rows, known = rows[partnered], _picked(known, partnered)
        return rows, known

    def _ask(self, screen: _Candidate, rows: Ints) -> Found:
        """What a static input says about rows that no relation holds yet."""
        relation = self._relations[screen.number]
        if not relation.size:
            return _NOTHING_FOUND
        return relation.index(screen.key).probe(relation.rows, plain(rows), screen.columns)

    def _gain(self, i: int, rows: Ints, known: Known) -> list[Ints]:
        """Rows that came to an input, and the results that they make with what is there."""
        relation, twin = self._relations[i], self._twins.get(i)
        numbers = relation.add(rows)
        if not all(one.size for one in self._relations):
            return []
        results = self._made_by(i, numbers, known)
        if twin is not None and numbers.shape[0] < relation.size:
            others = self._made_by(twin, numbers, known) if self._mirror is None else results[:, self._mirror]
            is_new = np.zeros(relation.rows.shape[0], dtype=np.bool_)
            is_new[numbers] = True
            results = np.concatenate((results, others[~is_new[others[:, i]]]))
        return self._kept(results) if results.shape[0] else []

    def _made_by(self, i: int, numbers: Ints, known: Known) -> Ints:
        """The results that some rows of an input make with what is there."""
        tree = np.zeros((numbers.shape[0], len(self._inputs)), dtype=np.int64)
        tree[:, i] = numbers
        return stacked(self._walk(tree, 1 << i, known), len(self._inputs))

    def _kept(self, results: Ints) -> list[Ints]:
        """Keep the results that satisfy the condition; gives their values."""
        values = self._values(results)
        if self.condition is not None:
            kept = np.flatnonzero(self.condition(values))
            if not kept.shape[0]:
                return []
            if kept.shape[0] < values.shape[0]:
                results, values = results[kept], values[kept]
        self._young.append((results, values))
        if self.result_count > _FEW:
            self._keep_young()
        return [values]

    def _keep_young(self) -> Results:
        """Enter all results into the lists of their leaves."""
        for tree, _ in self._young:
            self._results.add(tree, self._capacities())
        self._young.clear()
        return self._results

    def _walk(self, tree: Ints, done: int, known: Known) -> list[Ints]:
        """All results that begin with these mappings, over all ways that they choose."""
        if done == self._all_done:
            return [tree]
        candidates = self._after(done)
        if not candidates:
            return self._cross(tree, done)
        if len(candidates) == 1 and not known and candidates[0].holder is not None:
            return self._go(tree, candidates[0], candidates[0].holder)
        found: Known = {}
        best, fewest = candidates[0], 0
        for one in candidates:
            said = known.get(one.number)
            if said is None or said[0] != one.key:
                if found and fewest <= _WORTH_ASKING * tree.shape[0]:
                    continue
                said = (one.key, self._probe(tree, one))
            total = said[1][2]
            if not found or total < fewest:
                best, fewest = one, total
            found[one.number] = said
            if not total:
                break
        if best is not candidates[0]:
            self._candidates[done] = (best, *(one for one in candidates if one is not best))
        if not fewest:
            return []
        if len(found) == 1 or tree.shape[0] == 1:
            return self._step(tree, best, found)
        return self._part(tree, [one for one in candidates if one.number in found], best, found)

    def _go(self, tree: Ints, to: _Candidate, holder: int) -> list[Ints]:
        """Join mappings with the only input that may come next."""
        relation = self._relations[to.number]
        if not relation.size:
            return []
        self.steps[to.done.bit_count() - 1, to.number] += tree.shape[0]
        leaves = self._relations[holder].rows
        longer = relation.index(to.key).partners(relation.rows, leaves, tree, holder, to.columns, to.number)
        return self._walk(longer, to.done, {}) if longer.shape[0] else []

    def _part(self, tree: Ints, candidates: Sequence[_Candidate], best: _Candidate, found: Known) -> list[Ints]:
        """Send each mapping where it has the fewest partners, or all to the best input if that is as good."""
        fewest = found[candidates[0].number][1][1]
        choice = np.zeros(fewest.shape[0], dtype=np.int8)
        for place, one in enumerate(candidates[1:], 1):
            counts = found[one.number][1][1]
            choice[counts < fewest] = place
            fewest = np.minimum(fewest, counts)
        if found[best.number][1][2] - int(fewest.sum()) < _WORTH_PARTING:
            return self._step(tree, best, found)
        choice[fewest == 0] = -1
        results: list[Ints] = []
        for place, one in enumerate(candidates):
            chosen = np.flatnonzero(choice == place)
            if chosen.shape[0] == tree.shape[0]:
                return self._step(tree, one, found)
            if chosen.shape[0]:
                results.extend(self._step(tree[chosen], one, _picked(found, chosen)))
        return results

    def _after(self, done: int) -> tuple[_Candidate, ...]:
        """The inputs that may come next, the one that was best last time first."""
        candidates = self._candidates.get(done)
        if candidates is None:
            candidates = self._candidates[done] = self._candidates_after(done)
        return candidates

    def _candidates_after(self, done: int) -> tuple[_Candidate, ...]:
        """The inputs that may come next: those that share a variable, or none."""
        order = range(len(self._inputs)) if self.order is None else self.order
        open_inputs = (j for j in order if not done >> j & 1)
        candidates = [found for j in open_inputs if (found := self._candidate(done, j)) is not None]
        return tuple(candidates if self.order is None else candidates[:1])

    def _candidate(self, done: int, number: int) -> _Candidate | None:
        """An input as the next one after some, if it shares a variable with them."""
        shared = [
            (column, holder)
            for column, variable in enumerate(self._inputs[number].variables)
            if (holder := self._holder(variable, done)) is not None
        ]
        if not shared:
            return None
        key = tuple(column for column, _ in shared)
        holders = tuple(holder for _, holder in shared)
        is_one = len({leaf for leaf, _ in holders}) == 1
        columns = np.array([column for _, column in holders] if is_one else range(len(key)), dtype=np.int32)
        only = holders[0][0] if is_one else None
        return _Candidate(number, key, only, columns, _by_leaf(holders), done | 1 << number)

    def _holder(self, variable: str, done: int) -> tuple[int, int] | None:
        """The input and column among those joined so far that have a variable."""
        for i, one in enumerate(self._inputs):
            if done >> i & 1 and variable in one.variables:
                return i, one.column(variable)
        return None

    def _probe(self, tree: Ints, to: _Candidate) -> Found:
        relation = self._relations[to.number]
        if not relation.size:
            return _NOTHING_FOUND
        index = relation.index(to.key)
        if to.holder is not None:
            leaves = self._relations[to.holder].rows
            return index.probe_leaf(relation.rows, leaves, tree, to.holder, to.columns)
        keys = np.empty((tree.shape[0], len(to.key)), dtype=np.int64)
        for i, columns, places in to.gathered:
            _fetch(self._relations[i].rows, tree, i, columns, places, keys)
        return index.probe(relation.rows, keys, to.columns)

    def _step(self, tree: Ints, to: _Candidate, found: Known) -> list[Ints]:
        """Join mappings with their partners in one input, and go on from there."""
        heads, counts, total = found.pop(to.number)[1]
        self.steps[to.done.bit_count() - 1, to.number] += tree.shape[0]
        if total == 1 and tree.shape[0] == 1:
            longer = tree.copy()
            longer[0, to.number] = heads[0]
            return self._walk(longer, to.done, found)
        index = self._relations[to.number].index(to.key)
        last = self._last_after(to.done) if total >= _WORTH_A_LOOK else None
        if last is not None and (last.number not in found or found[last.number][0] != last.key):
            return self._finish(tree, to, last, (heads, counts, total))
        which, longer = index.expand_tree(tree, to.number, heads, counts, total)
        return self._walk(longer, to.done, _picked(found, which) if found else found)

    def _last_after(self, done: int) -> _Candidate | None:
        """The last input, if only one is left and several leaves have what it is probed on."""
        if (self._all_done & ~done).bit_count() != 1:
            return None
        candidates = self._after(done)
        return candidates[0] if candidates and candidates[0].holder is None else None

    def _finish(self, tree: Ints, to: _Candidate, last: _Candidate, found: Found) -> list[Ints]:
        """Join mappings with one input and with the last, where most have no partner: those are never made."""
        relation, other = self._relations[to.number], self._relations[last.number]
        known = np.empty((tree.shape[0], len(last.key)), dtype=np.int64)
        columns = np.full(len(last.key), -1, dtype=np.int32)
        for i, of_leaf, places in last.gathered:
            if i == to.number:
                columns[places] = of_leaf
            else:
                _fetch(self._relations[i].rows, tree, i, of_leaf, places, known)
        heads, counts, total = found
        which, rows = relation.index(to.key).expand_matching(
            relation.rows, heads, counts, total, other.index(last.key), other.rows, (known, columns)
        )
        self.steps[last.done.bit_count() - 1, last.number] += total - which.shape[0]
        longer = tree[which]
        longer[:, to.number] = rows
        return self._walk(longer, to.done, {}) if which.shape[0] else []

    def _cross(self, tree: Ints, done: int) -> list[Ints]:
        """Nothing is shared with what is left: pair with every row, of the smallest input first."""
        open_inputs = [j for j in self.order or range(len(self._inputs)) if not done >> j & 1]
        if self.order is None:
            open_inputs.sort(key=lambda j: self._relations[j].size)
        j = open_inputs[0]
        rows = self._relations[j].live()
        self.steps[done.bit_count(), j] += tree.shape[0]
        longer = np.repeat(tree, rows.shape[0], axis=0)
        longer[:, j] = np.tile(rows, tree.shape[0])
        return self._walk(longer, done | 1 << j, {})

    def _values(self, tree: Ints | Links, relations: Sequence[Relation] | None = None) -> Ints:
        """The results' values, fetched from the leaves."""
        leaves_of = self._relations if relations is None else relations
        values = np.empty((tree.shape[0], len(self.variables)), dtype=np.int64)
        for i, columns, places in self._sources:
            _fetch(leaves_of[i].rows, tree, i, columns, places, values)
        return values

    def _capacities(self) -> list[int]:
        return [relation.rows.shape[0] for relation in self._relations]

    def index_uses(self) -> dict[int, list[IndexUse]]:
        """What the indexes of each input did since they were last looked at."""
        return {i: relation.index_uses() for i, relation in enumerate(self._relations)}

    @property
    def sizes(self) -> list[int]:
        """How many rows of each input there are."""
        return [relation.size for relation in self._relations]

    @property
    def result_count(self) -> int:
        young: int = sum(tree.shape[0] for tree, _ in self._young)
        return self._results.size + young

    def needs(self, source: Operator) -> bool:
        return any(one.needs(source) for one in self._inputs)

    @property
    def inputs(self) -> tuple[Operator, ...]:
        return self._inputs

    def ids(self) -> Iterable[Ints]:
        """Static rows are left out: what was known from the start is never forgotten."""
        return (self._relations[i].ids() for i in self._changing)

    @property
    def nbytes(self) -> int:
        young = sum(tree.nbytes + values.nbytes for tree, values in self._young)
        relations = {id(relation): relation.nbytes for relation in self._relations}
        return self._results.nbytes + young + sum(relations.values())


_NOTHING_FOUND: Found = (np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), 0)


def _by_leaf(holders: Sequence[tuple[int, int]]) -> tuple[tuple[int, Links, Links], ...]:
    """Values that stand in columns of leaves, by leaf: the columns, and which of the values they are."""
    found: dict[int, list[tuple[int, int]]] = {}
    for place, (leaf, column) in enumerate(holders):
        found.setdefault(leaf, []).append((column, place))
    return tuple(
        (leaf, np.array([c for c, _ in pairs], dtype=np.int32), np.array([p for _, p in pairs], dtype=np.int32))
        for leaf, pairs in found.items()
    )


def _picked(found: Known, places: Ints) -> Known:
    """What was said about some of the mappings, each as often as it goes on."""
    picked: Known = {}
    for number, (key, (heads, counts, _)) in found.items():
        some = counts[places]
        picked[number] = (key, (heads[places], some, int(some.sum())))
    return picked
