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

from headwater.datasets.mapped_files import Ints, append, mapped_ints
from headwater.datasets.stored_terms import StoredTerms

ROWS_AT_A_TIME = 4_000_000
"""Groups are sorted in pieces of about so many rows, which bounds the memory of writing."""
NAMES = ("s", "o", "os", "oo")
Pairs = tuple[Ints, Ints]
Place = tuple[int, int]
"""A graph (`NO_TERM` is the default graph) and a predicate."""


class Group(NamedTuple):
    """The rows of one predicate in one graph, and how many different subjects and objects they have."""

    start: int
    end: int
    subjects: int
    objects: int


@dataclass(frozen=True)
class Columns:
    """Statements that nobody changes any more, and the texts of their terms."""

    groups: dict[Place, Group]
    by_subject: Pairs
    by_object: Pairs
    terms: StoredTerms

    @classmethod
    def open(cls, folder: Path) -> Columns:
        rows = mapped_ints(folder / "groups").reshape(-1, 6).tolist()
        groups = {(graph, predicate): Group(*rest) for graph, predicate, *rest in rows}
        s, o, os, oo = (mapped_ints(folder / name) for name in NAMES)
        return cls(groups, (s, o), (oo, os), StoredTerms.open(folder))

    @property
    def size(self) -> int:
        return int(self.by_subject[0].shape[0])

    def pairs(self, place: Place) -> Pairs:
        """Subjects and objects of a group, in the order of the subjects."""
        return self._cut(place, self.by_subject)

    def reversed_pairs(self, place: Place) -> Pairs:
        """Objects and subjects of a group, in the order of the objects."""
        return self._cut(place, self.by_object)

    def _cut(self, place: Place, columns: Pairs) -> Pairs:
        group = self.groups.get(place)
        if group is None:
            return columns[0][:0], columns[1][:0]
        return columns[0][group.start : group.end], columns[1][group.start : group.end]


class ColumnsWriter:
    """Writes the groups of a data set one after the other into a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._groups: list[tuple[int, ...]] = []
        self._end = 0

    def __enter__(self) -> ColumnsWriter:
        self._files: dict[str, BinaryIO] = {}
        self._open = ExitStack()
        for name in NAMES:
            self._files[name] = self._open.enter_context(open(self._folder / name, "wb"))
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()
        np.array(self._groups, dtype=np.int64).tofile(self._folder / "groups")

    def group(self, place: Place, parts: Sequence[Pairs]) -> None:
        """The rows of a group, in whatever order and however often they stand in the parts."""
        start, subjects = self._end, 0
        for s, o in _sorted_in_ranges(parts, is_set=False):
            append(self._files["s"], s)
            append(self._files["o"], o)
            self._end += s.shape[0]
            subjects += _different(s)
        if self._end == start:
            return
        for name in ("s", "o"):
            self._files[name].flush()
        written = tuple(mapped_ints(self._folder / name)[start : self._end] for name in ("o", "s"))
        objects = 0
        for oo, os in _sorted_in_ranges([(written[0], written[1])], is_set=True):
            append(self._files["oo"], oo)
            append(self._files["os"], os)
            objects += _different(oo)
        self._groups.append((*place, start, self._end, subjects, objects))


def united(parts: Sequence[Pairs]) -> Pairs:
    """The pairs of several sorted parts, each once, in order."""
    full = [part for part in parts if part[0].shape[0]]
    if len(full) == 1:
        return full[0]
    return _sorted(full, is_set=False) if full else (np.empty(0, np.int64), np.empty(0, np.int64))


def _sorted_in_ranges(parts: Sequence[Pairs], *, is_set: bool) -> Iterator[Pairs]:
    """All pairs in the order of the first and then the second, each once; one range of firsts after the other."""
    total = sum(first.shape[0] for first, _ in parts)
    if total <= ROWS_AT_A_TIME:
        yield _sorted(parts, is_set)
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
        yield _sorted(pieces, is_set)


def _sorted(parts: Sequence[Pairs], is_set: bool) -> Pairs:
    first = np.concatenate([one for one, _ in parts])
    second = np.concatenate([other for _, other in parts])
    order = np.lexsort((second, first))
    first, second = first[order], second[order]
    if is_set or first.shape[0] < 2:
        return first, second
    is_new = np.ones(first.shape[0], dtype=np.bool_)
    is_new[1:] = (first[1:] != first[:-1]) | (second[1:] != second[:-1])
    return first[is_new], second[is_new]


def _different(column: Ints) -> int:
    """How many different values a sorted column has."""
    return int((column[1:] != column[:-1]).sum()) + 1 if column.shape[0] else 0
