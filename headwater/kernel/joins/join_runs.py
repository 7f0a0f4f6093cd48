"""The multiway join over a run of ticks: one compiled loop over arrivals and expiries, in their order.

A row that is added is written into its relation and its indexes, then joined with the other inputs, one after another.
A row that is removed is joined first and taken out then. Results have the tick and the sign of the row that made them.
Static inputs reduce the others before: a row without a partner in one of them is not kept.

The order in which inputs are probed is chosen for a stretch of changes, from what the stretches before found (OA6).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from headwater.kernel.columns.array_addresses import ints_at, links_at
from headwater.kernel.columns.delta_run import DeltaRun, Signs, merge_runs
from headwater.kernel.columns.larger_arrays import enlarge_ints, enlarge_rows
from headwater.kernel.columns.ordered_index import FIRST_STACK, NO_ROOM_STACK, collect_rows
from headwater.kernel.columns.relation import Key, Relation
from headwater.kernel.columns.ring_index import (
    GOLD,
    PREFETCH_DISTANCE,
    Ints,
    Links,
    first_slot,
    mix_bits,
    ring_head,
    ring_size,
)
from headwater.kernel.joins.range_conditions import Place, RangeBounds
from headwater.kernel.joins.relation_tables import (
    BEHIND,
    DOMAINS,
    FIRST,
    IS_ORDERED,
    KEY,
    KEY_WIDTH,
    LINK_WIDTH,
    LINKS,
    RELATION,
    SLOTS,
    TABLE,
    RelationTables,
    add_row,
    free_row_id,
    probe_index,
    remove_from_indexes,
    rows_of,
    take_indexed_row,
    take_oldest_row,
)
from headwater.terms.compiled_code import compiled
from headwater.terms.ids.prefetching import prefetch
from headwater.values.query_guard import check_rows, current_guard

_LEAF, _TWIN, _MIRROR, _STEP, _LAST_STEP = range(5)
"""The fields of a way through the join: where it begins, the leaf that must be another row, the one that makes a second
result of each if it is another row, its first and last step."""
_TO, _INDEX, _KEY_SOURCE, _LOWER, _UPPER = range(5)
"""The fields of a step: the input that is probed, by which index, where the values of the key come from, and how many
lower and upper bounds follow them."""
_MANY_RESULTS = 1 << 20
"""After so many results a call ends, so that they can be counted, and a condition tested, before there are more."""
_LARGE_INDEX = 1 << 14
"""From so many slots on an index does not fit into the cache that is next to a processor."""
_MUCH_WORK = 1 << 26
"""After so many partners a call ends, too, so that the time can be looked at."""
IS_PAUSED, _MOST_RESULTS, _MOST_WORK, _ROW, _WAY, _DEPTH = range(6)
"""The first row of a pause: whether a call ended in the middle of a change, after how many results and partners one
does, and where it ended: the row of the change, the way and the step."""
_LEAF_ROWS, _REMAINING, _CURRENT, _FOUND_END = range(1, 5)
"""The other rows of a pause: what has a value for each leaf, or for each step of a way."""
_HOW, _IS_PROBED, _COUNT, _WORK = 0, 1, 2, 6
_PLACE_FIELDS = 7
"""The fields of a place beside `_ROW`, `_WAY` and `_DEPTH`: how the loop ended, whether the step was probed, and how
many results and partners there were."""
_IS_BETWEEN, _IS_MUCH, _NEEDS_RESULTS, _NEEDS_FOUND, _NEEDS_STACK = range(5)
"""How the loop ended: between two changes, or in the middle of one because there was much, or no room."""


@compiled
def _collect_partners(  # type: ignore[no-untyped-def]
    step, relations, indexes, keys, steps, key_sources, leaf_relations, leaf_rows, probe, found, begin, stack
):  # fmt: skip
    """Append the partners that the ordered index of a step finds to `found`, from `begin` on.

    Gives where they end, or which room is too small.
    """
    index = steps[step, _INDEX]
    lower, upper = steps[step, _LOWER], steps[step, _UPPER]
    key_width = indexes[index, KEY_WIDTH]
    _fill_probe(
        probe,
        key_width - 1 + lower + upper,
        steps[step, _KEY_SOURCE],
        key_sources,
        relations,
        leaf_relations,
        leaf_rows,
    )
    of_index = rows_of(relations, indexes[index, RELATION])
    return collect_rows(
        links_at(indexes[index, LINKS], of_index.shape[0] + 1, 2),
        of_index,
        keys[indexes[index, KEY] : indexes[index, KEY] + key_width],
        indexes[index, DOMAINS], probe[0], lower, upper, found, begin, stack,
    )  # fmt: skip


@compiled(inline="always")
def _fill_probe(probe, width, at, key_sources, relations, leaf_relations, leaf_rows):  # type: ignore[no-untyped-def]
    """Write the values that an index is asked for."""
    for c in range(width):
        leaf = key_sources[at + c, 0]
        probe[0, c] = rows_of(relations, leaf_relations[leaf])[leaf_rows[leaf], key_sources[at + c, 1]]


@compiled(inline="always")
def _hash_of_change(values, offset, columns, width):  # type: ignore[no-untyped-def]
    """The hash of some columns of a row that begins at an offset, as `hash_row` gives it."""
    h = GOLD
    for c in range(width):
        h = mix_bits(np.int64(h) ^ values[offset + columns[c]])
    return h


@compiled(inline="always")
def _prefetch_ring(relations, indexes, index, h, reads_rows):  # type: ignore[no-untyped-def]
    """Prefetch the slot of a hash in a large index, or what the ring in that slot begins with."""
    slots = indexes[index, SLOTS]
    if indexes[index, IS_ORDERED] or slots < _LARGE_INDEX:
        return
    table, slot = ints_at(indexes[index, TABLE], slots), first_slot(h, slots)
    if not reads_rows:
        prefetch(table, slot)
    elif table[slot] != 0:
        row = ring_head(table[slot])
        rows = rows_of(relations, indexes[index, RELATION])
        prefetch(rows, row)
        prefetch(links_at(indexes[index, LINKS], rows.shape[0], indexes[index, LINK_WIDTH]), row)


@compiled(inline="always")
def _prefetch_change(  # type: ignore[no-untyped-def]
    n, reads_rows, sources, offsets, values, relations, indexes, keys, of_source, ways, steps, key_columns
):  # fmt: skip
    """Prefetch what a later change is written to, and the first partners that it is joined with."""
    source, offset = sources[n], offsets[n]
    relation = of_source[source, 0]
    for index in range(relations[relation, FIRST], relations[relation, BEHIND]):
        begin, width = indexes[index, KEY], indexes[index, KEY_WIDTH]
        h = _hash_of_change(values, offset, keys[begin : begin + width], width)
        _prefetch_ring(relations, indexes, index, h, reads_rows)
    for w in range(of_source[source, 1], of_source[source, 2]):
        step = ways[w, _STEP]
        index = steps[step, _INDEX]
        begin, width = steps[step, _KEY_SOURCE], indexes[index, KEY_WIDTH]
        h = _hash_of_change(values, offset, key_columns[begin : begin + width], width)
        _prefetch_ring(relations, indexes, index, h, reads_rows)


@compiled
def _join_some(  # type: ignore[no-untyped-def]
    n, stop_behind, sources, signs, offsets, values, relations, indexes, keys, of_source, screens, screen_bounds,
    screen_columns, ways, steps, key_sources, leaf_relations, outputs, measures, most_results, most_work,
    whole, probe, leaf_rows, remaining, current, found, found_end, stack, results, makers, place
):  # fmt: skip
    """Apply changes from `n` on, up to one behind `stop_behind`, as long as there is room (`join_changes`).

    `place` says where it is in the middle of a change: how, at which row, way and step, whether that was probed, and
    how many results and partners there were. Gives the change that it stopped at.
    """
    width = results.shape[1]
    count, work = place[_COUNT], place[_WORK]
    goes_on = place[_HOW] != _IS_BETWEEN
    key_columns = key_sources[:, 1]
    while n < sources.shape[0]:
        if not goes_on and (count >= most_results or work >= most_work or n > stop_behind):
            break
        source = sources[n]
        relation = of_source[source, 0]
        rows = rows_of(relations, relation)
        if n + 2 * PREFETCH_DISTANCE < sources.shape[0] and rows.shape[0] >= _LARGE_INDEX:
            _prefetch_change(
                n + 2 * PREFETCH_DISTANCE, False, sources, offsets, values, relations, indexes, keys, of_source, ways,
                steps, key_columns,
            )  # fmt: skip
            _prefetch_change(
                n + PREFETCH_DISTANCE, True, sources, offsets, values, relations, indexes, keys, of_source, ways,
                steps, key_columns,
            )  # fmt: skip
        offset = offsets[n]
        is_added = signs[n] > 0
        way = of_source[source, 1]
        if goes_on:
            row, way = place[_ROW], place[_WAY]
        elif is_added:
            row = np.int64(-1)
        else:
            row = take_oldest_row(relations, relation, rows, values, offset)
        if row < 0:
            is_kept = True
            for s in range(screen_bounds[source], screen_bounds[source + 1]):
                index = screens[s, 0]
                for c in range(indexes[index, KEY_WIDTH]):
                    probe[0, c] = values[offset + screen_columns[screens[s, 1] + c]]
                if ring_size(probe_index(relations, indexes, keys, index, probe, whole)) == 0:
                    is_kept = False
                    break
            if not is_kept:
                n += 1
                continue
            if is_added:
                row = add_row(relations, indexes, keys, relation, rows, values, offset)
            else:
                row = take_indexed_row(relations, indexes, keys, relation, rows, values, offset, probe, whole)
                if row < 0:
                    break
        for w in range(way, of_source[source, 2]):
            leaf_rows[ways[w, _LEAF]] = row
            twin, mirror = ways[w, _TWIN], ways[w, _MIRROR]
            first, last = ways[w, _STEP], ways[w, _LAST_STEP]
            depth = np.int64(0)
            is_probed = False
            if goes_on:
                depth, is_probed, goes_on = place[_DEPTH], place[_IS_PROBED] != 0, False
            while depth >= 0:
                step = first + depth
                how = _IS_BETWEEN
                if not is_probed:
                    index = steps[step, _INDEX]
                    if indexes[index, IS_ORDERED]:
                        begin = found_end[depth]
                        end = _collect_partners(
                            step, relations, indexes, keys, steps, key_sources, leaf_relations, leaf_rows,
                            probe, found, begin, stack,
                        )  # fmt: skip
                        if end < 0:
                            how = _NEEDS_STACK if end == NO_ROOM_STACK else _NEEDS_FOUND
                        else:
                            found_end[depth + 1] = end
                            current[depth] = begin
                            remaining[depth] = end - begin
                    else:
                        at = steps[step, _KEY_SOURCE]
                        key_width = indexes[index, KEY_WIDTH]
                        _fill_probe(probe, key_width, at, key_sources, relations, leaf_relations, leaf_rows)
                        entry = probe_index(relations, indexes, keys, index, probe, whole)
                        found_end[depth + 1] = found_end[depth]
                        remaining[depth] = ring_size(entry)
                        current[depth] = ring_head(entry)
                    if how == _IS_BETWEEN:
                        measures[step, 0] += 1
                        measures[step, 1] += remaining[depth]
                        is_probed = True
                if is_probed:
                    if remaining[depth] == 0:
                        depth -= 1
                        continue
                    if count >= most_results or work >= most_work:
                        how = _IS_MUCH
                    elif count + 2 > makers.shape[0]:
                        how = _NEEDS_RESULTS
                if how != _IS_BETWEEN:
                    place[_HOW], place[_ROW], place[_WAY], place[_DEPTH] = how, row, w, depth
                    place[_IS_PROBED], place[_COUNT], place[_WORK] = is_probed, count, work
                    return n
                work += 1
                index = steps[step, _INDEX]
                partner = current[depth]
                remaining[depth] -= 1
                if indexes[index, IS_ORDERED]:
                    partner = found[current[depth]]
                    current[depth] += 1
                elif remaining[depth]:
                    links = links_at(indexes[index, LINKS], partner + 1, indexes[index, LINK_WIDTH])
                    current[depth] = np.int64(links[partner, 0])
                to = steps[step, _TO]
                if to == twin and partner == row:
                    continue
                leaf_rows[to] = partner
                if step < last:
                    depth += 1
                    is_probed = False
                    continue
                made = 2 if mirror >= 0 and leaf_rows[mirror] != row else 1
                for result in range(made):
                    for c in range(width):
                        leaf, column = outputs[result * width + c, 0], outputs[result * width + c, 1]
                        results[count, c] = rows_of(relations, leaf_relations[leaf])[leaf_rows[leaf], column]
                    makers[count] = n
                    count += 1
        if not is_added:
            remove_from_indexes(relations, indexes, keys, relation, rows, row)
            free_row_id(relations, relation, row)
        n += 1
    place[_HOW], place[_COUNT], place[_WORK] = _IS_BETWEEN, count, work
    return n


@compiled(makes_arrays=True)
def join_changes(  # type: ignore[no-untyped-def]
    start, sources, signs, offsets, values, relations, indexes, keys, of_source, screens, screen_bounds, screen_columns,
    ways, steps, key_sources, leaf_relations, outputs, measures, pause
):  # fmt: skip
    """Apply changes from `start` on. Gives the results, the change that made each, and the change that it stopped at.

    It stops before a removal of a row that is not the oldest, if the relation has no index of whole rows yet; and when
    there are many results, or was much work. If that is in the middle of a change, `pause` has what the next call goes
    on with, over the same tables.
    """
    whole = np.arange(keys.shape[0] + 1).astype(np.int32)
    probe = np.empty((1, keys.shape[0] + key_sources.shape[0] + 1), np.int64)
    leaf_rows = np.zeros(leaf_relations.shape[0], np.int64)
    remaining = np.zeros(leaf_relations.shape[0], np.int64)
    current = np.zeros(leaf_relations.shape[0], np.int64)
    # The partners that ordered indexes found, one step after the other, and where those of each step end.
    found = np.empty(1024, np.int64)
    found_end = np.zeros(leaf_relations.shape[0] + 1, np.int64)
    stack = np.empty(FIRST_STACK, np.int64)
    # Behind the outputs of a result are those of the result with its leaves exchanged.
    results = np.empty((1024, outputs.shape[0] // 2), np.int64)
    makers = np.empty(1024, np.int64)
    place = np.zeros(_PLACE_FIELDS, np.int64)
    n, stop_behind = start, sources.shape[0]
    if pause[0, IS_PAUSED]:
        stop_behind = start
        place[_HOW], place[_IS_PROBED] = _IS_MUCH, 1
        place[_ROW], place[_WAY], place[_DEPTH] = pause[0, _ROW], pause[0, _WAY], pause[0, _DEPTH]
        leaf_rows[:] = pause[_LEAF_ROWS, : leaf_rows.shape[0]]
        remaining[:] = pause[_REMAINING, : remaining.shape[0]]
        current[:] = pause[_CURRENT, : current.shape[0]]
        found_end[:] = pause[_FOUND_END, : found_end.shape[0]]
        d = 0
        while d <= place[_DEPTH]:
            step = ways[place[_WAY], _STEP] + d
            if indexes[steps[step, _INDEX], IS_ORDERED]:
                end = _collect_partners(
                    step, relations, indexes, keys, steps, key_sources, leaf_relations, leaf_rows,
                    probe, found, found_end[d], stack,
                )  # fmt: skip
                if end == NO_ROOM_STACK:
                    stack = enlarge_ints(stack)
                    continue
                if end < 0:
                    found = enlarge_ints(found)
                    continue
            d += 1
    while True:
        n = _join_some(
            n, stop_behind, sources, signs, offsets, values, relations, indexes, keys, of_source, screens,
            screen_bounds, screen_columns, ways, steps, key_sources, leaf_relations, outputs, measures,
            pause[0, _MOST_RESULTS], pause[0, _MOST_WORK], whole, probe, leaf_rows, remaining, current, found,
            found_end, stack, results, makers, place,
        )  # fmt: skip
        if place[_HOW] == _NEEDS_RESULTS:
            results, makers = enlarge_rows(results, place[_COUNT]), enlarge_ints(makers)
        elif place[_HOW] == _NEEDS_FOUND:
            found = enlarge_ints(found)
        elif place[_HOW] == _NEEDS_STACK:
            stack = enlarge_ints(stack)
        else:
            break
    pause[0, IS_PAUSED] = place[_HOW] == _IS_MUCH
    if place[_HOW] == _IS_MUCH:
        pause[0, _ROW], pause[0, _WAY], pause[0, _DEPTH] = place[_ROW], place[_WAY], place[_DEPTH]
        pause[_LEAF_ROWS, : leaf_rows.shape[0]] = leaf_rows
        pause[_REMAINING, : remaining.shape[0]] = remaining
        pause[_CURRENT, : current.shape[0]] = current
        pause[_FOUND_END, : found_end.shape[0]] = found_end
    return results[: place[_COUNT]], makers[: place[_COUNT]], n


@dataclass(frozen=True, slots=True)
class JoinStep:
    """A probe: of which input, on which of its columns, and the leaf and column of each value of the key.

    With `bounds` it is a probe of an ordered index.
    """

    input_index: int
    key: Key
    key_sources: tuple[Place, ...]
    bounds: RangeBounds | None = None

    @property
    def index_key(self) -> Key:
        """The columns of the index."""
        return self.key if self.bounds is None else (*self.key, self.bounds.column)

    @property
    def probe_sources(self) -> tuple[Place, ...]:
        """The leaf and column of each value that the probe needs: the key, then the bounds."""
        return self.key_sources if self.bounds is None else self.key_sources + self.bounds.lower + self.bounds.upper

    @property
    def bound_counts(self) -> tuple[int, int]:
        """The number of lower and of upper bounds."""
        return (0, 0) if self.bounds is None else (len(self.bounds.lower), len(self.bounds.upper))


@dataclass(frozen=True, slots=True)
class JoinWay:
    """How a row of one input is joined with all the others.

    `twin` is an input that must have another row, or -1. In a symmetric join (`operators.self_joins`), `mirror` is the
    input with the same rows: where it has another row, the result with its leaves exchanged is a result, too.
    """

    leaf: int
    steps: tuple[JoinStep, ...]
    twin: int = -1
    mirror: int = -1


@dataclass(frozen=True, slots=True)
class JoinSource:
    """An input that changes: the ways of its rows, and the probes of static inputs that must find a partner."""

    input_index: int
    ways: tuple[JoinWay, ...]
    screens: tuple[JoinStep, ...]


@dataclass(frozen=True, slots=True)
class MergedChanges:
    """The changes of several inputs in the order of their ticks. `offsets` says where in `values` each row begins."""

    sources: Ints
    ticks: Ints
    signs: Signs
    offsets: Ints
    values: Ints

    @classmethod
    def of_runs(cls, runs: Sequence[DeltaRun]) -> MergedChanges:
        """The changes of runs, of which at least one is not empty."""
        sources, order = merge_runs(runs)
        ends = np.cumsum([run.rows.size for run in runs]).tolist()
        offsets = [
            end - run.rows.size + run.rows.shape[1] * np.arange(len(run)) for run, end in zip(runs, ends, strict=True)
        ]
        return cls(
            sources,
            np.concatenate([run.ticks for run in runs])[order],
            np.concatenate([run.signs for run in runs])[order],
            np.concatenate(offsets)[order],
            np.concatenate([run.rows.ravel() for run in runs]),
        )


def _steps_of(sources: Iterable[JoinSource]) -> Iterator[JoinStep]:
    """All probes of some inputs."""
    for source in sources:
        for way in source.ways:
            yield from way.steps
        yield from source.screens


class RunJoiner:
    """Joins changes of the inputs of a join.

    `outputs` has the leaf and column of each value of a result, and `mirrored` those of the values of the result with
    its leaves exchanged, where the join is symmetric.
    """

    def __init__(
        self,
        relations: Sequence[Relation],
        sources: Sequence[JoinSource],
        outputs: Sequence[Place],
        mirrored: Sequence[Place],
    ) -> None:
        self._relations = list({id(relation): relation for relation in relations}.values())
        numbers = {id(relation): number for number, relation in enumerate(self._relations)}
        self._leaf_relations: Ints = np.array([numbers[id(relation)] for relation in relations])
        self._sources = sources
        self.width = len(outputs)
        """The number of columns of results."""
        self._outputs = np.array([*outputs, *mirrored], np.int32).reshape(2 * len(outputs), 2)
        self.steps = [
            (depth, step) for source in sources for way in source.ways for depth, step in enumerate(way.steps, 1)
        ]
        self.measures: Ints = np.zeros((len(self.steps), 2), np.int64)
        """For each step, the number of probes and of partners that they found."""
        self._pause: Ints = np.zeros((5, max(6, len(self._leaf_relations) + 1)), np.int64)
        self._pause[0, _MOST_RESULTS : _MOST_WORK + 1] = _MANY_RESULTS, _MUCH_WORK

    def join(self, changes: MergedChanges, low: int, high: int) -> tuple[Ints, Ints, int]:
        """Apply changes from one place to another, or fewer if there are many results.

        Gives the results, for each the place of the change that made it, and how far it came.
        """
        given = changes.sources[:high], changes.signs[:high], changes.offsets[:high], changes.values
        sources, signs, *_ = given
        after = low
        while after == low:
            self._reserve(sources[low:], signs[low:])
            tables = RelationTables(self._relations)
            table_arrays = self._tables_of(tables)
            results, makers, after = join_changes(low, *given, *table_arrays)
            if self.is_paused:
                results, makers, after = self._go_on(given, table_arrays, results, makers, after)
            tables.store()
            if after == low:
                self.index_rows(int(sources[low]))
        return results, makers, after

    def _go_on(
        self, given: tuple[Any, ...], table_arrays: Sequence[npt.NDArray[Any]], results: Ints, makers: Ints, after: int
    ) -> tuple[Ints, Ints, int]:
        """Join a change with so many partners that one call was not enough, as far as the limits of the query allow."""
        all_results, all_makers = [results], [makers]
        while self.is_paused:
            self.check_pause(sum(map(len, all_results)))
            results, makers, after = join_changes(after, *given, *table_arrays)
            all_results.append(results)
            all_makers.append(makers)
        return np.concatenate(all_results), np.concatenate(all_makers), after

    @property
    def is_paused(self) -> bool:
        """Whether the last call of `join_changes` ended in the middle of a change."""
        return bool(self._pause[0, IS_PAUSED])

    def check_pause(self, count: int) -> None:
        """Hold the query to its limits in the middle of a change, when there are so many results."""
        current_guard().check_time()
        check_rows(count, self.width)

    def open_tables(self, room: int) -> tuple[RelationTables, Sequence[npt.NDArray[Any]]]:
        """Make room for so many changes of each input. Gives tables for them, and all that `join_changes` takes."""
        for step in _steps_of(self._sources):
            self._relations[int(self._leaf_relations[step.input_index])].index(step.key)
        for source in self._sources:
            self._relation_of(source).reserve(room, room)
        tables = RelationTables(self._relations)
        return tables, self._tables_of(tables)

    def needs_scan(self) -> bool:
        """Whether a step would need an index that was dropped."""
        return any(
            self._relations[int(self._leaf_relations[step.input_index])].is_scanned(step.key)
            for step in _steps_of(self._sources)
        )

    def relation_number(self, source: int) -> int:
        """The place of the relation of an input that changes among the relations."""
        return int(self._leaf_relations[self._sources[source].input_index])

    def index_rows(self, source: int) -> None:
        """Have an index of the whole rows of an input, because they leave in another order than they came."""
        self._relation_of(self._sources[source]).index_rows()

    def record_inserts(self, inserts: Sequence[int]) -> None:
        """Count the rows that were added to each input that changes, with tables of `open_tables`."""
        for source, count in zip(self._sources, inserts, strict=True):
            self._relation_of(source).record_inserts(count)

    def _tables_of(self, tables: RelationTables) -> tuple[npt.NDArray[Any], ...]:
        """The tables that `join_changes` takes."""
        ways = self._way_tables(tables)
        own = self._leaf_relations, self._outputs, self.measures, self._pause
        return tables.relations, tables.indexes, tables.keys, *ways, *own

    def _relation_of(self, source: JoinSource) -> Relation:
        return self._relations[int(self._leaf_relations[source.input_index])]

    def _reserve(self, sources: Ints, signs: Signs) -> None:
        """Make room for all changes, and the indexes that their steps need: inputs that do not change probe nothing."""
        changed = [self._sources[number] for number in np.unique(sources).tolist()]
        for step in _steps_of(changed):
            relation = self._relations[int(self._leaf_relations[step.input_index])]
            if step.bounds is None:
                relation.index(step.key)
            else:
                relation.ordered_index(step.index_key)
        for number, source in enumerate(self._sources):
            own = signs[sources == number]
            added = int((own > 0).sum())
            relation = self._relation_of(source)
            relation.reserve(added, own.shape[0] - added)
            relation.record_inserts(added)

    def _way_tables(self, tables: RelationTables) -> tuple[Ints, Ints, Ints, Links, Ints, Ints, Links]:
        """Sources, screens, ways and steps as tables of integers."""
        of_source: list[tuple[int, int, int]] = []
        screens: list[tuple[int, int]] = []
        screen_bounds = [0]
        screen_columns: list[int] = []
        ways: list[tuple[int, ...]] = []
        steps: list[tuple[int, ...]] = []
        key_sources: list[tuple[int, int]] = []
        for source in self._sources:
            relation = int(self._leaf_relations[source.input_index])
            of_source.append((relation, len(ways), len(ways) + len(source.ways)))
            for screen in source.screens:
                screens.append((self._index_number(tables, screen), len(screen_columns)))
                screen_columns.extend(column for _, column in screen.key_sources)
            screen_bounds.append(len(screens))
            for way in source.ways:
                ways.append((way.leaf, way.twin, way.mirror, len(steps), len(steps) + len(way.steps) - 1))
                for step in way.steps:
                    steps.append(
                        (step.input_index, self._index_number(tables, step), len(key_sources), *step.bound_counts)
                    )
                    key_sources.extend(step.probe_sources)
        return (
            np.array(of_source, np.int64),
            np.array(screens, np.int64).reshape(len(screens), 2),
            np.array(screen_bounds, np.int64),
            np.array(screen_columns, np.int32),
            np.array(ways, np.int64),
            np.array(steps, np.int64),
            np.array(key_sources, np.int32).reshape(len(key_sources), 2),
        )

    def _index_number(self, tables: RelationTables, step: JoinStep) -> int:
        # A step of an input that does not change may have no index.
        relation = int(self._leaf_relations[step.input_index])
        return tables.index_number(relation, step.index_key, is_ordered=step.bounds is not None)
