"""Change rates that are given, not learnt, as WBM has them in the paper (VM5): how often the rows of a key change.

    >>> given = GivenRates("rates.csv", ("user",), {(user,): 12 / 3600})
    >>> rates = given.for_keys((Variable("user"),))
    >>> rates.rate((user,))
    0.0033333333333333335

Rates are by the term of the only key variable, or by those of the variables that a CSV file names. A key that no rate
is given for has the median of the given ones, and the log names the first such key.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np
from numpy.typing import NDArray

from headwater.errors import SettingError
from headwater.terms.model import SECOND, Row, Variable

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class GivenRates:
    """Changes per second, by the terms of `variables`; None: by the term of the only variable of the keys."""

    source: str
    variables: tuple[str, ...] | None
    per_second: Mapping[Row, float]

    def for_keys(self, keys: Sequence[Variable]) -> KeyRates:
        """The rates of keys that bind these variables; a `SettingError` if the rates are of other ones."""
        names = [variable.value for variable in keys]
        listed = " ".join(f"?{name}" for name in names) or "no variable"
        if self.variables is None:
            if len(names) != 1:
                raise SettingError(
                    f"{self.source} gives rates of single terms, but the keys of this SERVICE are {listed}: give rates "
                    "in a CSV file with a column for each variable"
                )
            return KeyRates(self, (0,))
        for name in self.variables:
            if name not in names:
                raise SettingError(
                    f"{self.source} gives rates by ?{name}, but the keys of this SERVICE are {listed}: name the column "
                    "after one of these variables"
                )
        return KeyRates(self, tuple(names.index(name) for name in self.variables))


UNREAD_RATES = GivenRates("", (), {})
"""Stands for rates where a plan is only looked at, not evaluated."""


class KeyRates:
    """The given rates of the keys of one SERVICE clause; `columns` are the parts of a key that they are by."""

    def __init__(self, given: GivenRates, columns: Sequence[int]) -> None:
        self._given = given
        self._columns = tuple(columns)
        self._default = median(given.per_second.values()) if given.per_second else 0.0
        self._has_warned = False

    def rate(self, key: Row) -> float:
        """The changes of a key in a second."""
        rate = self._given.per_second.get(tuple(key[column] for column in self._columns))
        if rate is not None:
            return rate
        if not self._has_warned:
            self._has_warned = True
            shown = " ".join(map(str, key))
            logger.warning(
                "%s gives no rate for %s: such keys get the median of the given rates, one change in %.3g s",
                self._given.source,
                shown,
                1.0 / self._default if self._default else float("inf"),
            )
        return self._default

    def probability_unchanged(self, keys: Sequence[Row], elapsed: Sequence[int]) -> NDArray[np.float64]:
        """The probability of each key not to have changed in so many microseconds."""
        rates = np.array([self.rate(key) for key in keys], dtype=np.float64)
        return np.asarray(np.exp(-rates * np.array(elapsed, dtype=np.float64) / SECOND))
