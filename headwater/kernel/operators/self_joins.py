"""Self-joins: inputs of a join that are one pattern under two names.

    ?post1 :tag ?t . ?post2 :tag ?t

Both inputs have the same rows, so the join keeps and indexes them once. Where the join stays the same when the names
are exchanged, it is symmetric: each result with its leaves exchanged is a result, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from headwater.kernel.columns.ring_index import Ints
from headwater.kernel.operators.operator import Operator
from headwater.kernel.operators.triple_patterns import RenameOperator


def find_self_joins(inputs: Sequence[Operator], candidates: Iterable[int]) -> dict[int, int]:
    """Pair equal inputs among some: the second by the first. A third one stays unpaired, a fourth is paired with it."""
    unpaired: dict[Operator, int] = {}
    self_joins: dict[int, int] = {}
    for input_index in candidates:
        operator = inputs[input_index]
        if isinstance(operator, RenameOperator):
            (source,) = operator.inputs
            if source in unpaired:
                self_joins[unpaired.pop(source)] = input_index
            else:
                unpaired[source] = input_index
    return self_joins


def symmetry_of(inputs: Sequence[Operator], self_joins: Mapping[int, int]) -> Ints | None:
    """The exchange of leaves that turns each result into a result, as the new place of each leaf; None if none does."""
    places = list(range(len(inputs)))
    for first, second in self_joins.items():
        places[first], places[second] = second, first
    renaming: dict[str, str] = {}
    for operator, place in zip(inputs, places, strict=True):
        for variable, other_variable in zip(operator.variables, inputs[place].variables, strict=True):
            if renaming.setdefault(variable, other_variable) != other_variable:
                return None
    return np.array(places, dtype=np.int64)
