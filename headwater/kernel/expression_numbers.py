"""Comparison and arithmetic on ids, for values that are inside their id (`headwater.terms.inline_layout`).

Truth has three values whose order is that of SPARQL's logic (section 17.2): FALSE < ERROR < TRUE, so that `&&` is the
minimum, `||` the maximum and `!` a reflection. A fourth, UNDECIDED, is for rows that only the general way can answer;
it never leaves the kernel's expressions.

Numbers follow the promotions of the general way: integer, then decimal, then float, then double. A comparison is
decided here only where converting both sides is exact or correctly rounded; everything else is left undecided:

- integer and decimal are compared exactly, either with a double as doubles;
- float is compared with float and double only;
- an arithmetic result must be an inline id again. For a double this needs its shortest decimal text: the smallest
  number of decimals s with round(x · 10^s) / 10^s = x, which is unique while x · 10^s stays below 2^52.
"""

from __future__ import annotations

import math

import numba as nb
import numpy as np
import numpy.typing as npt

from headwater.kernel.index import Ints
from headwater.terms.inline_layout import (
    FRACTION_BITS,
    INSTANT_BIAS,
    INSTANT_DIGIT_BITS,
    INTEGER_BIAS,
    LOWEST_EXPONENT,
    MANTISSA_BIAS,
    NO_TERM,
    OFFSET_DIGIT_BITS,
    OFFSET_INSTANT_BIAS,
    SCALE_BITS,
    SCALE_MASK,
    SCIENTIFIC_BIAS,
    VALUE_BITS,
    VALUE_MASK,
    ZONE_BITS,
    InlineType,
)
from headwater.terms.inline_numbers import SINGLE_MANTISSA, SINGLE_SCALE

Truths = npt.NDArray[np.uint8]

FALSE, ERROR, TRUE, UNDECIDED = 0, 1, 2, 3
NO_ID = -1
"""In place of an id: not computed here. No id of a term, because no inline type has this number."""

OUTCOMES = {"<": 0b001, "=": 0b010, ">": 0b100, "!=": 0b101, "<=": 0b011, ">=": 0b110}
"""For each operator the outcomes that make it true: bit 0 less, bit 1 equal, bit 2 greater."""

ARITHMETIC = {"+": 0, "-": 1, "*": 2, "/": 3, "unary -": 4}

CELLS_PER_TYPE = 1 << SCALE_BITS
CELLS = 32 * CELLS_PER_TYPE

_INTEGER, _DECIMAL, _DOUBLE, _DOUBLE_SCIENTIFIC, _DOUBLE_BITS, _FLOAT, _FLOAT_SCIENTIFIC = range(1, 8)
_STRING, _LOCAL_TIME, _UTC_TIME, _OFFSET_TIME = range(8, 12)

_FAMILIES = {
    InlineType.INTEGER: _INTEGER,
    InlineType.INT: _INTEGER,
    InlineType.LONG: _INTEGER,
    InlineType.DECIMAL: _DECIMAL,
    InlineType.DOUBLE: _DOUBLE,
    InlineType.DOUBLE_SCIENTIFIC: _DOUBLE_SCIENTIFIC,
    InlineType.DOUBLE_BITS: _DOUBLE_BITS,
    InlineType.DOUBLE_BITS_SCIENTIFIC: _DOUBLE_BITS,
    InlineType.FLOAT: _FLOAT,
    InlineType.FLOAT_SCIENTIFIC: _FLOAT_SCIENTIFIC,
    InlineType.STRING: _STRING,
    InlineType.DATE_TIME: _LOCAL_TIME,
    InlineType.DATE_TIME_UTC: _UTC_TIME,
    InlineType.DATE_TIME_OFFSET: _OFFSET_TIME,
}
_FAMILY = np.array([_FAMILIES.get(InlineType(t), 0) if 0 < t <= 16 else 0 for t in range(32)], dtype=np.int64)
_TENS = np.array([10**k for k in range(19)], dtype=np.int64)
_POWERS = 10.0 ** np.arange(19)
_TWOS = 2.0 ** (np.arange(32) + LOWEST_EXPONENT - FRACTION_BITS)

_SCALED = {InlineType.DECIMAL, InlineType.DOUBLE, InlineType.FLOAT}
_TENTH = {InlineType.DOUBLE_SCIENTIFIC, InlineType.FLOAT_SCIENTIFIC}
_SHIFTS = {
    **dict.fromkeys(_SCALED | _TENTH, SCALE_BITS),
    InlineType.DATE_TIME: INSTANT_DIGIT_BITS,
    InlineType.DATE_TIME_UTC: INSTANT_DIGIT_BITS,
    InlineType.DATE_TIME_OFFSET: ZONE_BITS + OFFSET_DIGIT_BITS,
}
_SHIFT = np.array([_SHIFTS.get(InlineType(t), 0) if 0 < t <= 16 else 0 for t in range(32)], dtype=np.int64)
_CELL_MASK = np.array([SCALE_MASK if t in _SCALED | _TENTH else 0 for t in range(32)], dtype=np.int64)

_FRACTION = np.int64(1) << np.int64(FRACTION_BITS)
_LARGEST_MANTISSA = float(MANTISSA_BIAS)
_LARGEST_SINGLE_MANTISSA = float(SINGLE_MANTISSA)
_CERTAIN = 2.0**50
_FEW_BITS = 2.0**24
_LARGEST_PRODUCT = 2.0**56
_DECIMAL_TYPE = np.int64(NO_TERM + (InlineType.DECIMAL << VALUE_BITS))
_INTEGER_TYPE = np.int64(NO_TERM + (InlineType.INTEGER << VALUE_BITS))
_FLOAT_TYPE = np.int64(NO_TERM + (InlineType.FLOAT << VALUE_BITS))
_DOUBLE_TYPE = np.int64(NO_TERM + (InlineType.DOUBLE << VALUE_BITS))
_BITS_TYPE = np.int64(NO_TERM + (InlineType.DOUBLE_BITS << VALUE_BITS))
_NEVER = np.int64(NO_TERM)
_UNKNOWN = np.int64(NO_ID)
_PLACES = SCIENTIFIC_BIAS


@nb.njit(cache=True)
def _family(number):  # type: ignore[no-untyped-def]
    return _FAMILY[(number >> VALUE_BITS) & 31]


@nb.njit(cache=True)
def _double(family, value):  # type: ignore[no-untyped-def]
    """The number as a double, correctly rounded."""
    if family == _INTEGER:
        return np.float64(value - INTEGER_BIAS)
    if family == _DOUBLE_BITS:
        size = np.float64(_FRACTION | (value & (_FRACTION - 1))) * _TWOS[(value >> FRACTION_BITS) & 31]
        return -size if value >> 57 else size
    mantissa = np.float64((value >> SCALE_BITS) - MANTISSA_BIAS)
    scale = value & SCALE_MASK
    if family in (_DOUBLE_SCIENTIFIC, _FLOAT_SCIENTIFIC):
        number = mantissa * _POWERS[scale - _PLACES] if scale >= _PLACES else mantissa / _POWERS[_PLACES - scale]
    else:
        number = mantissa / _POWERS[scale]
    if family >= _FLOAT:
        return np.float64(np.float32(number))
    return number


@nb.njit(cache=True)
def double_of(kind, value):  # type: ignore[no-untyped-def]
    """The nearest double of the number that an inline type of numbers and its value mean."""
    return _double(_FAMILY[kind], value)


@nb.njit(cache=True)
def _sign(a, b):  # type: ignore[no-untyped-def]
    return 0 if a < b else (1 if a == b else 2)


@nb.njit(cache=True)
def _outcome(left, right):  # type: ignore[no-untyped-def]
    """0 less, 1 equal, 2 greater; 3 where ids do not tell."""
    if left >= 0 or right >= 0:
        return 3
    a, b = _family(left), _family(right)
    x, y = left & VALUE_MASK, right & VALUE_MASK
    if a == _INTEGER and b == _INTEGER:
        return _sign(x, y)
    if a == 0 or b == 0:
        return 3
    if a <= _DOUBLE_BITS and b <= _DOUBLE_BITS:
        if a >= _DOUBLE or b >= _DOUBLE:
            return _sign(_double(a, x), _double(b, y))
        m, s = _exact(a, x)
        n, t = _exact(b, y)
        if s < t:
            if not _fits(m, t - s):
                return 3
            m *= _TENS[t - s]
        elif t < s:
            if not _fits(n, s - t):
                return 3
            n *= _TENS[s - t]
        return _sign(m, n)
    if _DOUBLE <= a <= _FLOAT_SCIENTIFIC and _DOUBLE <= b <= _FLOAT_SCIENTIFIC:
        return _sign(_double(a, x), _double(b, y))
    if (a == _STRING and b == _STRING) or (a == _LOCAL_TIME and b == _LOCAL_TIME):
        shift = 0 if a == _STRING else INSTANT_DIGIT_BITS
        return _sign(x >> shift, y >> shift)
    if a >= _UTC_TIME and b >= _UTC_TIME:
        return _sign(_instant(a, x), _instant(b, y))
    return 3


@nb.njit(cache=True)
def _instant(family, value):  # type: ignore[no-untyped-def]
    if family == _UTC_TIME:
        return (value >> INSTANT_DIGIT_BITS) - INSTANT_BIAS
    return ((value >> (ZONE_BITS + OFFSET_DIGIT_BITS)) - OFFSET_INSTANT_BIAS) * 1_000


@nb.njit(cache=True)
def _exact(family, value):  # type: ignore[no-untyped-def]
    """Mantissa and scale of an integer or decimal."""
    if family == _INTEGER:
        return value - INTEGER_BIAS, np.int64(0)
    return (value >> SCALE_BITS) - MANTISSA_BIAS, value & SCALE_MASK


@nb.njit(cache=True)
def _fits(mantissa, places):  # type: ignore[no-untyped-def]
    return abs(np.float64(mantissa)) * _POWERS[places] < 2.0**62


@nb.njit(cache=True)
def _is_member(members, number):  # type: ignore[no-untyped-def]
    mask = members.shape[0] - 1
    slot = number & mask
    while members[slot] >= 0:
        if members[slot] == number:
            return True
        slot = (slot + 1) & mask
    return False


@nb.njit(cache=True)
def enter(members, numbers):  # type: ignore[no-untyped-def]
    """Put hashed ids into an open-addressing table that has room for them; -1 marks a free slot."""
    mask = members.shape[0] - 1
    for number in numbers:
        slot = number & mask
        while members[slot] >= 0:
            slot = (slot + 1) & mask
        members[slot] = number


@nb.njit(cache=True)
def compare(left, left_column, left_step, right, right_column, right_step, outcomes, resources, truths):  # type: ignore[no-untyped-def]
    """Compare two operands row by row; gives how many rows stay undecided. A step of 0 repeats the first row.

    `resources` holds ids of IRIs and blank nodes, which equal nothing but themselves.
    """
    undecided = 0
    is_equality = outcomes in (0b010, 0b101)
    for i in range(truths.shape[0]):
        a = left[i * left_step, left_column]
        b = right[i * right_step, right_column]
        if a == _NEVER or b == _NEVER:
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


@nb.njit(cache=True)
def compare_with_table(rows, column, lowest, highest, inside, outside, truths):  # type: ignore[no-untyped-def]
    """Compare a column with a constant of which `comparison_tables` knows, per type and scale, where it stands."""
    undecided = 0
    for i in range(truths.shape[0]):
        number = rows[i, column]
        if number == _NEVER:
            truths[i] = ERROR
            continue
        if number >= 0:
            truths[i] = UNDECIDED
            undecided += 1
            continue
        kind = (number >> VALUE_BITS) & 31
        value = number & VALUE_MASK
        cell = kind << SCALE_BITS | (value & _CELL_MASK[kind])
        value >>= _SHIFT[kind]
        if _FAMILY[kind] == _DOUBLE_BITS and value >> 57:
            value = np.int64(-1) - (value & ((np.int64(1) << 57) - 1))
        truth = inside[cell] if lowest[cell] <= value <= highest[cell] else outside[cell]
        truths[i] = truth
        undecided += truth == UNDECIDED
    return undecided


@nb.njit(cache=True)
def same(left, left_column, left_step, right, right_column, right_step, if_same, otherwise, truths):  # type: ignore[no-untyped-def]
    """Whether two operands are the same term."""
    for i in range(truths.shape[0]):
        a = left[i * left_step, left_column]
        b = right[i * right_step, right_column]
        if a == _NEVER or b == _NEVER:
            truths[i] = ERROR
        else:
            truths[i] = if_same if a == b else otherwise


@nb.njit(cache=True)
def decimal_id(mantissa, scale):  # type: ignore[no-untyped-def]
    while scale > 0 and mantissa % 10 == 0:
        mantissa //= 10
        scale -= 1
    if scale > SCALE_MASK or not -MANTISSA_BIAS <= mantissa < MANTISSA_BIAS:
        return _UNKNOWN
    return _DECIMAL_TYPE + ((mantissa + MANTISSA_BIAS) << SCALE_BITS | scale)


@nb.njit(cache=True)
def double_id(number):  # type: ignore[no-untyped-def]
    """The id of a double as the general way would write it: by its shortest digits, else by its bits."""
    size = abs(number)
    if number == 0.0 or not size < _LARGEST_MANTISSA:
        # Zero may have a sign, which shows in its text; infinities and NaN are not inline.
        return _UNKNOWN
    for scale in range(SCALE_MASK + 1):
        scaled = size * _POWERS[scale]
        if scaled > _LARGEST_MANTISSA + 4.0:
            break
        nearest = np.int64(np.rint(scaled))
        reach = 0 if scaled < _CERTAIN else 2
        found = np.int64(-1)
        for mantissa in range(nearest - reach, nearest + reach + 1):
            if np.float64(mantissa) / _POWERS[scale] == size:
                if found >= 0 or mantissa >= MANTISSA_BIAS:
                    return _UNKNOWN
                found = np.int64(mantissa)
        if found >= 0:
            signed = -found if number < 0 else found
            return _DOUBLE_TYPE + ((signed + MANTISSA_BIAS) << SCALE_BITS | scale)
    if not _TWOS[0] * _FRACTION <= size < _TWOS[31] * _FRACTION * 2.0:
        return _UNKNOWN
    if size * _FEW_BITS == np.floor(size * _FEW_BITS):
        # It may lie in the middle between two shortest texts, of which there is no telling which one is written.
        return _UNKNOWN
    exponent = 0
    while _TWOS[exponent] * _FRACTION * 2.0 <= size:
        exponent += 1
    fraction = np.int64(size / _TWOS[exponent]) - _FRACTION
    bits = np.int64(exponent) << FRACTION_BITS | fraction
    if number < 0:
        bits |= np.int64(1) << 57
    return _BITS_TYPE + bits


@nb.njit(cache=True)
def float_id(number):  # type: ignore[no-untyped-def]
    """The id of a float as the general way would write it, if its shortest digits fit into one; and whether that is
    sure.

    A float times a power of ten up to 10^10 is exact as a double, and so are the comparisons.
    """
    size = abs(np.float64(number))
    if not 0.0 < size <= _LARGEST_SINGLE_MANTISSA:
        return _UNKNOWN, False
    mantissa, _ = math.frexp(size)
    if mantissa == 0.5:
        # Below a power of two floats are closer than above, and the shortest digits need not be the nearest ones.
        return _UNKNOWN, False
    for scale in range(SINGLE_SCALE + 1):
        scaled = size * _POWERS[scale]
        nearest = np.rint(scaled)
        if nearest > _LARGEST_SINGLE_MANTISSA:
            break
        if np.float64(np.float32(nearest / _POWERS[scale])) == size:
            if abs(scaled - nearest) == 0.5:
                return _UNKNOWN, False
            signed = np.int64(-nearest if number < 0 else nearest)
            return _FLOAT_TYPE + ((signed + MANTISSA_BIAS) << SCALE_BITS | scale), True
    return _UNKNOWN, True


@nb.njit(cache=True)
def _result(operation, left, right):  # type: ignore[no-untyped-def]
    if left >= 0 or right >= 0:
        return _UNKNOWN
    a, b = _family(left), _family(right)
    if not (_INTEGER <= a <= _DOUBLE_BITS and _INTEGER <= b <= _DOUBLE_BITS):
        return _UNKNOWN
    x, y = left & VALUE_MASK, right & VALUE_MASK
    if a >= _DOUBLE or b >= _DOUBLE:
        p, q = _double(a, x), _double(b, y)
        if operation == 0:
            return double_id(p + q)
        if operation == 1:
            return double_id(p - q)
        if operation == 2:
            return double_id(p * q)
        if operation == 4:
            return double_id(-p)
        return _UNKNOWN if q == 0.0 else double_id(p / q)
    if operation == 3:
        return _UNKNOWN
    m, s = _exact(a, x)
    n, t = _exact(b, y)
    if operation == 2:
        if abs(np.float64(m) * np.float64(n)) > _LARGEST_PRODUCT or s + t > 18:
            return _UNKNOWN
        m, s = m * n, s + t
    elif operation == 4:
        m = -m
    else:
        if s < t:
            if not _fits(m, t - s):
                return _UNKNOWN
            m, s = m * _TENS[t - s], t
        elif t < s:
            if not _fits(n, s - t):
                return _UNKNOWN
            n = n * _TENS[s - t]
        m = m + n if operation == 0 else m - n
    if a == _INTEGER and b == _INTEGER:
        if not -INTEGER_BIAS <= m < INTEGER_BIAS:
            return _UNKNOWN
        return _INTEGER_TYPE + (m + INTEGER_BIAS)
    return decimal_id(m, s)


@nb.njit(cache=True)
def calculate(operation, left, left_column, left_step, right, right_column, right_step, ids):  # type: ignore[no-untyped-def]
    """The ids of the results, `NO_ID` where they are not computed here; gives how many those are."""
    unknown = 0
    for i in range(ids.shape[0]):
        a = left[i * left_step, left_column]
        b = right[i * right_step, right_column]
        if a == _NEVER or b == _NEVER:
            ids[i] = _NEVER
            continue
        ids[i] = _result(operation, a, b)
        unknown += ids[i] == _UNKNOWN
    return unknown


def no_truths(size: int) -> Truths:
    return np.empty(size, dtype=np.uint8)


def truths_as_ids(truths: Truths) -> Ints:
    """Booleans as ids, unbound for an error."""
    return _BOOLEAN_IDS[truths]


FALSE_ID = NO_TERM + (InlineType.BOOLEAN << VALUE_BITS)
TRUE_ID = FALSE_ID + 1
_BOOLEAN_IDS: Ints = np.array([FALSE_ID, NO_TERM, TRUE_ID], dtype=np.int64)
