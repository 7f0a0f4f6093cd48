"""The answers of a step, in order: some of them columns (`answer_columns`), others answers one by one."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any, overload

import numpy as np
import numpy.typing as npt

from headwater.execution.answer_columns import AnswerColumns
from headwater.execution.answers import Answer
from headwater.execution.typed_cells import ColumnTypes, choose_types
from headwater.terms.ids.term_texts import Ints

if TYPE_CHECKING:
    import pyarrow as pa

AnswerPart = AnswerColumns | list[Answer]
"""Answers in time order: those of one query as columns, or those of any queries one by one."""


class AnswerBatch(Sequence[Answer]):
    """Answers in the order of time, and at one instant in the order in which their queries were registered.

    `to_arrow` makes a table of them without making an `Answer` of each; iterating makes the terms of all rows.
    """

    def __init__(self, parts: Iterable[AnswerPart] = (), order: Ints | None = None) -> None:
        """With `order`, answer `i` is the one at place `order[i]` of the parts put together."""
        self.parts: list[AnswerPart] = [part for part in parts if len(part)]
        self.order = order

    def append(self, answers: AnswerPart | Answer) -> None:
        """Add what comes after the answers that are here."""
        if isinstance(answers, AnswerColumns):
            self.parts.append(answers)
            return
        if not self.parts or isinstance(self.parts[-1], AnswerColumns):
            self.parts.append([])
        last = self.parts[-1]
        assert isinstance(last, list)
        last.extend([answers] if isinstance(answers, Answer) else answers)

    def __len__(self) -> int:
        return sum(map(len, self.parts))

    @overload
    def __getitem__(self, place: int) -> Answer: ...
    @overload
    def __getitem__(self, place: slice) -> list[Answer]: ...
    def __getitem__(self, place: int | slice) -> Answer | list[Answer]:
        if isinstance(place, slice):
            return [self[one] for one in range(*place.indices(len(self)))]
        found = range(len(self))[place]
        if self.order is not None:
            found = int(self.order[found])
        for part in self.parts:
            if found < len(part):
                return part[found]
            found -= len(part)
        raise AssertionError("unreachable")

    def __iter__(self) -> Iterator[Answer]:
        answers = chain.from_iterable(self.parts)
        if self.order is None:
            return answers
        listed = list(answers)
        return iter([listed[place] for place in self.order.tolist()])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"AnswerBatch({len(self)} answers, {self.row_count} rows)"

    @property
    def row_count(self) -> int:
        """How many rows and triples all answers have together; no terms are made to count them."""
        return sum(
            part.row_count if isinstance(part, AnswerColumns) else sum(one.row_count for one in part)
            for part in self.parts
        )

    @property
    def times(self) -> Ints:
        """The time of each answer, in the order of the parts."""
        listed = [
            part.times if isinstance(part, AnswerColumns) else np.array([one.time for one in part], dtype=np.int64)
            for part in self.parts
        ]
        return np.concatenate(listed) if listed else np.empty(0, np.int64)

    @property
    def skipped_count(self) -> int:
        """How many ticks were skipped before the answers, because a run fell behind."""
        return sum(one.skipped for part in self.parts if isinstance(part, list) for one in part)

    @property
    def alert_count(self) -> int:
        """How many alerts the answers have of the quality of what SERVICE gave."""
        heads = [one for part in self.parts for one in ([part.head] if isinstance(part, AnswerColumns) else part)]
        return sum(len(one.quality.alerts) for one in heads if one.quality is not None)

    @property
    def suspended(self) -> str | None:
        """Of the answers of one query: why it is suspended behind them; None where it goes on."""
        last = self.parts[-1] if self.parts else ()
        return last[-1].suspended if isinstance(last, list) and last else None

    def change(self, is_of: Callable[[str], bool], change: Callable[[Answer], Answer]) -> AnswerBatch:
        """The answers, those of some queries changed; of the others no terms are made."""
        changed = AnswerBatch()
        for part in self.parts:
            stays = isinstance(part, AnswerColumns) and not is_of(part.query)
            changed.append(part if stays else [change(answer) if is_of(answer.query) else answer for answer in part])
        return changed

    def by_query(self) -> dict[str, AnswerBatch]:
        """The answers of each query, in time order."""
        found: dict[str, AnswerBatch] = {}
        for part in self.parts:
            if isinstance(part, AnswerColumns):
                found.setdefault(part.query, AnswerBatch()).append(part)
            else:
                for answer in part:
                    found.setdefault(answer.query, AnswerBatch()).append(answer)
        return found

    def without_queries(self, names: Collection[str]) -> AnswerBatch:
        """The batch without the answers of the queries of some names; the other answers keep their order."""
        kept: list[AnswerPart] = []
        is_kept: list[npt.NDArray[np.bool_]] = []
        for part in self.parts:
            if isinstance(part, AnswerColumns):
                is_kept.append(np.full(len(part), part.query not in names))
                kept.extend([part] if part.query not in names else [])
            else:
                is_kept.append(np.array([one.query not in names for one in part]))
                kept.append([one for one in part if one.query not in names])
        if self.order is None or not kept:
            return AnswerBatch(kept)
        mask = np.concatenate(is_kept)
        places = np.cumsum(mask) - 1
        return AnswerBatch(kept, places[self.order[mask[self.order]]])

    def with_part(self, number: int) -> AnswerBatch:
        """The same answers with another `part`: what one shard has of them."""
        parts: list[AnswerPart] = [
            replace(part, head=replace(part.head, part=number))
            if isinstance(part, AnswerColumns)
            else [replace(one, part=number) for one in part]
            for part in self.parts
        ]
        return AnswerBatch(parts, self.order)

    def set_types(self, types: Mapping[str, ColumnTypes]) -> None:
        """Say the types of the columns of each query."""
        for part in self.parts:
            for one in [part.head] if isinstance(part, AnswerColumns) else part:
                # Answers are values; this takes no part in comparisons.
                object.__setattr__(one, "types", types.get(one.query))

    def to_arrow(self, *, terms: bool = False, schema: Mapping[str, Any] | None = None) -> pa.Table:
        """The rows of all answers of one query as an Arrow table: `time`, `part`, and a column for each variable.

        A column whose type the query says, such as a count or a cast, has it, and `schema` says it of others, as in
        `{"speed": "double"}` (integer, double, boolean, timestamp, string). Another column has the type of its values
        where they are numbers or booleans, which may be another one in another batch, and is text elsewhere: IRIs and
        the texts of literals. With `terms` every term is in N-Triples syntax. Rows are in the order of time, those of
        one answer in any order.
        """
        from headwater.execution.arrow_tables import answers_to_table

        return answers_to_table(self, terms=terms, types=self._types_by(schema))

    def _types_by(self, schema: Mapping[str, Any] | None) -> ColumnTypes | None:
        if not schema or not self.parts:
            return None
        first = self.parts[0]
        head = first.head if isinstance(first, AnswerColumns) else first[0]
        return choose_types(head.table_columns(), head.types, schema)


def merge_answers(batches: Sequence[AnswerBatch], registration_order: Mapping[str, int]) -> AnswerBatch:
    """The answers of several evaluators in the order of time and registration."""
    parts = [part for batch in batches for part in batch.parts]
    merged = AnswerBatch(parts)
    if len(merged.parts) == 1 and isinstance(merged.parts[0], AnswerColumns):
        return merged
    ranks: list[Ints] = []
    closings: list[Ints] = []
    for part in merged.parts:
        if isinstance(part, AnswerColumns):
            ranks.append(np.full(len(part), registration_order[part.query]))
            closings.append(np.full(len(part), part.head.part))
        else:
            ranks.append(np.array([registration_order[one.query] for one in part], dtype=np.int64))
            closings.append(np.array([one.part for one in part], dtype=np.int64))
    if ranks:
        order = np.lexsort((np.concatenate(closings), np.concatenate(ranks), merged.times))
        if not (order[1:] > order[:-1]).all():
            merged.order = order
    return merged
