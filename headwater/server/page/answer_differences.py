"""What entered and what left between two answers of a query."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from headwater.server.page.page_access import PageAnswer, PageCell

PageRow = tuple[PageCell, ...]


@dataclass(frozen=True, slots=True)
class AnswerDifference:
    """Rows that an answer has and the one before had not, and the other way round; as often as they differ."""

    entered: tuple[PageRow, ...]
    left: tuple[PageRow, ...]


def compare_answers(before: PageAnswer | None, now: PageAnswer) -> AnswerDifference:
    """What changed with an answer. An ISTREAM says itself what entered, a DSTREAM what left."""
    if now.operator.upper() == "ISTREAM":
        return AnswerDifference(now.table.rows, ())
    if now.operator.upper() == "DSTREAM":
        return AnswerDifference((), now.table.rows)
    old = Counter(before.table.rows if before is not None else ())
    new = Counter(now.table.rows)
    return AnswerDifference(tuple((new - old).elements()), tuple((old - new).elements()))
