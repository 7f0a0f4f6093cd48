"""Inputs of a join that are one pattern under two names: `?post1 :tag ?t . ?post2 :tag ?t`.

Such twins have the same rows, so that the join needs to keep and index them once. Where the whole join is the same with
the names exchanged, every result with its leaves exchanged is one, too: that is its mirror image.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from headwater.kernel.columns.ring_index import Ints
from headwater.kernel.operators.operator import Operator
from headwater.kernel.operators.triple_patterns import Renamed


def twins_among(inputs: Sequence[Operator], numbers: Iterable[int]) -> dict[int, int]:
    """Pairs of some inputs: the second by the first. The third of a kind is alone, the fourth has the third."""
    alone: dict[Operator, int] = {}
    twins: dict[int, int] = {}
    for number in numbers:
        one = inputs[number]
        if isinstance(one, Renamed):
            (source,) = one.inputs
            if source in alone:
                twins[alone.pop(source)] = number
            else:
                alone[source] = number
    return twins


def mirror_of(inputs: Sequence[Operator], twins: Mapping[int, int]) -> Ints | None:
    """Where each leaf of a result stands in its mirror image; None where that need not be a result."""
    places = list(range(len(inputs)))
    for first, second in twins.items():
        places[first], places[second] = second, first
    exchanged: dict[str, str] = {}
    for one, place in zip(inputs, places, strict=True):
        for variable, other in zip(one.variables, inputs[place].variables, strict=True):
            if exchanged.setdefault(variable, other) != other:
                return None
    return np.array(places, dtype=np.int64)
