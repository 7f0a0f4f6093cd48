"""The multiway join over the few changes of one tick: one compiled call, over tables that are kept between ticks.

    the window      − (a p b)   + (c p d)        one call matches the patterns, takes the rows that leave out of the
    the results     − (a b x)   + (c d y)        relations, writes those that enter, and probes the other inputs

Where a tick changes one or two rows, the tables that compiled code needs (`joins.relation_tables`) take longer to make
than all else. A `TickJoiner` makes them once, with room for some changes. While it is in use, it alone changes the
relations, and `store` writes back what it changed beside the rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from headwater.kernel.columns.array_addresses import address_of, ints_at, links_at, places_at, rows_at
from headwater.kernel.columns.delta import Delta, no_rows, stack_rows
from headwater.kernel.columns.relation import subtract_rows
from headwater.kernel.columns.ring_index import Ints
from headwater.kernel.joins.join_loop import IS_PAUSED, join_changes
from headwater.kernel.joins.join_runs import RunJoiner
from headwater.kernel.operators.operator import Operator
from headwater.kernel.operators.triple_patterns import PatternOperator, find_window_pattern
from headwater.terms.compiled_code import compiled
from headwater.values.query_guard import check_rows

_GIVEN, _WIDTH, _CONSTANTS, _EQUAL, _COLUMNS = 0, 1, 2, 9, 14
"""The fields of an input: the width of the rows that it is given, and of those that it makes of them; the number of
constants in its pattern, each a place and an id; the number of pairs of equal places; the place of each column."""
_FIELDS = _COLUMNS + 3


@compiled
def _match_changes(inputs, counts, given, sources, signs, offsets, values):  # type: ignore[no-untyped-def]
    """Write the rows that the inputs make of the changes that they are given; gives how many there are.

    The rows that leave come first, those of one input after those of another.
    """
    n, at, out = 0, 0, 0
    for is_added in range(2):
        for source in range(inputs.shape[0]):
            fields = inputs[source]
            for _ in range(counts[source, is_added]):
                matches = True
                for k in range(fields[_CONSTANTS]):
                    place = _CONSTANTS + 1 + 2 * k
                    matches &= given[at + fields[place]] == fields[place + 1]
                for k in range(fields[_EQUAL]):
                    place = _EQUAL + 1 + 2 * k
                    matches &= given[at + fields[place]] == given[at + fields[place + 1]]
                if matches:
                    sources[n] = source
                    signs[n] = 2 * is_added - 1
                    offsets[n] = out
                    for c in range(fields[_WIDTH]):
                        values[out + c] = given[at + (c if fields[_COLUMNS] < 0 else fields[_COLUMNS + c])]
                    out += fields[_WIDTH]
                    n += 1
                at += fields[_GIVEN]
    return n


@compiled(makes_arrays=True)
def _join_tick(addresses, inputs, counts, given, start):  # type: ignore[no-untyped-def]
    """Apply the changes of a tick from `start` on.

    Gives the removed results, the added ones, the change that it stopped at, and the source of that change; -1 if all
    were applied.
    """
    # Rows may have no columns.
    size = counts[:, 0].sum() + counts[:, 1].sum()
    sources = np.empty(size, np.int64)
    signs = np.empty(size, np.int8)
    offsets = np.empty(size, np.int64)
    values = np.empty(given.shape[0], np.int64)
    n = _match_changes(inputs, counts, given, sources, signs, offsets, values)
    a = addresses
    pause = rows_at(a[13, 0], a[13, 1], a[13, 2])
    if start == 0 and pause[0, IS_PAUSED] == 0:
        counts[:, 2] += counts[:, 1]
    results, makers, after = join_changes(
        start, sources[:n], signs[:n], offsets[:n], values,
        rows_at(a[0, 0], a[0, 1], a[0, 2]), rows_at(a[1, 0], a[1, 1], a[1, 2]), places_at(a[2, 0], a[2, 1]),
        rows_at(a[3, 0], a[3, 1], a[3, 2]), rows_at(a[4, 0], a[4, 1], a[4, 2]), ints_at(a[5, 0], a[5, 1]),
        places_at(a[6, 0], a[6, 1]), rows_at(a[7, 0], a[7, 1], a[7, 2]), rows_at(a[8, 0], a[8, 1], a[8, 2]),
        links_at(a[9, 0], a[9, 1], a[9, 2]), ints_at(a[10, 0], a[10, 1]), links_at(a[11, 0], a[11, 1], a[11, 2]),
        rows_at(a[12, 0], a[12, 1], a[12, 2]), pause,
    )  # fmt: skip
    removed = 0
    while removed < makers.shape[0] and signs[makers[removed]] < 0:
        removed += 1
    return results[:removed], results[removed:], after, sources[after] if after < n else np.int64(-1)


class TickJoiner:
    """Joins the changes of ticks, as long as there is room for them.

    `readers` are the operators whose deltas it takes, one for each input that changes. Where an input is a pattern over
    a window, its reader is the window: the pattern is matched in the same call.
    """

    def __init__(self, joiner: RunJoiner, changing_inputs: Sequence[Operator], room: int) -> None:
        self.joiner = joiner
        patterns = [find_window_pattern(one) for one in changing_inputs]
        inputs = list(zip(changing_inputs, patterns, strict=True))
        self.readers = [one if pattern is None else pattern[0] for one, pattern in inputs]
        self.reads_windows = [pattern is not None for pattern in patterns]
        self._inputs: Ints = np.array([_fields_of(one, pattern and pattern[1]) for one, pattern in inputs], np.int64)
        self._counts: Ints = np.zeros((len(inputs), 3), np.int64)
        """For each input, how many rows leave and enter at the tick, and how many entered before."""
        self._nothing = no_rows(joiner.width)
        self._room = room
        self._open_tables()

    def _open_tables(self, pending: int = 0) -> None:
        """Make tables with room for the changes of later ticks, and for those of this one that were counted already."""
        self._relation_tables, self._tables = self.joiner.open_tables(self._room + pending)
        self._addresses: Ints = np.array([(address_of(one), *one.shape, 1)[:3] for one in self._tables], np.int64)

    def join(self, deltas: Sequence[Delta]) -> tuple[Ints, Ints] | None:
        """The results that the deltas of the readers remove, and those that they add; None if there is no room."""
        leaving: list[Ints] = []
        entering: list[Ints] = []
        room, counts = self._room, self._counts
        for place, delta in enumerate(deltas):
            removed, added = delta.removed, delta.added
            if removed.shape[0] and added.shape[0] and not (delta.is_reset or self.reads_windows[place]):
                removed, added = _without_common_rows(removed, added)
            counts[place, 0] = left = removed.shape[0]
            counts[place, 1] = entered = added.shape[0]
            if left:
                leaving.append(removed.ravel())
            if entered:
                entering.append(added.ravel())
            room -= left + entered
        if room < 0:
            return None
        self._room = room
        changes = leaving + entering
        if not changes:
            return self._nothing, self._nothing
        given = changes[0] if len(changes) == 1 else np.concatenate(changes)
        removed, added, after, stopped_at = _join_tick(self._addresses, self._inputs, counts, given, 0)
        if stopped_at >= 0:
            removed, added = self._continue(given, removed, added, after, stopped_at)
        check_rows(removed.shape[0] + added.shape[0], added.shape[1])
        return removed, added

    def _continue(self, given: Ints, removed: Ints, added: Ints, after: int, stopped_at: int) -> tuple[Ints, Ints]:
        """The rest of a tick, after many results, or before a row that leaves in another order than it came."""
        all_removed, all_added = [removed], [added]
        before = 0
        while stopped_at >= 0:
            self.joiner.check_pause(sum(map(len, all_removed)) + sum(map(len, all_added)))
            if after == before and not self.joiner.is_paused:
                self._relation_tables.store()
                self.joiner.index_rows(stopped_at)
                self._open_tables(pending=int(self._counts[:, :2].sum()))
            before = after
            removed, added, after, stopped_at = _join_tick(self._addresses, self._inputs, self._counts, given, before)
            all_removed.append(removed)
            all_added.append(added)
        width = removed.shape[1]
        return stack_rows(all_removed, width), stack_rows(all_added, width)

    def size_of(self, place: int) -> int:
        """The number of rows of one of the inputs that change."""
        return self._relation_tables.size_of(self.joiner.relation_number(place))

    def store(self) -> None:
        """Write back what was changed beside the rows: how many there are, and what was inserted."""
        self._relation_tables.store()
        self.joiner.record_inserts(self._counts[:, 2].tolist())
        self._counts[:, 2] = 0


def _without_common_rows(removed: Ints, added: Ints) -> tuple[Ints, Ints]:
    """Both without the rows that they have in common: a row may come and go within one delta."""
    common = Counter(map(tuple, removed.tolist())) & Counter(map(tuple, added.tolist()))
    if not common:
        return removed, added
    shared = np.array(list(common.elements()), dtype=np.int64).reshape(common.total(), removed.shape[1])
    return subtract_rows(removed, shared), subtract_rows(added, shared)


def _fields_of(operator: Operator, pattern: PatternOperator | None) -> list[int]:
    """The fields of an input in compiled code."""
    fields = [-1] * _FIELDS
    fields[_WIDTH] = len(operator.variables)
    fields[_CONSTANTS] = fields[_EQUAL] = 0
    if pattern is None:
        fields[_GIVEN] = len(operator.variables)
        return fields
    constants, equal_places, columns = pattern.fields
    fields[_GIVEN] = len(pattern.inputs[0].variables)
    for field, pairs in ((_CONSTANTS, constants), (_EQUAL, equal_places)):
        fields[field] = len(pairs)
        for place, (one, other) in enumerate(pairs):
            fields[field + 1 + 2 * place : field + 3 + 2 * place] = one, other
    fields[_COLUMNS : _COLUMNS + len(columns)] = columns
    return fields
