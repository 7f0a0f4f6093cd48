"""Elements that have arrived, as objects or as columns: what clocks, programs and evaluators do with either.

The definition is told in terms of `Element`s; what comes in bulk comes as `ElementColumns`. Both are sequences of
elements in the order of their arrival.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import replace
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from headwater.terms.element_columns import ElementColumns
from headwater.terms.element_columns import joined as joined_columns
from headwater.terms.ids.term_texts import Ints
from headwater.terms.model import Element

Arrivals: TypeAlias = list[Element] | ElementColumns

_TRIPLE_BYTES = 400
"""About what a triple takes as Python objects."""


def times_of(arrivals: Arrivals) -> Ints:
    if isinstance(arrivals, ElementColumns):
        return arrivals.times
    return np.array([element.time for element in arrivals], dtype=np.int64)


def sizes_of(arrivals: Arrivals) -> tuple[int, int]:
    """How many triples, and about how many bytes."""
    if isinstance(arrivals, ElementColumns):
        return arrivals.triples.shape[0], arrivals.nbytes
    triples = sum(len(element.triples) for element in arrivals)
    return triples, _TRIPLE_BYTES * triples


def elements_of(arrivals: Arrivals) -> list[Element]:
    return arrivals.elements() if isinstance(arrivals, ElementColumns) else arrivals


def picked(arrivals: Arrivals, mask: npt.NDArray[np.bool_]) -> Arrivals:
    """The elements at which a mask is set."""
    if isinstance(arrivals, ElementColumns):
        return arrivals.picked(mask)
    return [element for element, wanted in zip(arrivals, mask.tolist(), strict=True) if wanted]


def with_own_texts(arrivals: Arrivals) -> Arrivals:
    """Without the texts of terms that these elements do not have."""
    return arrivals.with_own_texts() if isinstance(arrivals, ElementColumns) else arrivals


def joined(parts: Iterable[Arrivals]) -> Arrivals:
    """Several, one behind the other; columns where one of them is."""
    full = [part for part in parts if len(part)]
    if len(full) == 1:
        return full[0]
    if any(isinstance(part, ElementColumns) for part in full):
        return joined_columns(p if isinstance(p, ElementColumns) else ElementColumns.of(p) for p in full)
    return [element for part in full for element in elements_of(part)]


def in_arrival_order(arrivals: Arrivals) -> Arrivals:
    """By the positions in the source."""
    if not isinstance(arrivals, ElementColumns):
        return sorted(arrivals, key=lambda element: element.position)
    columns = [arrivals.positions[:, i] for i in reversed(range(arrivals.positions.shape[1]))]
    return arrivals.picked(np.lexsort(columns)) if columns else arrivals


def numbered(arrivals: Arrivals, first: int) -> Arrivals:
    """The same elements with their numbers in the stream, counted from `first`, as their positions."""
    if isinstance(arrivals, ElementColumns):
        return arrivals.with_positions(np.arange(first, first + len(arrivals)).reshape(-1, 1))
    return [replace(element, position=(first + i,)) for i, element in enumerate(arrivals)]


def numbers_of(arrivals: Arrivals) -> Ints:
    """The numbers that `numbered` gave."""
    if isinstance(arrivals, ElementColumns):
        return arrivals.positions[:, 0] if len(arrivals) else np.zeros(0, dtype=np.int64)
    return np.array([element.position[0] for element in arrivals], dtype=np.int64)


def parted(arrivals: Arrivals, limit: int | None) -> tuple[Arrivals, Arrivals]:
    """In time order: those before a limit (all without one), and the others."""
    if isinstance(arrivals, ElementColumns):
        ordered = arrivals.in_time_order()
        cut = len(ordered) if limit is None else int(ordered.times.searchsorted(limit))
        # What waits must not carry along the texts of what does not, or they would pile up batch by batch.
        return ordered.slice(0, cut), ordered.slice(cut, len(ordered)).with_own_texts()
    if len(arrivals) == 1:
        is_before = limit is None or arrivals[0].time < limit
        return (arrivals, []) if is_before else ([], arrivals)
    elements = sorted(arrivals, key=lambda element: element.time)
    cut = len(elements) if limit is None else bisect_left(elements, limit, key=lambda element: element.time)
    return elements[:cut], elements[cut:]
