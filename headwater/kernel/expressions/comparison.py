"""Comparison of numbers and times that are inside their ids (`headwater.terms.ids.inline_layout`).

Truth has three values in the order of SPARQL's logic (section 17.2), so that `&&` is the minimum, `||` the maximum and
`!` a reflection. A fourth, UNDECIDED, is for rows that only pyoxigraph can decide; it never leaves this package:

    FALSE < ERROR < TRUE        a && b = min(a, b)        a || b = max(a, b)        !a = TRUE − a

Numbers are promoted as pyoxigraph does: integer, then decimal, then float, then double. A comparison is decided here
only if the conversion of both sides is exact or correctly rounded:

- integer and decimal are compared exactly, either with a double as doubles;
- float is compared with double as doubles, with integer and decimal as floats if those have few digits;
- a quotient is compared with any other number if the two are so far apart that rounding cannot matter.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from headwater.kernel.columns.ring_index import Ints
from headwater.terms.compiled_code import compiled
from headwater.terms.ids.compiled_decoding import (
    DOUBLE,
    DOUBLE_BITS,
    FLOAT,
    FLOAT_SCIENTIFIC,
    INTEGER,
    LOCAL_TIME,
    QUOTIENT,
    STRING,
    UTC_TIME,
    VALUE_CLASSES,
    can_scale,
    type_of_id,
    value_class_of,
    value_of_id,
    value_to_decimal,
    value_to_double,
    value_to_instant,
    value_to_single,
)
from headwater.terms.ids.inline_layout import (
    DOUBLE_SIGN,
    INSTANT_DIGIT_BITS,
    NO_TERM,
    OFFSET_DIGIT_BITS,
    SCALE_BITS,
    SCALE_MASK,
    SCALED_TYPES,
    SCIENTIFIC_TYPES,
    TENS,
    ZONE_BITS,
    InlineType,
    inline_id,
)

Truths = npt.NDArray[np.uint8]

FALSE, ERROR, TRUE, UNDECIDED = 0, 1, 2, 3

OUTCOMES = {"<": 0b001, "=": 0b010, ">": 0b100, "!=": 0b101, "<=": 0b011, ">=": 0b110}
"""For each operator the outcomes that make it true: bit 0 less, bit 1 equal, bit 2 greater."""

CELLS_PER_TYPE = 1 << SCALE_BITS
CELLS = 32 * CELLS_PER_TYPE

_WITH_SCALE = SCALED_TYPES | SCIENTIFIC_TYPES
_SHIFTS: dict[int, int] = {
    **dict.fromkeys(_WITH_SCALE, SCALE_BITS),
    InlineType.DATE_TIME: INSTANT_DIGIT_BITS,
    InlineType.DATE_TIME_UTC: INSTANT_DIGIT_BITS,
    InlineType.DATE_TIME_OFFSET: ZONE_BITS + OFFSET_DIGIT_BITS,
}
_SHIFT = np.array([_SHIFTS.get(t, 0) for t in range(32)], dtype=np.int64)
_CELL_MASK = np.array([SCALE_MASK if t in _WITH_SCALE else 0 for t in range(32)], dtype=np.int64)

_UNBOUND = np.int64(NO_TERM)
_DOUBLES_APART, _SINGLES_APART = 2.0**-40, 2.0**-20
"""Two numbers that differ by more than this share of them differ after rounding, too: to doubles and to floats."""


@compiled
def _sign(a, b):  # type: ignore[no-untyped-def]
    return 0 if a < b else (1 if a == b else 2)


@compiled
def _outcome(left, right):  # type: ignore[no-untyped-def]
    """0 less, 1 equal, 2 greater; 3 if ids do not decide."""
    if left >= 0 or right >= 0:
        return 3
    a, b = value_class_of(left), value_class_of(right)
    x, y = value_of_id(left), value_of_id(right)
    if a == INTEGER and b == INTEGER:
        return _sign(x, y)
    if a == 0 or b == 0:
        return 3
    if a <= DOUBLE_BITS and b <= DOUBLE_BITS:
        if a >= DOUBLE or b >= DOUBLE:
            return _sign(value_to_double(a, x), value_to_double(b, y))
        m, s = value_to_decimal(a, x)
        n, t = value_to_decimal(b, y)
        if s < t:
            if not can_scale(m, t - s):
                return 3
            m *= TENS[t - s]
        elif t < s:
            if not can_scale(n, s - t):
                return 3
            n *= TENS[s - t]
        return _sign(m, n)
    if a <= FLOAT_SCIENTIFIC and b <= FLOAT_SCIENTIFIC:
        if a >= DOUBLE and b >= DOUBLE:
            return _sign(value_to_double(a, x), value_to_double(b, y))
        return _sign_of_singles(value_to_single(a, x), value_to_single(b, y))
    if a <= QUOTIENT and b <= QUOTIENT:
        return _sign_if_apart(a, x, b, y)
    if (a == STRING and b == STRING) or (a == LOCAL_TIME and b == LOCAL_TIME):
        shift = 0 if a == STRING else INSTANT_DIGIT_BITS
        return _sign(x >> shift, y >> shift)
    if a >= UTC_TIME and b >= UTC_TIME:
        return _sign(value_to_instant(a, x), value_to_instant(b, y))
    return 3


@compiled
def _sign_of_singles(a, b):  # type: ignore[no-untyped-def]
    return 3 if np.isnan(a) or np.isnan(b) else _sign(a, b)


@compiled
def _sign_if_apart(a, x, b, y):  # type: ignore[no-untyped-def]
    """The outcome for two numbers of which one is a quotient; equal quotients are equal numbers."""
    if a == b and x == y:
        return 1
    p, q = value_to_double(a, x), value_to_double(b, y)
    distance = _SINGLES_APART if FLOAT in (a, b) or FLOAT_SCIENTIFIC in (a, b) else _DOUBLES_APART
    return _sign(p, q) if abs(p - q) > distance * max(abs(p), abs(q)) else 3


@compiled
def _is_member(members, term_id):  # type: ignore[no-untyped-def]
    """Whether an id is in `members`, a hash table with open addressing; negative slots are free."""
    mask = members.shape[0] - 1
    slot = term_id & mask
    while members[slot] >= 0:
        if members[slot] == term_id:
            return True
        slot = (slot + 1) & mask
    return False


@compiled
def insert_ids(members, term_ids):  # type: ignore[no-untyped-def]
    """Insert hashed ids into an open-addressing table that has room for them; -1 marks a free slot."""
    mask = members.shape[0] - 1
    for term_id in term_ids:
        slot = term_id & mask
        while members[slot] >= 0:
            slot = (slot + 1) & mask
        members[slot] = term_id


@compiled
def compare(left, left_column, left_step, right, right_column, right_step, outcomes, resources, truths):  # type: ignore[no-untyped-def]
    """Compare two operands row by row; gives the number of undecided rows. A step of 0 repeats the first row.

    `resources` holds ids of IRIs and blank nodes, which equal nothing but themselves.
    """
    undecided = 0
    is_equality = outcomes in (0b010, 0b101)
    for i in range(truths.shape[0]):
        a = left[i * left_step, left_column]
        b = right[i * right_step, right_column]
        if a == _UNBOUND or b == _UNBOUND:
            truths[i] = ERROR
            continue
        outcome = _outcome(a, b)
        if (
            outcome == 3
            and is_equality
            and ((a >= 0 and _is_member(resources, a)) or (b >= 0 and _is_member(resources, b)))
        ):
            outcome = 1 if a == b else 0
        if outcome == 3:
            truths[i] = UNDECIDED
            undecided += 1
        else:
            truths[i] = TRUE if (outcomes >> outcome) & 1 else FALSE
    return undecided


@compiled
def compare_with_table(rows, column, lowest, highest, inside, outside, truths):  # type: ignore[no-untyped-def]
    """Compare a column with a constant, by its intervals for each type and scale (`comparison_tables`)."""
    undecided = 0
    for i in range(truths.shape[0]):
        term_id = rows[i, column]
        if term_id == _UNBOUND:
            truths[i] = ERROR
            continue
        if term_id >= 0:
            truths[i] = UNDECIDED
            undecided += 1
            continue
        kind = type_of_id(term_id)
        value = value_of_id(term_id)
        cell = kind << SCALE_BITS | (value & _CELL_MASK[kind])
        value >>= _SHIFT[kind]
        if VALUE_CLASSES[kind] == DOUBLE_BITS and value & DOUBLE_SIGN:
            value = np.int64(-1) - (value & (DOUBLE_SIGN - 1))
        truth = inside[cell] if lowest[cell] <= value <= highest[cell] else outside[cell]
        truths[i] = truth
        undecided += truth == UNDECIDED
    return undecided


@compiled
def compare_terms(left, left_column, left_step, right, right_column, right_step, truth_if_same, otherwise, truths):  # type: ignore[no-untyped-def]
    """Write `truth_if_same` where two operands are the same term."""
    for i in range(truths.shape[0]):
        a = left[i * left_step, left_column]
        b = right[i * right_step, right_column]
        if a == _UNBOUND or b == _UNBOUND:
            truths[i] = ERROR
        else:
            truths[i] = truth_if_same if a == b else otherwise


def empty_truths(size: int) -> Truths:
    return np.empty(size, dtype=np.uint8)


def truths_as_ids(truths: Truths) -> Ints:
    """Truths as ids of booleans, `UNBOUND` for an error."""
    return _BOOLEAN_IDS[truths]


FALSE_ID = inline_id(InlineType.BOOLEAN, 0)
TRUE_ID = FALSE_ID + 1
_BOOLEAN_IDS: Ints = np.array([FALSE_ID, NO_TERM, TRUE_ID], dtype=np.int64)
