"""SUM and AVG after many slides are those of the window's content, to the last bit, whatever came and went.

The numbers are chosen to hurt: sizes that swallow each other, cancellation, numbers below the smallest normal one,
zeros with a sign, NaN and infinities that come and go, integers whose sum leaves their range for a while.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from headwater.kernel.aggregation.grouping import AggregateSpec, GroupOperator
from headwater.kernel.columns.ring_index import Ints
from headwater.kernel.columns.vocabulary import Vocabulary
from headwater.terms.model import XSD, Literal, NamedNode, Term
from headwater.values.aggregates import aggregate
from tests.kernel.manual_input import ManualInput

Specs = tuple[tuple[str, AggregateSpec], ...]
SPECS: Specs = (("s", AggregateSpec("SUM", "v")), ("a", AggregateSpec("AVG", "v")))
DISTINCT: Specs = (("t", AggregateSpec("SUM", "v", distinct=True)), ("b", AggregateSpec("AVG", "v", distinct=True)))
WINDOW = 60
_AT_ONCE = 100_000


def typed(datatype: str, *texts: str) -> list[Literal]:
    return [Literal(text, datatype=NamedNode(XSD + datatype)) for text in texts]


INTEGERS = [
    *typed("integer", "0", "1", "-1", "7", "-13", "1000000007", "144115188075855871", "-144115188075855872"),
    *typed("integer", "9223372036854775807", "-9223372036854775808", "00012"),
    *typed("int", "5", "-5"),
]
DECIMALS = [
    *typed("decimal", "0.1", "-0.1", "0.000000000000001", "-0.000000000000001", "0.000000000000000001", "12.50"),
    *typed(
        "decimal", "900719925474099.1", "-900719925474099.1", "99999999999999999999.5", "-7", "0.333333333333333333"
    ),
    *typed("integer", "3", "-4"),
]
SMALL_DOUBLES = typed("double", "0.1", "0.2", "-0.3", "1e16", "1", "-1e16", "123456.789", "0.3333333333333333", "2.5E0")
DOUBLES = [
    *typed("double", "1e308", "-1e308", "1.7976931348623157e308", "-1.7976931348623157e308", "1e-300", "-1e-300"),
    *typed(
        "double", "5e-324", "-5e-324", "2.2250738585072009e-308", "4e-320", "-0.0", "0", "1e16", "1", "-1e16", "0.1"
    ),
    *typed("double", "1.1805916207174113e21", "-1e22", "0.00048828125"),
]
COMING_AND_GOING = [*DOUBLES, *SMALL_DOUBLES, *SMALL_DOUBLES, *typed("double", "NaN", "INF", "-INF")]
ALL = [*INTEGERS, *DECIMALS, *SMALL_DOUBLES, *DOUBLES, *typed("float", "0.1", "16777217", "-3.4e38", "1e-45")]
POOLS = (INTEGERS, DECIMALS, SMALL_DOUBLES, DOUBLES, COMING_AND_GOING, ALL)
"""Each is a group of its own."""


class Slider:
    """A window over an endless stream of rows (group, number), and the groups that are followed over it."""

    def __init__(self, seed: int, specs: Specs) -> None:
        self._specs = specs
        self._random = np.random.default_rng(seed)
        self.vocabulary = Vocabulary()
        self._pools = [np.array([self.vocabulary.id_of(term) for term in pool]) for pool in POOLS]
        self._source = ManualInput("g", "v")
        self._grouping = GroupOperator(self._source, ("g",), specs, self.vocabulary)
        self._rows = self._drawn(WINDOW)
        self._begin = 0
        self.shown: dict[int, list[int]] = {}
        self._advance(self._rows, self._rows[:0])

    def _drawn(self, count: int) -> Ints:
        groups = self._random.integers(0, len(POOLS), count)
        rows = np.empty((count, 2), dtype=np.int64)
        # The number of a group is the id of an integer, so that everything in a row is a term.
        rows[:, 0] = self.vocabulary.id_of(typed("integer", "0")[0]) + groups
        for group, pool in enumerate(self._pools):
            places = np.flatnonzero(groups == group)
            rows[places, 1] = pool[self._random.integers(0, pool.shape[0], places.shape[0])]
        return rows

    def _advance(self, added: Ints, removed: Ints) -> None:
        self._source.feed_rows(added, removed)
        delta = self._grouping.advance()
        for row in delta.removed.tolist():
            assert self.shown.pop(row[0]) == row
        for row in delta.added.tolist():
            self.shown[row[0]] = row

    def slide(self, count: int) -> None:
        """So many slides, each by one row."""
        while count:
            steps = min(count, _AT_ONCE)
            rows = self._rows = np.concatenate((self._rows[self._begin :], self._drawn(steps)))
            self._begin = 0
            for begin in range(steps):
                end = begin + WINDOW
                self._advance(rows[end : end + 1], rows[begin : begin + 1])
            self._begin = steps
            count -= steps

    @property
    def content(self) -> Ints:
        return self._rows[self._begin :]

    def expected(self) -> dict[Term | None, list[Term | None]]:
        """The definition, over what is in the window."""
        groups: dict[Term | None, Counter[Term | None]] = {}
        for group, value in self.vocabulary.terms_of_rows(self.content):
            groups.setdefault(group, Counter())[value] += 1
        return {
            group: [group, *(aggregate(spec.function, values, distinct=spec.distinct) for _, spec in self._specs)]
            for group, values in groups.items()
        }

    def check(self) -> None:
        term_of = self.vocabulary.term_of
        assert {term_of(group): list(map(term_of, row)) for group, row in self.shown.items()} == self.expected()
        anew = ManualInput("g", "v")
        anew.feed_rows(self.content, self.content[:0])
        from_scratch = GroupOperator(anew, ("g",), self._specs, self.vocabulary).advance().added
        assert sorted(from_scratch.tolist()) == sorted(self.shown.values())


@pytest.mark.parametrize("specs", [SPECS, DISTINCT], ids=["all", "distinct"])
def test_no_drift_in_a_window_that_slides(specs: Specs) -> None:
    slider = Slider(1, specs)
    slider.check()
    for _ in range(50):
        slider.slide(200)
        slider.check()


@pytest.mark.soak
def test_no_drift_in_ten_million_slides() -> None:
    slider = Slider(2, SPECS)
    for _ in range(1000):
        slider.slide(10_000)
        slider.check()
