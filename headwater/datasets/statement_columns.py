"""The statements of a data set as sorted columns of ids, one group for each graph and predicate.

    groups   graph  predicate  start  end  subjects  objects
             -      dc:creator     0   40        21       17
             -      foaf:name     40   57        17       17
    s, o     the statements of each group by subject, then object
    os, oo   the same by object, then subject

Any pattern with a predicate is one range of such a column, found by two binary searches; one without a predicate is as
many ranges as there are predicates. A graph is a set, so no statement is there twice. Ids are those of
`headwater.terms.ids.term_ids`: the lexical form of every literal is kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np

from headwater.datasets.mapped_files import Ints, map_ints, write_column
from headwater.datasets.stored_terms import StoredTerms

ROWS_AT_A_TIME = 4_000_000
"""A group is sorted in ranges of about this many rows, which bounds the memory of writing."""
COLUMN_FILES = ("s", "o", "os", "oo")
Pairs = tuple[Ints, Ints]
GroupKey = tuple[int, int]
"""The ids of a graph (`NO_TERM` is the default graph) and a predicate."""


class GroupRange(NamedTuple):
    """Where the rows of one group are, and how many different subjects and objects they have."""

    start: int
    end: int
    subjects: int
    objects: int


@dataclass(frozen=True)
class StatementColumns:
    """Immutable statements, mapped from a folder, and the texts of their terms."""

    groups: dict[GroupKey, GroupRange]
    by_subject: Pairs
    by_object: Pairs
    terms: StoredTerms

    @classmethod
    def open(cls, folder: Path) -> StatementColumns:
        rows = map_ints(folder / "groups").reshape(-1, 6).tolist()
        groups = {(graph, predicate): GroupRange(*rest) for graph, predicate, *rest in rows}
        s, o, os, oo = (map_ints(folder / name) for name in COLUMN_FILES)
        size = max((group.end for group in groups.values()), default=0)
        if any(column.shape[0] != size for column in (s, o, os, oo)):
            raise ValueError(f"the columns in {folder} do not have {size} rows each")
        return cls(groups, (s, o), (oo, os), StoredTerms.open(folder))

    @property
    def size(self) -> int:
        return int(self.by_subject[0].shape[0])

    def pairs_by_subject(self, key: GroupKey) -> Pairs:
        """Subjects and objects of a group, sorted by subject."""
        return self._slice_group(key, self.by_subject)

    def pairs_by_object(self, key: GroupKey) -> Pairs:
        """Objects and subjects of a group, sorted by object."""
        return self._slice_group(key, self.by_object)

    def _slice_group(self, key: GroupKey, columns: Pairs) -> Pairs:
        group = self.groups.get(key)
        if group is None:
            return columns[0][:0], columns[1][:0]
        return columns[0][group.start : group.end], columns[1][group.start : group.end]


class StatementColumnsWriter:
    """Writes the groups of a data set into a folder, one after the other."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._groups: list[tuple[int, ...]] = []
        self._end = 0

    def __enter__(self) -> StatementColumnsWriter:
        self._files: dict[str, BinaryIO] = {}
        self._open = ExitStack()
        for name in COLUMN_FILES:
            self._files[name] = self._open.enter_context(open(self._folder / name, "wb"))
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()
        np.array(self._groups, dtype=np.int64).tofile(self._folder / "groups")

    def write_group(self, key: GroupKey, parts: Sequence[Pairs]) -> None:
        """Write the rows of a group. The parts may have them in any order, and more than once."""
        start, subjects = self._end, 0
        for s, o in _sort_in_ranges(parts, has_duplicates=True):
            write_column(self._files["s"], s)
            write_column(self._files["o"], o)
            self._end += s.shape[0]
            subjects += _count_distinct(s)
        if self._end == start:
            return
        for name in ("s", "o"):
            self._files[name].flush()
        written = tuple(map_ints(self._folder / name)[start : self._end] for name in ("o", "s"))
        objects = 0
        for oo, os in _sort_in_ranges([(written[0], written[1])], has_duplicates=False):
            write_column(self._files["oo"], oo)
            write_column(self._files["os"], os)
            objects += _count_distinct(oo)
        self._groups.append((*key, start, self._end, subjects, objects))


def unite_pairs(parts: Sequence[Pairs]) -> Pairs:
    """The set union of several sorted lists of pairs, sorted."""
    full = [part for part in parts if part[0].shape[0]]
    if len(full) == 1:
        return full[0]
    return _sort_pairs(full, has_duplicates=True) if full else (np.empty(0, np.int64), np.empty(0, np.int64))


def _sort_in_ranges(parts: Sequence[Pairs], *, has_duplicates: bool) -> Iterator[Pairs]:
    """Sort pairs by the first and then the second, without duplicates; gives one range of firsts after the other."""
    total = sum(first.shape[0] for first, _ in parts)
    if total <= ROWS_AT_A_TIME:
        yield _sort_pairs(parts, has_duplicates)
        return
    sample = np.concatenate([first[:: max(1, first.shape[0] // 4096)] for first, _ in parts])
    cuts = np.unique(np.quantile(sample, np.linspace(0, 1, total // ROWS_AT_A_TIME + 2)[1:-1], method="nearest"))
    for low, high in zip([None, *cuts.tolist()], [*cuts.tolist(), None], strict=True):
        pieces: list[Pairs] = []
        for first, second in parts:
            mask = np.ones(first.shape[0], dtype=np.bool_)
            if low is not None:
                mask &= first >= low
            if high is not None:
                mask &= first < high
            pieces.append((first[mask], second[mask]))
        yield _sort_pairs(pieces, has_duplicates)


def _sort_pairs(parts: Sequence[Pairs], has_duplicates: bool) -> Pairs:
    """All pairs of some parts, sorted; without duplicates if there may be some."""
    first = np.concatenate([one for one, _ in parts])
    second = np.concatenate([other for _, other in parts])
    order = np.lexsort((second, first))
    first, second = first[order], second[order]
    if not has_duplicates or first.shape[0] < 2:
        return first, second
    is_new = np.ones(first.shape[0], dtype=np.bool_)
    is_new[1:] = (first[1:] != first[:-1]) | (second[1:] != second[:-1])
    return first[is_new], second[is_new]


def _count_distinct(column: Ints) -> int:
    """Count the different values of a sorted column."""
    return int((column[1:] != column[:-1]).sum()) + 1 if column.shape[0] else 0
