"""What one query may take: time, rows, bytes, state and the length of the literals that it computes.

QueryLimits(seconds=10, rows=100_000)        the other limits are the defaults, which no honest query meets
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from headwater.errors import HeadwaterError, SettingError
from headwater.terms.arguments import check_number, check_whole


class LimitError(HeadwaterError, RuntimeError):
    """A query that would exceed one of its limits; the message names the limit, and how to raise it."""


@dataclass(frozen=True, slots=True)
class QueryLimits:
    """The limits of one query.

    `seconds` is the time of one tick; ticks that are taken in one step have it together. `rows` are those of one
    answer, triples of a CONSTRUCT included. `bytes` are those of one answer, and of the rows that a join or another
    operator makes at one tick. `state_bytes` is what windows and operators hold after a batch. `literal` is the length
    of a literal that an expression computes, in characters. `ticks` are those that one batch makes due: many where a
    window that slides by little meets a large gap in the times of its stream.
    """

    seconds: float = 300.0
    rows: int = 10_000_000
    bytes: int = 1 << 30
    state_bytes: int = 8 << 30
    literal: int = 16 << 20
    ticks: int = 10_000_000

    def __post_init__(self) -> None:
        check_number("the limit seconds", self.seconds, can_be_zero=False)
        for name in ("rows", "bytes", "state_bytes", "literal", "ticks"):
            check_whole(f"the limit {name}", getattr(self, name), 1)

    @classmethod
    def of(cls, given: QueryLimits | Mapping[str, Any] | None, otherwise: QueryLimits | None = None) -> QueryLimits:
        """Limits as a user gives them: those that a mapping does not name are those of `otherwise`."""
        before = cls() if otherwise is None else otherwise
        if given is None or isinstance(given, QueryLimits):
            return before if given is None else given
        known = [one.name for one in fields(cls)]
        if not isinstance(given, Mapping):
            raise SettingError(f"limits must be a mapping such as {{'rows': 1000}}, and it is {given!r}")
        if unknown := [str(name) for name in given if name not in known]:
            raise SettingError(f"there is no limit {', '.join(unknown)}: use {', '.join(known)}")
        return replace(before, **given)


def limit_error(limit: str, allowed: float, what: str) -> LimitError:
    """The error of a query that exceeds a limit; `what` says what it would take."""
    return LimitError(f"{what}, and its limit is {allowed:,}: make it narrower, or raise the limit `{limit}`")
