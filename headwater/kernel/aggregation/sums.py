"""Sums per group that forget: whatever is added can be taken away again, and nothing is ever rounded on the way.

Numbers that are inside their ids are added up in compiled code (`sum_digits`). All others (the `rest`) are found
through the vocabulary and kept as Python's integers. Where the result fits into an id it is written in compiled code,
too (`sum_results`). The value is that of `headwater.values.numeric`, hence the same for every history.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from headwater.kernel.aggregation.sum_digits import (
    BINARY,
    BINARY_DIGITS,
    BINARY_SCALE,
    ERRORS,
    FRACTION,
    FRACTION_DIGITS,
    KINDS,
    WHOLE,
    WIDTH,
    add_numbers,
)
from headwater.kernel.aggregation.sum_results import averages_of, sums_of
from headwater.kernel.columns.delta import UNBOUND
from headwater.kernel.columns.relation import NOTHING
from headwater.kernel.columns.ring_index import Ints
from headwater.kernel.columns.row_numbers import enlarged
from headwater.kernel.columns.vocabulary import Vocabulary
from headwater.terms.ids.inline_layout import NO_ID
from headwater.terms.model import Literal
from headwater.values.numeric import BINARY_BITS, DECIMAL_DIGITS, ExactSum

_FLOAT_TEXT = b'"%b"^^<http://www.w3.org/2001/XMLSchema#float>'
_SMALLEST_PLAIN, _LARGEST_PLAIN = np.float32(1e-3), np.float32(1e5)
_REST_BYTES = 600
"""What the numbers of a group that are kept as Python's take, about."""


class Sums:
    """The sum of the numbers of each group, and how many there are."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._table: Ints = np.zeros((0, WIDTH), dtype=np.int64)
        self._rest: dict[int, ExactSum] = {}
        self._has_rest: npt.NDArray[np.bool_] = np.zeros(0, dtype=np.bool_)
        self._magnitude: Ints = np.zeros(BINARY_DIGITS + 1, dtype=np.int64)

    def grow(self, capacity: int) -> None:
        """Make room for groups."""
        before = self._table.shape[0]
        self._table = enlarged(self._table, capacity)
        self._table[before:] = 0
        self._has_rest = np.concatenate((self._has_rest, np.zeros(capacity - before, dtype=np.bool_)))

    def change(self, groups: Ints, ids: Ints, sign: int) -> None:
        """Add values to groups, or take them away."""
        rest = np.empty(ids.shape[0], dtype=np.int64)
        left = add_numbers(self._table, groups, ids, sign, rest)
        for i in rest[:left].tolist():
            self._change_rest(int(groups[i]), int(ids[i]), sign)

    def _change_rest(self, group: int, number: int, sign: int) -> None:
        term = self._vocabulary.term_of(number)
        rest = self._rest.get(group) or ExactSum()
        if term is None or not rest.add_value(term, sign):
            self._table[group, ERRORS] += sign
            return
        self._has_rest[group] = any(rest.counts)
        if self._has_rest[group]:
            self._rest[group] = rest
        else:
            self._rest.pop(group, None)

    def sums(self, groups: Ints) -> Ints:
        """SUM of some groups."""
        found, singles = np.empty(groups.shape[0], dtype=np.int64), _no_singles(groups)
        if sums_of(self._table, groups, self._has_rest, found, singles, self._magnitude):
            self._write_singles(found, singles)
            self._complete(found, groups, ExactSum.sum)
        return found

    def averages(self, groups: Ints) -> Ints:
        """AVG of some groups."""
        found, singles = np.empty(groups.shape[0], dtype=np.int64), _no_singles(groups)
        if averages_of(self._table, groups, self._has_rest, found, singles, self._magnitude):
            self._write_singles(found, singles)
            self._complete(found, groups, ExactSum.average)
        return found

    def partial_sums(self, groups: Ints) -> Ints:
        """The exact sums of some groups, which can be added to those of other parts of the same groups."""
        found = np.full(groups.shape[0], NO_ID, dtype=np.int64)
        self._complete(found, groups, ExactSum.to_literal)
        return found

    def _write_singles(self, found: Ints, singles: npt.NDArray[np.float32]) -> None:
        """Write the floats that do not fit into ids, as far as numpy writes them without a power of ten."""
        size = np.abs(singles)
        places = np.flatnonzero((found == NO_ID) & (size >= _SMALLEST_PLAIN) & (size < _LARGEST_PLAIN))
        if places.shape[0]:
            texts = [_FLOAT_TEXT % text.removesuffix(".0").encode() for text in map(str, singles[places])]
            found[places] = self._vocabulary.ids_of_texts(texts)

    def _complete(self, found: Ints, groups: Ints, result: Callable[[ExactSum], Literal | None]) -> None:
        """Write the results that do not fit into ids, or were not found on the columns alone."""
        for i in np.flatnonzero(found == NO_ID).tolist():
            exact = self._exact(int(groups[i]))
            found[i] = UNBOUND if exact is None else self._vocabulary.id_of(result(exact))

    def _exact(self, group: int) -> ExactSum | None:
        """All parts together; None where some value is no number."""
        digits = self._table[group].tolist()
        if digits[ERRORS]:
            return None
        rest = self._rest.get(group)
        exact = ExactSum() if rest is None else replace(rest)
        exact.decimal += _joined(digits[WHOLE:FRACTION]) * 10**DECIMAL_DIGITS
        exact.decimal += digits[FRACTION] * 10 ** (DECIMAL_DIGITS - FRACTION_DIGITS)
        exact.binary += _joined(digits[BINARY:KINDS]) << (BINARY_BITS - BINARY_SCALE)
        exact.counts = [a + b for a, b in zip(exact.counts, digits[KINDS:ERRORS], strict=True)]
        return exact

    def ids(self) -> Ints:
        """Sums hold numbers, not terms."""
        return NOTHING

    @property
    def nbytes(self) -> int:
        return self._table.nbytes + self._has_rest.nbytes + _REST_BYTES * len(self._rest)


def _joined(digits: list[int]) -> int:
    """A number from its digits of 32 bits, the last of which has the sign."""
    whole = 0
    for digit in reversed(digits):
        whole = (whole << 32) + digit
    return whole


def _no_singles(groups: Ints) -> npt.NDArray[np.float32]:
    return np.full(groups.shape[0], np.nan, dtype=np.float32)
