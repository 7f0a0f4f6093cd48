"""Larger copies of arrays, for compiled code that does not know how much room it needs.

Loops that fill arrays stop where there is no room, and are called again: compiled code that makes arrays counts
references to all that it has (`terms.compiled_code`).
"""

from __future__ import annotations

import numpy as np

from headwater.terms.compiled_code import compiled


@compiled(makes_arrays=True)
def enlarge_ints(numbers):  # type: ignore[no-untyped-def]
    """A copy of numbers with room for twice as many."""
    more = np.empty(2 * numbers.shape[0], np.int64)
    more[: numbers.shape[0]] = numbers
    return more


@compiled(makes_arrays=True)
def enlarge_rows(rows, count):  # type: ignore[no-untyped-def]
    """A copy of rows with room for twice as many; the first `count` are copied."""
    more = np.empty((2 * rows.shape[0], rows.shape[1]), np.int64)
    more[:count] = rows[:count]
    return more
