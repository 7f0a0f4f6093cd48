"""Streaming operators: which solutions of the results an answer carries (CQL; CQ3).

    RSTREAM at t  =  Γ(t)
    ISTREAM at t  =  Γ(t) − Γ(t')      what is new
    DSTREAM at t  =  Γ(t') − Γ(t)      what is gone

with t' the tick before t and − the difference of multisets: three copies minus one leave two.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable
from typing import TypeVar

from headwater.language.stream_clauses import StreamOperator

Item = TypeVar("Item", bound=Hashable)


def multiset_difference(items: Iterable[Item], without: Iterable[Item]) -> list[Item]:
    """The items, in their order, less as many copies of each as `without` holds."""
    excess = Counter(without)
    kept: list[Item] = []
    for item in items:
        if excess[item] > 0:
            excess[item] -= 1
        else:
            kept.append(item)
    return kept


def apply_stream_operator(operator: StreamOperator, now: list[Item], before: list[Item]) -> list[Item]:
    """The solutions of an answer, given the result at this tick and at the tick before."""
    match operator:
        case StreamOperator.ISTREAM:
            return multiset_difference(now, before)
        case StreamOperator.DSTREAM:
            return multiset_difference(before, now)
        case _:
            return now
