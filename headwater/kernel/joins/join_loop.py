"""The compiled loop of the multiway join, over arrivals and expiries in their order (`join_runs`).

A row that is added is written into its relation and its indexes, then joined with the other inputs, one after another.
A row that is removed is joined first and taken out then. Results have the number of the change that made them.

`join_changes` makes the room; `_join_some` fills it, and stops where there is no more.
"""

from __future__ import annotations

import numpy as np

from headwater.kernel.columns.array_addresses import ints_at, links_at
from headwater.kernel.columns.larger_arrays import enlarge_ints, enlarge_rows
from headwater.kernel.columns.ordered_index import FIRST_STACK, NO_ROOM_STACK, collect_rows
from headwater.kernel.columns.ring_index import (
    GOLD,
    PREFETCH_DISTANCE,
    first_slot,
    mix_bits,
    ring_head,
    ring_size,
)
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

_LEAF, _TWIN, _MIRROR, _STEP, _LAST_STEP = range(5)
"""The fields of a way through the join: where it begins, the leaf that must be another row, the one that makes a second
result of each if it is another row, its first and last step."""
_TO, _INDEX, _KEY_SOURCE, _LOWER, _UPPER = range(5)
"""The fields of a step: the input that is probed, by which index, where the values of the key come from, and how many
lower and upper bounds follow them."""
_LARGE_INDEX = 1 << 14
"""From so many slots on an index does not fit into the cache that is next to a processor."""
IS_PAUSED, MOST_RESULTS, MOST_WORK, _ROW, _WAY, _DEPTH = range(6)
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
            pause[0, MOST_RESULTS], pause[0, MOST_WORK], whole, probe, leaf_rows, remaining, current, found,
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
