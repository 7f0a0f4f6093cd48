"""SUM and AVG by group, exact: a value that was added can be removed again, and nothing is rounded on the way.

    + 1e30, + 1, − 1e30   →   1        (0.1 + … + 0.1, ten times)   →   1

Numbers that are inside their ids are added in compiled code (`sum_digits`); other numbers (the `rest`) are decoded and
added as Python integers. Results that fit into an id are written in compiled code, too (`sum_results`).
State: the digits of each group's sum, and how many numbers of each kind it has. The value is the one that
`headwater.values.numeric` defines, so it does not depend on the order of additions and removals.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
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
    is_rest,
)
from headwater.kernel.aggregation.sum_results import sum_in_turn, write_averages, write_sums
from headwater.kernel.columns.delta import UNBOUND, Mask
from headwater.kernel.columns.delta_run import Signs
from headwater.kernel.columns.relation import NO_ROW_IDS
from headwater.kernel.columns.ring_index import Ints
from headwater.kernel.columns.row_ids import enlarge
from headwater.kernel.columns.vocabulary import Vocabulary
from headwater.terms.ids.inline_layout import NO_ID
from headwater.terms.model import Literal
from headwater.values.numeric import BINARY_BITS, DECIMAL_DIGITS, ExactSum

_FLOAT_TEXT = b'"%b"^^<http://www.w3.org/2001/XMLSchema#float>'
_SMALLEST_PLAIN, _LARGEST_PLAIN = np.float32(1e-3), np.float32(1e5)
_REST_BYTES = 600
"""The approximate size of an `ExactSum`."""


class SumAccumulator:
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
        self._table = enlarge(self._table, capacity)
        self._table[before:] = 0
        self._has_rest = np.concatenate((self._has_rest, np.zeros(capacity - before, dtype=np.bool_)))

    def change(self, groups: Ints, ids: Ints, sign: int) -> None:
        """Add values to groups (sign 1), or remove them (sign -1)."""
        rest = np.empty(ids.shape[0], dtype=np.int64)
        rest_count = add_numbers(self._table, groups, ids, sign, rest)
        for i in rest[:rest_count].tolist():
            self._change_rest(int(groups[i]), int(ids[i]), sign)

    def can_change_in_turn(self, ids: Ints) -> bool:
        return True

    def change_in_turn(
        self, groups: Ints, ids: Ints, signs: Signs, is_end: Mask, functions: Collection[str]
    ) -> Mapping[str, Ints]:
        """Change groups, one value after the other; gives their SUM or AVG where `is_end` is set."""
        count = int(is_end.sum())
        results = {function: np.empty(count, dtype=np.int64) for function in functions}
        sums, averages = (results.get(function, NO_ROW_IDS) for function in ("SUM", "AVG"))
        singles = np.empty(count, dtype=np.float32)
        start = written = 0
        while True:
            start, written = sum_in_turn(
                self._table, groups, ids, signs, is_end, self._has_rest, start, written, sums, averages, singles,
                self._magnitude,
            )  # fmt: skip
            if start == groups.shape[0]:
                return results
            group, term_id, sign = int(groups[start]), int(ids[start]), int(signs[start])
            if sign and is_rest(term_id):
                self._change_rest(group, term_id, sign)
            if is_end[start]:
                for function, values in results.items():
                    values[written] = (self.sums if function == "SUM" else self.averages)(groups[start : start + 1])[0]
                written += 1
            start += 1

    def _change_rest(self, group: int, term_id: int, sign: int) -> None:
        term = self._vocabulary.term_of(term_id)
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
        results, singles = np.empty(groups.shape[0], dtype=np.int64), _empty_singles(groups)
        if write_sums(self._table, groups, self._has_rest, results, singles, self._magnitude):
            self._write_singles(results, singles)
            self._write_exact_results(results, groups, ExactSum.sum)
        return results

    def averages(self, groups: Ints) -> Ints:
        """AVG of some groups."""
        results, singles = np.empty(groups.shape[0], dtype=np.int64), _empty_singles(groups)
        if write_averages(self._table, groups, self._has_rest, results, singles, self._magnitude):
            self._write_singles(results, singles)
            self._write_exact_results(results, groups, ExactSum.average)
        return results

    def partial_sums(self, groups: Ints) -> Ints:
        """The exact sums of some groups, to be added to those of the same groups in other shards."""
        results = np.full(groups.shape[0], UNBOUND, dtype=np.int64)
        sums = [self._exact(group) for group in groups.tolist()]
        places = [place for place, one in enumerate(sums) if one is not None]
        if places:
            # Texts that are made into ids together take a third of the time.
            texts = [str(one.to_literal()).encode() for one in sums if one is not None]
            results[places] = self._vocabulary.ids_of_texts(texts)
        return results

    def _write_singles(self, results: Ints, singles: npt.NDArray[np.float32]) -> None:
        """Write the floats that do not fit into ids, as far as numpy writes them without an exponent."""
        size = np.abs(singles)
        places = np.flatnonzero((results == NO_ID) & (size >= _SMALLEST_PLAIN) & (size < _LARGEST_PLAIN))
        if places.shape[0]:
            texts = [_FLOAT_TEXT % text.removesuffix(".0").encode() for text in map(str, singles[places])]
            results[places] = self._vocabulary.ids_of_texts(texts)

    def _write_exact_results(self, results: Ints, groups: Ints, result: Callable[[ExactSum], Literal | None]) -> None:
        """Write the results that compiled code left open: they do not fit into ids, or have a rest."""
        for i in np.flatnonzero(results == NO_ID).tolist():
            exact = self._exact(int(groups[i]))
            results[i] = UNBOUND if exact is None else self._vocabulary.id_of(result(exact))

    def _exact(self, group: int) -> ExactSum | None:
        """The exact sum of a group, with its rest; None if some value is no number."""
        digits = self._table[group].tolist()
        if digits[ERRORS]:
            return None
        rest = self._rest.get(group)
        exact = ExactSum() if rest is None else replace(rest)
        exact.decimal += _join_digits(digits[WHOLE:FRACTION]) * 10**DECIMAL_DIGITS
        exact.decimal += digits[FRACTION] * 10 ** (DECIMAL_DIGITS - FRACTION_DIGITS)
        exact.binary += _join_digits(digits[BINARY:KINDS]) << (BINARY_BITS - BINARY_SCALE)
        exact.counts = [a + b for a, b in zip(exact.counts, digits[KINDS:ERRORS], strict=True)]
        return exact

    def ids(self) -> Ints:
        """Sums hold no ids."""
        return NO_ROW_IDS

    @property
    def nbytes(self) -> int:
        return self._table.nbytes + self._has_rest.nbytes + _REST_BYTES * len(self._rest)


def _join_digits(digits: list[int]) -> int:
    """The number with these digits of 32 bits, of which the last has the sign."""
    whole = 0
    for digit in reversed(digits):
        whole = (whole << 32) + digit
    return whole


def _empty_singles(groups: Ints) -> npt.NDArray[np.float32]:
    return np.full(groups.shape[0], np.nan, dtype=np.float32)
