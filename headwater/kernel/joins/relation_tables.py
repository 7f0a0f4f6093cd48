"""Relations and their indexes as tables of integers, for compiled loops that take rows one by one.

A loop has three tables: the fields of each relation, the fields of each index, and the columns of all keys. Arrays are
in them by their addresses (`columns.array_addresses`). `RelationTables` makes them and takes over what a loop changed.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from headwater.kernel.columns.array_addresses import ints_at, links_at, rows_at
from headwater.kernel.columns.order_keys import domain_of
from headwater.kernel.columns.ordered_index import OrderedIndex, insert_node, remove_node
from headwater.kernel.columns.relation import Key, Relation
from headwater.kernel.columns.ring_index import (
    Ints,
    Links,
    RingIndex,
    find_slot,
    hash_row,
    link_row,
    ring_head,
    ring_size,
    unlink_row,
)
from headwater.terms.compiled_code import compiled

ROWS, WIDTH, CAPACITY, FREE, FREE_COUNT, TOP, QUEUE, BEGIN, END, FIRST, BEHIND, ROW_INDEX = range(12)
"""The fields of a relation in compiled code; `FIRST` to `BEHIND` are its indexes, `ROW_INDEX` that of whole rows."""
TABLE, SLOTS, USED, LINKS, LINK_WIDTH, KEY, KEY_WIDTH, RELATION, IS_ORDERED = range(9)
"""The fields of an index; an ordered one has the domains of its order keys in place of the slots."""
DOMAINS = SLOTS
NOT_FOUND = np.int64(-1)
"""In place of a row id: the row is not the oldest, or there is no index of whole rows yet."""


@compiled(inline="always")
def rows_of(relations, relation):  # type: ignore[no-untyped-def]
    return rows_at(relations[relation, ROWS], relations[relation, CAPACITY], relations[relation, WIDTH])


@compiled(inline="always")
def probe_index(relations, indexes, keys, index, probe, whole):  # type: ignore[no-untyped-def]
    """The entry of a key in an index, 0 if there is none."""
    if indexes[index, SLOTS] == 0:
        return np.int64(0)
    table = ints_at(indexes[index, TABLE], indexes[index, SLOTS])
    width = indexes[index, KEY_WIDTH]
    key = keys[indexes[index, KEY] : indexes[index, KEY] + width]
    places = whole[:width]
    rows = rows_of(relations, indexes[index, RELATION])
    slot = find_slot(table, rows, key, probe, 0, places, hash_row(probe, 0, places))
    return table[slot] if slot >= 0 else np.int64(0)


@compiled
def insert_into_index(relations, indexes, keys, index, rows, row):  # type: ignore[no-untyped-def]
    key = keys[indexes[index, KEY] : indexes[index, KEY] + indexes[index, KEY_WIDTH]]
    if indexes[index, IS_ORDERED]:
        insert_node(links_at(indexes[index, LINKS], rows.shape[0] + 1, 2), rows, key, row)
        indexes[index, DOMAINS] |= np.int64(1) << domain_of(rows[row, key[key.shape[0] - 1]])
        return
    table = ints_at(indexes[index, TABLE], indexes[index, SLOTS])
    links = links_at(indexes[index, LINKS], rows.shape[0], indexes[index, LINK_WIDTH])
    indexes[index, USED] += link_row(table, links, rows, key, row, hash_row(rows, row, key), 1)


@compiled
def remove_from_index(relations, indexes, keys, index, rows, row):  # type: ignore[no-untyped-def]
    key = keys[indexes[index, KEY] : indexes[index, KEY] + indexes[index, KEY_WIDTH]]
    if indexes[index, IS_ORDERED]:
        remove_node(links_at(indexes[index, LINKS], rows.shape[0] + 1, 2), rows, key, row)
        return
    table = ints_at(indexes[index, TABLE], indexes[index, SLOTS])
    links = links_at(indexes[index, LINKS], rows.shape[0], indexes[index, LINK_WIDTH])
    slot = find_slot(table, rows, key, rows, row, key, hash_row(rows, row, key))
    indexes[index, USED] -= unlink_row(table, links, slot, row)


@compiled
def take_oldest_row(relations, relation, rows, values, offset):  # type: ignore[no-untyped-def]
    """The id of the row that arrived first, if it has these values; -1 otherwise. It leaves the queue."""
    fields = relations[relation]
    if fields[BEGIN] >= fields[END]:
        return NOT_FOUND
    oldest = np.int64(links_at(fields[QUEUE], fields[END], 1)[fields[BEGIN], 0])
    is_same = True
    for c in range(fields[WIDTH]):
        is_same &= rows[oldest, c] == values[offset + c]
    if not is_same:
        return NOT_FOUND
    fields[BEGIN] += 1
    return oldest


@compiled
def take_indexed_row(relations, indexes, keys, relation, rows, values, offset, probe, whole):  # type: ignore[no-untyped-def]
    """The id of a row with these values, which leaves the index of whole rows; -1 where there is no such index."""
    fields = relations[relation]
    index = fields[ROW_INDEX]
    if index < 0:
        return NOT_FOUND
    for c in range(fields[WIDTH]):
        probe[0, c] = values[offset + c]
    entry = probe_index(relations, indexes, keys, index, probe, whole)
    if ring_size(entry) == 0:
        raise AssertionError("a run removes a row that was never there")
    row = ring_head(entry)
    remove_from_index(relations, indexes, keys, index, rows, row)
    return row


@compiled
def add_row(relations, indexes, keys, relation, rows, values, offset):  # type: ignore[no-untyped-def]
    """Write a row into a relation and its indexes; gives its id."""
    fields = relations[relation]
    if fields[FREE_COUNT]:
        fields[FREE_COUNT] -= 1
        row = np.int64(links_at(fields[FREE], fields[FREE_COUNT] + 1, 1)[fields[FREE_COUNT], 0])
    else:
        row = fields[TOP]
        fields[TOP] += 1
    for c in range(fields[WIDTH]):
        rows[row, c] = values[offset + c]
    if fields[QUEUE]:
        links_at(fields[QUEUE], fields[END] + 1, 1)[fields[END], 0] = row
        fields[END] += 1
    for index in range(fields[FIRST], fields[BEHIND]):
        insert_into_index(relations, indexes, keys, index, rows, row)
    if fields[ROW_INDEX] >= 0:
        insert_into_index(relations, indexes, keys, fields[ROW_INDEX], rows, row)
    return row


@compiled
def remove_from_indexes(relations, indexes, keys, relation, rows, row):  # type: ignore[no-untyped-def]
    """Take a row out of all indexes but that of whole rows."""
    for index in range(relations[relation, FIRST], relations[relation, BEHIND]):
        remove_from_index(relations, indexes, keys, index, rows, row)


@compiled(inline="always")
def free_row_id(relations, relation, row):  # type: ignore[no-untyped-def]
    """Let a row id be used again."""
    fields = relations[relation]
    links_at(fields[FREE], fields[FREE_COUNT] + 1, 1)[fields[FREE_COUNT], 0] = row
    fields[FREE_COUNT] += 1


class RelationTables:
    """The tables of some relations, as they are when it is made. No relation may change but by a compiled loop."""

    def __init__(self, relations: Sequence[Relation]) -> None:
        self._relations = relations
        self._indexes: list[RingIndex | OrderedIndex] = []
        self._index_numbers: dict[tuple[int, Key, bool], int] = {}
        of_relations: list[tuple[int, ...]] = []
        of_indexes: list[tuple[int, ...]] = []
        keys: list[int] = []
        for number, relation in enumerate(relations):
            first = len(of_indexes)
            by_key: list[tuple[Key, RingIndex | OrderedIndex]] = [
                *relation.indexes().items(),
                *relation.ordered_indexes().items(),
            ]
            for key, index in by_key:
                is_ordered = isinstance(index, OrderedIndex)
                self._index_numbers[number, key, is_ordered] = len(self._indexes)
                self._indexes.append(index)
                of_indexes.append((*index.fields(), len(keys), len(key), number, int(is_ordered)))
                keys.extend(key)
            behind = len(of_indexes)
            row_index = relation.row_index
            if row_index is not None:
                self._indexes.append(row_index)
                of_indexes.append((*row_index.fields(), len(keys), relation.width, number, 0))
                keys.extend(range(relation.width))
            of_relations.append((*relation.fields(), first, behind, -1 if row_index is None else behind))
        # Others may exchange the arrays of a static relation that they share: these stay as they are.
        self._arrays = [relation.rows for relation in relations] + [index.links for index in self._indexes]
        self._arrays += [index.table for index in self._indexes if isinstance(index, RingIndex)]
        self.relations: Ints = np.array(of_relations, np.int64)
        self.indexes: Ints = np.array(of_indexes, np.int64).reshape(len(of_indexes), 9)
        self.keys: Links = np.array(keys, np.int32)

    def index_number(self, relation: int, key: Key, *, is_ordered: bool = False) -> int:
        """The place of an index in the table of indexes, -1 if there is none on that key."""
        return self._index_numbers.get((relation, key, is_ordered), -1)

    def size_of(self, relation: int) -> int:
        """The number of rows of a relation."""
        return self.relations.item(relation, TOP) - self.relations.item(relation, FREE_COUNT)

    def store(self) -> None:
        """Take over what a compiled loop has changed."""
        for relation, fields in zip(self._relations, self.relations.tolist(), strict=True):
            relation.set_fields(fields[FREE_COUNT], fields[TOP], fields[BEGIN], fields[END])
        for index, fields in zip(self._indexes, self.indexes.tolist(), strict=True):
            index.set_fields(fields[SLOTS], fields[USED])
