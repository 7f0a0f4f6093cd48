"""Numbers as SPARQL knows them, exactly: what a literal is worth, sums without rounding, and the text of results.

There are four kinds, each promoted to the next (SPARQL 1.1, section 17.3): integer, decimal, float, double. Their range
is that of pyoxigraph: integers of 64 bits, decimals of 128 bits with 18 digits after the point. A literal outside it,
or one that is ill-typed, is no number.

A sum is kept as two whole numbers, so that nothing is lost and everything can be taken away again:

    sum  =  decimal / 10^18  +  binary / 2^1074

and rounded once, when its value is asked for, to the highest kind among its numbers. A sum that has to travel (from a
shard to where all shards meet) is a literal of a type of its own, from which the very same sum is made again:

    0.5 + 2e0   →   "500000000000000000 1@1075 0,1,0,1 0,0,0"^^<urn:headwater:sum>
"""

from __future__ import annotations

import math
import re
import struct
from dataclasses import dataclass, field
from enum import IntEnum
from fractions import Fraction

import numpy as np

from headwater.terms.model import XSD, Literal, NamedNode, Term

DECIMAL_DIGITS = 18
DECIMAL_UNIT = 10**DECIMAL_DIGITS
BINARY_BITS = 1074
"""Every double is a whole multiple of 2^-1074."""
_BINARY_UNIT = 1 << BINARY_BITS
_LONG = 1 << 63
_LONG_DECIMAL = 1 << 127
_MOST_ZEROS = 2 * BINARY_BITS

_INTEGER = re.compile(r"[+-]?[0-9]+")
_DECIMAL = re.compile(r"([+-]?)([0-9]*)(?:\.([0-9]*))?")
_SUM = NamedNode("urn:headwater:sum")
_SUM_TEXT = re.compile(r"(-?\d+) (-?\d+)@(\d+) (\d+),(\d+),(\d+),(\d+) (\d+),(\d+),(\d+)", re.ASCII)
_FLOATING = re.compile(r"[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|(?i:inf|infinity|nan))")


class NumericKind(IntEnum):
    """The numeric types, in the order of their promotion."""

    INTEGER = 0
    DECIMAL = 1
    FLOAT = 2
    DOUBLE = 3


_INTEGERS = (
    "integer long int short byte nonNegativeInteger positiveInteger nonPositiveInteger negativeInteger "
    "unsignedLong unsignedInt unsignedShort unsignedByte"
)
_KINDS = {
    **{XSD + name: NumericKind.INTEGER for name in _INTEGERS.split()},
    XSD + "decimal": NumericKind.DECIMAL,
    XSD + "float": NumericKind.FLOAT,
    XSD + "double": NumericKind.DOUBLE,
}
_DATATYPES = {kind: NamedNode(XSD + kind.name.lower()) for kind in NumericKind}


@dataclass(frozen=True, slots=True)
class Number:
    """A number: `exact` in units of 10^-18 for integers and decimals, `floating` for floats and doubles."""

    kind: NumericKind
    exact: int = 0
    floating: float = 0.0

    @property
    def value(self) -> Fraction | float:
        """The number itself, to be compared with others."""
        return self.floating if self.kind >= NumericKind.FLOAT else Fraction(self.exact, DECIMAL_UNIT)


def number_of(term: Term) -> Number | None:
    """What a term is worth; None where it is no number."""
    if not isinstance(term, Literal):
        return None
    kind = _KINDS.get(term.datatype.value)
    if kind is None:
        return None
    if kind is NumericKind.INTEGER:
        return _parse_integer(term.value)
    if kind is NumericKind.DECIMAL:
        return _parse_decimal(term.value)
    if _FLOATING.fullmatch(term.value) is None:
        return None
    number = float(term.value)
    return Number(kind, floating=_parse_single(term.value, number) if kind is NumericKind.FLOAT else number)


def _parse_single(text: str, number: float) -> float:
    """The float of 32 bits that a text stands for, of which the double is known."""
    if not math.isfinite(number):
        return number
    # Below this it is zero, and the power of ten might be too large to work with.
    return as_single(Fraction(text)) if abs(number) > 1e-60 else math.copysign(0.0, number)


def _parse_integer(text: str) -> Number | None:
    if _INTEGER.fullmatch(text) is None or len(text) > 4000:
        return None
    value = int(text)
    return Number(NumericKind.INTEGER, exact=value * DECIMAL_UNIT) if -_LONG <= value < _LONG else None


def _parse_decimal(text: str) -> Number | None:
    match = _DECIMAL.fullmatch(text)
    if match is None or len(text) > 4000:
        return None
    sign, whole, fraction = match.groups(default="")
    fraction = fraction.rstrip("0")
    if not re.search("[0-9]", text) or len(fraction) > DECIMAL_DIGITS:
        return None
    exact = int(sign + (whole or "0") + fraction.ljust(DECIMAL_DIGITS, "0"))
    return Number(NumericKind.DECIMAL, exact=exact) if -_LONG_DECIMAL <= exact < _LONG_DECIMAL else None


def as_double(exact: Fraction) -> float:
    """The nearest double, ties to even; infinite beyond the largest."""
    return _nearest_double(exact.numerator, exact.denominator)


def _nearest_double(numerator: int, denominator: int) -> float:
    try:
        return numerator / denominator
    except OverflowError:
        return math.inf if numerator > 0 else -math.inf


def as_single(exact: Fraction) -> float:
    """The nearest float of 32 bits, ties to even; infinite beyond the largest."""
    return _nearest_single(exact.numerator, exact.denominator)


def _nearest_single(numerator: int, denominator: int) -> float:
    near = _nearest_double(numerator, denominator)
    if math.isfinite(near) and not _last_bit(near):
        # Rounding twice goes wrong only from a tie; an odd last bit says on which side of it the number was.
        above, below = near.as_integer_ratio()
        wanted, rounded = numerator * below, above * denominator
        if wanted != rounded:
            near = math.nextafter(near, math.inf if wanted > rounded else -math.inf)
    return _to_single(near)


def _to_single(number: float) -> float:
    """The nearest float of 32 bits to a double, or to a count."""
    try:
        single: float = struct.unpack("<f", struct.pack("<f", number))[0]
    except OverflowError:
        return math.copysign(math.inf, number)
    return single


def _last_bit(number: float) -> int:
    bits: int = struct.unpack("<Q", struct.pack("<d", number))[0]
    return bits & 1


def binary_units(number: float) -> int:
    """A finite double in units of 2^-1074."""
    numerator, denominator = number.as_integer_ratio()
    return numerator << (BINARY_BITS + 1 - denominator.bit_length())


@dataclass(slots=True)
class ExactSum:
    """The sum of a multiset of numbers, from which numbers can be taken away again as if they had never been there."""

    decimal: int = 0
    binary: int = 0
    counts: list[int] = field(default_factory=lambda: [0, 0, 0, 0])
    """How many numbers there are of each kind."""
    nans: int = 0
    infinities: int = 0
    negative_infinities: int = 0

    def add(self, number: Number, times: int = 1) -> None:
        """Add a number so many times; a negative number of times takes it away."""
        self.counts[number.kind] += times
        floating = number.floating
        if number.kind < NumericKind.FLOAT:
            self.decimal += number.exact * times
        elif math.isfinite(floating):
            self.binary += binary_units(floating) * times
        elif math.isnan(floating):
            self.nans += times
        elif floating > 0:
            self.infinities += times
        else:
            self.negative_infinities += times

    def add_sum(self, other: ExactSum, times: int = 1) -> None:
        """Add all that another sum is made of so many times; a negative number of times takes it away."""
        self.counts = [mine + yours * times for mine, yours in zip(self.counts, other.counts, strict=True)]
        self.decimal += other.decimal * times
        self.binary += other.binary * times
        self.nans += other.nans * times
        self.infinities += other.infinities * times
        self.negative_infinities += other.negative_infinities * times

    def add_value(self, term: Term, times: int = 1) -> bool:
        """Add what a term is worth, a number or a sum that travelled; false where it is neither."""
        number = number_of(term)
        if number is not None:
            self.add(number, times)
            return True
        other = ExactSum.of_literal(term)
        if other is not None:
            self.add_sum(other, times)
        return other is not None

    def to_literal(self) -> Literal:
        """All of the sum in a literal."""
        zeros = max((self.binary & -self.binary).bit_length() - 1, 0)
        binary = f"{self.binary >> zeros}@{zeros}"
        counts = ",".join(map(str, self.counts))
        special = f"{self.nans},{self.infinities},{self.negative_infinities}"
        return Literal(f"{self.decimal} {binary} {counts} {special}", datatype=_SUM)

    @classmethod
    def of_literal(cls, term: Term) -> ExactSum | None:
        """The sum that such a literal holds; None for any other term."""
        if not isinstance(term, Literal) or term.datatype != _SUM:
            return None
        match = _SUM_TEXT.fullmatch(term.value) if len(term.value) < 4000 else None
        if match is None:
            return None
        decimal, binary, zeros, *counts = map(int, match.groups())
        return cls(decimal, binary << zeros, counts[:4], *counts[4:]) if zeros <= _MOST_ZEROS else None

    @property
    def count(self) -> int:
        return sum(self.counts)

    @property
    def kind(self) -> NumericKind:
        """The kind of the sum: the highest of its numbers, integer where there are none."""
        _, decimals, floats, doubles = self.counts
        if doubles:
            return NumericKind.DOUBLE
        if floats:
            return NumericKind.FLOAT
        return NumericKind.DECIMAL if decimals else NumericKind.INTEGER

    def sum(self) -> Literal | None:
        """SUM: rounded once, in floats and doubles; an error where integers or decimals overflow."""
        kind = self.kind
        if kind >= NumericKind.FLOAT:
            return floating_literal(kind, self._floating(kind))
        if kind is NumericKind.INTEGER:
            whole = self.decimal // DECIMAL_UNIT
            return integer_literal(whole) if -_LONG <= whole < _LONG else None
        return decimal_literal(self.decimal)

    def average(self) -> Literal | None:
        """AVG: the sum divided by the count, with one more rounding; decimals are cut after 18 digits."""
        count, kind = self.count, self.kind
        if not count:
            return integer_literal(0)
        if kind >= NumericKind.FLOAT:
            return floating_literal(kind, _quotient(kind, self._floating(kind), count))
        if kind is NumericKind.INTEGER and not -_LONG <= self.decimal // DECIMAL_UNIT < _LONG:
            return None
        if not -_LONG_DECIMAL <= self.decimal < _LONG_DECIMAL:
            return None
        cut = abs(self.decimal) // count
        return decimal_literal(-cut if self.decimal < 0 else cut)

    def _floating(self, kind: NumericKind) -> float:
        if self.nans or (self.infinities and self.negative_infinities):
            return math.nan
        if self.infinities or self.negative_infinities:
            return math.inf if self.infinities else -math.inf
        if not self.decimal:
            return (_nearest_single if kind is NumericKind.FLOAT else _nearest_double)(self.binary, _BINARY_UNIT)
        exact = Fraction(self.decimal, DECIMAL_UNIT) + Fraction(self.binary, _BINARY_UNIT)
        return as_single(exact) if kind is NumericKind.FLOAT else as_double(exact)


def _quotient(kind: NumericKind, total: float, count: int) -> float:
    if kind is NumericKind.DOUBLE:
        return total / count
    # The quotient of two floats of 32 bits may be rounded to 64 bits first: 53 digits are more than twice 24.
    return _to_single(total / _to_single(count))


def integer_literal(value: int) -> Literal:
    return Literal(str(value), datatype=_DATATYPES[NumericKind.INTEGER])


def decimal_literal(exact: int) -> Literal | None:
    """A decimal given in units of 10^-18; None where it has too many digits."""
    if not -_LONG_DECIMAL <= exact < _LONG_DECIMAL:
        return None
    whole, fraction = divmod(abs(exact), DECIMAL_UNIT)
    digits = f"{fraction:018d}".rstrip("0")
    text = f"{'-' if exact < 0 else ''}{whole}{'.' if digits else ''}{digits}"
    return Literal(text, datatype=_DATATYPES[NumericKind.DECIMAL])


def floating_literal(kind: NumericKind, value: float) -> Literal:
    """A float or double with the fewest digits that give it back, never in scientific notation."""
    return Literal(_floating_text(kind, value), datatype=_DATATYPES[kind])


def _floating_text(kind: NumericKind, value: float) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "INF" if value > 0 else "-INF"
    if kind is NumericKind.DOUBLE and 1e-4 <= abs(value) < 1e16:
        return repr(value).removesuffix(".0")
    return np.format_float_positional(np.float32(value) if kind is NumericKind.FLOAT else value, trim="-")
