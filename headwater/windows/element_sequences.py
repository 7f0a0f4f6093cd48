"""Sequences of elements, as Python objects or as columns, and what clocks, programs and evaluators do with either.

The definition is given in terms of `Element`s; bulk input comes as `ElementColumns`. Both are sequences of elements in
arrival order.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import replace
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from headwater.terms.element_columns import ElementColumns, concat_columns
from headwater.terms.ids.term_texts import Ints
from headwater.terms.model import Element

Elements: TypeAlias = list[Element] | ElementColumns

_TRIPLE_BYTES = 400
"""About the memory that one triple takes as Python objects."""


def times_of(elements: Elements) -> Ints:
    if isinstance(elements, ElementColumns):
        return elements.times
    return np.array([element.time for element in elements], dtype=np.int64)


def sizes_of(elements: Elements) -> tuple[int, int]:
    """The number of triples and, roughly, of bytes."""
    if isinstance(elements, ElementColumns):
        return elements.triples.shape[0], elements.nbytes
    triples = sum(len(element.triples) for element in elements)
    return triples, _TRIPLE_BYTES * triples


def count_triples(elements: Elements, mask: npt.NDArray[np.bool_]) -> int:
    """How many triples the elements have at which the mask is true."""
    if isinstance(elements, ElementColumns):
        return int(np.diff(elements.starts)[mask].sum())
    return sum(len(element.triples) for element, wanted in zip(elements, mask.tolist(), strict=True) if wanted)


def elements_of(elements: Elements) -> list[Element]:
    return elements.elements() if isinstance(elements, ElementColumns) else elements


def select_elements(elements: Elements, mask: npt.NDArray[np.bool_]) -> Elements:
    """The elements at which the mask is true."""
    if isinstance(elements, ElementColumns):
        return elements.select(mask)
    return [element for element, wanted in zip(elements, mask.tolist(), strict=True) if wanted]


def drop_unused_texts(elements: Elements) -> Elements:
    """The same elements without texts of terms that occur in none of them."""
    return elements.with_own_texts() if isinstance(elements, ElementColumns) else elements


def concat_elements(sequences: Iterable[Elements]) -> Elements:
    """Several sequences as one, in the given order; as columns if any of them is."""
    nonempty = [elements for elements in sequences if len(elements)]
    if len(nonempty) == 1:
        return nonempty[0]
    if any(isinstance(elements, ElementColumns) for elements in nonempty):
        return concat_columns(e if isinstance(e, ElementColumns) else ElementColumns.of(e) for e in nonempty)
    return [element for elements in nonempty for element in elements_of(elements)]


def sort_by_position(elements: Elements) -> Elements:
    """The elements in arrival order: by their positions in the source."""
    if not isinstance(elements, ElementColumns):
        return sorted(elements, key=lambda element: element.position)
    if _is_of_one_item(elements.positions):
        return elements
    columns = [elements.positions[:, i] for i in reversed(range(elements.positions.shape[1]))]
    return elements.select(np.lexsort(columns)) if columns else elements


def _is_of_one_item(positions: Ints) -> bool:
    """Whether positions ascend in their last place and are otherwise the same, as where one item was read."""
    if not len(positions) or not bool((positions[1:, -1:] > positions[:-1, -1:]).all()):
        return False
    return bool((positions[:, :-1] == positions[0, :-1]).all())


def number_elements(elements: Elements, first: int) -> Elements:
    """The same elements with sequence numbers, from `first` on, as their positions."""
    if isinstance(elements, ElementColumns):
        return elements.with_positions(np.arange(first, first + len(elements)).reshape(-1, 1))
    return [replace(element, position=(first + i,)) for i, element in enumerate(elements)]


def sequence_numbers_of(elements: Elements) -> Ints:
    """The sequence numbers that `number_elements` gave."""
    if isinstance(elements, ElementColumns):
        return elements.positions[:, 0] if len(elements) else np.zeros(0, dtype=np.int64)
    return np.array([element.position[0] for element in elements], dtype=np.int64)


def split_at_time(elements: Elements, limit: int | None) -> tuple[Elements, Elements]:
    """The elements before a time limit (None: all of them) and the others, both in time order."""
    if isinstance(elements, ElementColumns):
        ordered = elements.in_time_order()
        cut = len(ordered) if limit is None else int(ordered.times.searchsorted(limit))
        # What waits must not carry along the texts of what does not, or they would pile up batch by batch.
        return ordered.slice(0, cut), ordered.slice(cut, len(ordered)).with_own_texts()
    if len(elements) == 1:
        is_before = limit is None or elements[0].time < limit
        return (elements, []) if is_before else ([], elements)
    in_order = sorted(elements, key=lambda element: element.time)
    cut = len(in_order) if limit is None else bisect_left(in_order, limit, key=lambda element: element.time)
    return in_order[:cut], in_order[cut:]
