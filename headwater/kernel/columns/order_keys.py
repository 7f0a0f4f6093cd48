"""Order keys: 64 bits for a term id such that comparing keys tells which terms a comparison can hold for.

An ordered index needs one order for all terms, and SPARQL has none: numbers of several types are compared after
promotion, times with and without zone only if they are far apart, and most other comparisons are errors. So terms are
divided into domains, and within a domain keys grow with values:

     62 … 60     59 … 0
    ┌─────────┬──────────────────────────────────────────┐
    │ domain  │ the value, in an order of whole numbers  │
    └─────────┴──────────────────────────────────────────┘

A bound gives an interval for each domain (`find_interval`). It holds every key whose term satisfies the comparison, and
maybe some more: who uses it tests the condition itself. Bounds are a little wider where rounding could matter.

- exact numbers, and doubles: compared as doubles, which never exchanges two of them;
- floats and quotients: as doubles, with the distance that rounding to a float makes;
- times with a zone, and local times: microseconds; one is compared with the other if they are 14 hours apart;
- other terms: no order. They may be numbers that are no inline ids, so they are in every interval.

A bound is moved where a comparison was solved for one side: `?t + 5 >= ?u` gives ?t the bound ?u - 5. That is right for
exact numbers and for times. Doubles are rounded when they are added, so a moved bound says nothing about them.
"""

from __future__ import annotations

import numpy as np

from headwater.kernel.columns.ring_index import Ints
from headwater.terms.compiled_code import compiled
from headwater.terms.ids.compiled_decoding import (
    DECIMAL,
    FLOAT,
    LOCAL_TIME,
    QUOTIENT,
    UTC_TIME,
    value_class_of,
    value_of_id,
    value_to_double,
    value_to_instant,
)
from headwater.terms.ids.inline_layout import NO_TERM

UNBOUND_DOMAIN, EXACT_NUMBERS, DOUBLES, ROUNDED_NUMBERS, ZONED_TIMES, LOCAL_TIMES, OTHER_TERMS = range(7)
_MOVED_NUMBERS = 7
"""The domain of a moved bound that is an exact number."""
DOMAINS = range(1, 7)
"""Those that a comparison can hold for."""

_SHIFT = np.int64(60)
_VALUE = (np.int64(1) << _SHIFT) - 1
_TIME_BIAS = np.int64(1) << 59
_DROPPED_BITS = np.int64(4)
_NUMBER_SLACK = np.int64(2)
"""The two zeros differ by one."""
_ROUNDED_SLACK = np.int64(1) << 27
"""A float has 24 bits, a key keeps 48 of a double."""
_ZONE_SLACK = np.int64(14 * 3600 * 1_000_000)
_UNBOUND = np.int64(NO_TERM)


@compiled(inline="always")
def domain_of(key):  # type: ignore[no-untyped-def]
    return key >> _SHIFT


@compiled
def _order_key(term_id, number):  # type: ignore[no-untyped-def]
    """The key of a term; `number` is room for one double."""
    if term_id == _UNBOUND:
        return np.int64(0)
    value_class = value_class_of(term_id) if term_id < 0 else np.int64(0)
    value = value_of_id(term_id)
    if value_class == 0 or QUOTIENT < value_class < LOCAL_TIME:
        return np.int64(OTHER_TERMS) << _SHIFT
    if value_class >= LOCAL_TIME:
        domain = np.int64(ZONED_TIMES if value_class >= UTC_TIME else LOCAL_TIMES)
        return domain << _SHIFT | (value_to_instant(value_class, value) + _TIME_BIAS)
    domain = np.int64(
        EXACT_NUMBERS if value_class <= DECIMAL else (DOUBLES if value_class < FLOAT else ROUNDED_NUMBERS)
    )
    number[0] = value_to_double(value_class, value)
    bits = number.view(np.int64)[0]
    # As unsigned numbers these bits are ordered like the doubles.
    ordered = np.uint64(~bits) if bits < 0 else np.uint64(bits) | np.uint64(1 << 63)
    return domain << _SHIFT | np.int64(ordered >> np.uint64(_DROPPED_BITS))


@compiled
def _write_order_keys(ids, is_moved, keys, column, number):  # type: ignore[no-untyped-def]
    for i in range(ids.shape[0]):
        key = _order_key(ids[i], number)
        if is_moved:
            if domain_of(key) == EXACT_NUMBERS:
                key = np.int64(_MOVED_NUMBERS) << _SHIFT | key & _VALUE
            elif domain_of(key) != ZONED_TIMES and domain_of(key) != LOCAL_TIMES:
                key = np.int64(OTHER_TERMS) << _SHIFT
        keys[i, column] = key


def write_order_keys(ids: Ints, rows: Ints, column: int, *, is_moved: bool = False) -> None:
    """Write the order keys of some terms, which may be moved bounds, into a column."""
    _write_order_keys(np.ascontiguousarray(ids), is_moved, rows, column, np.empty(1, np.float64))


@compiled
def find_interval(bounds, low_count, high_count, domain):  # type: ignore[no-untyped-def]
    """The keys of a domain that may be between bounds: `low_count` lower ones, then `high_count` upper ones.

    The interval is empty, its first key above its last, where a comparison would be an error.
    """
    base = np.int64(domain) << _SHIFT
    low, high = base, base | _VALUE
    for b in range(low_count + high_count):
        of_bound = domain_of(bounds[b])
        if of_bound == UNBOUND_DOMAIN:
            return np.int64(1), np.int64(0)
        if of_bound == OTHER_TERMS or domain == OTHER_TERMS:
            continue
        if of_bound == _MOVED_NUMBERS:
            if domain in (DOUBLES, ROUNDED_NUMBERS):
                continue
            of_bound = np.int64(EXACT_NUMBERS)
        if (of_bound <= ROUNDED_NUMBERS) != (domain <= ROUNDED_NUMBERS):
            return np.int64(1), np.int64(0)
        if domain <= ROUNDED_NUMBERS:
            slack = _ROUNDED_SLACK if domain == ROUNDED_NUMBERS or of_bound == ROUNDED_NUMBERS else _NUMBER_SLACK
        else:
            slack = np.int64(0) if domain == of_bound else _ZONE_SLACK
        value = bounds[b] & _VALUE
        if b < low_count:
            low = max(low, base | max(value - slack, np.int64(0)))
        else:
            high = min(high, base | min(value + slack, _VALUE))
    return low, high
