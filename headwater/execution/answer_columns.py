"""The answers of one SELECT query at many ticks, as columns of ids.

    times     10   20   30
    offsets    0    2    2    3        the answer at 20 has no row
    ids       (a)  (b)  (c)

Terms are made, and rows put in order, when somebody looks at an answer. Tables are made of the columns as they are.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import NamedTuple, overload

import numpy as np
import numpy.typing as npt

from headwater.execution.answers import Answer, WindowView
from headwater.terms.ids.encoded_rows import EncodedRows
from headwater.terms.ids.inline_layout import NO_TERM
from headwater.terms.ids.term_ids import decode_inline
from headwater.terms.ids.term_texts import Ints, term_of_text, unite_texts
from headwater.terms.model import Row, Term
from headwater.values.ordered_rows import SortTexts, sort_rows, sort_tables

_COMMON_FIELDS = tuple(one.name for one in fields(Answer) if one.name not in ("time", "rows", "inputs", "source"))


class WindowViews(NamedTuple):
    """What one window held at each tick: the columns of `WindowView`."""

    label: str
    lows: Ints
    highs: Ints
    items: Ints

    @classmethod
    def of_one(cls, view: WindowView) -> WindowViews:
        """The view of one tick."""
        return cls(view.label, np.array([view.low]), np.array([view.high]), np.array([view.items]))

    def select(self, places: Ints) -> WindowViews:
        """The views at some of the ticks."""
        return WindowViews(self.label, self.lows[places], self.highs[places], self.items[places])

    def at(self, place: int) -> WindowView:
        """The view at one tick."""
        return WindowView(self.label, int(self.lows[place]), int(self.highs[place]), int(self.items[place]))


@dataclass(frozen=True)
class AnswerColumns(Sequence[Answer]):
    """The answers of one query in time order; `head` is an answer with all that they have in common.

    The rows of answer `i` are `rows.ids[offsets[i]:offsets[i + 1]]`, in any order.
    """

    head: Answer
    times: Ints
    offsets: Ints
    rows: EncodedRows
    windows: tuple[WindowViews, ...] = ()

    @property
    def query(self) -> str:
        return self.head.query

    @property
    def row_count(self) -> int:
        """How many rows all answers have together."""
        return len(self.rows)

    @property
    def row_times(self) -> Ints:
        """The time of the answer of each row."""
        times: Ints = np.repeat(self.times, np.diff(self.offsets))
        return times

    def __len__(self) -> int:
        return int(self.times.shape[0])

    @overload
    def __getitem__(self, place: int) -> Answer: ...
    @overload
    def __getitem__(self, place: slice) -> list[Answer]: ...
    def __getitem__(self, place: int | slice) -> Answer | list[Answer]:
        if isinstance(place, slice):
            return [self._answer(one) for one in range(*place.indices(len(self)))]
        return self._answer(range(len(self))[place])

    def __iter__(self) -> Iterator[Answer]:
        """All answers with their terms, which are made together: that takes less time than one answer after another."""
        with _without_cycle_collection():
            tables = [self.rows.ids[low:high] for low, high in zip(self.offsets, self.offsets[1:], strict=False)]
            ordered = sort_tables(tables, self._sort_texts) if tables else []
        for place, rows in enumerate(ordered):
            answer = self._answer(place)
            object.__setattr__(answer, "rows", tuple(rows))
            object.__setattr__(answer, "source", None)
            yield answer

    def iterate_unordered(self) -> Iterator[Answer]:
        """All answers with their terms, the rows of each in any order: ordering them takes as long as making them."""
        ids, places = np.unique(self.rows.ids, return_inverse=True)
        terms = np.empty(ids.shape[0], dtype=object)
        terms[:] = [self.term_of(one) for one in ids.tolist()]
        rows = [tuple(row) for row in terms[places.reshape(self.rows.ids.shape)].tolist()]
        for place in range(len(self)):
            answer = self._answer(place)
            object.__setattr__(answer, "rows", tuple(rows[self.offsets[place] : self.offsets[place + 1]]))
            object.__setattr__(answer, "source", None)
            yield answer

    @staticmethod
    def is_unbound(ids: Ints) -> npt.NDArray[np.bool_]:
        """Where a column of ids has no term."""
        found: npt.NDArray[np.bool_] = ids == NO_TERM
        return found

    def decode_rows(self, place: int) -> tuple[Row, ...]:
        """The rows of one answer, in order."""
        low, high = self.offsets[place], self.offsets[place + 1]
        return tuple(sort_rows(self.rows.ids[low:high], self._sort_texts))

    def _answer(self, place: int) -> Answer:
        """An answer without its rows: it asks for them."""
        answer: Answer = object.__new__(Answer)
        set_field = object.__setattr__
        for name in _COMMON_FIELDS:
            set_field(answer, name, getattr(self.head, name))
        set_field(answer, "time", int(self.times[place]))
        set_field(answer, "inputs", tuple([window.at(place) for window in self.windows]))
        set_field(answer, "source", (self, place))
        return answer

    @cached_property
    def _sort_texts(self) -> SortTexts:
        return SortTexts(self.term_of)

    @cached_property
    def _texts(self) -> dict[int, bytes]:
        return dict(self.rows.texts.items())

    def term_of(self, term_id: int) -> Term | None:
        """The term of an id of these rows; None for an unbound variable."""
        if term_id < 0:
            return None if term_id == NO_TERM else decode_inline(term_id)
        return term_of_text(self._texts[term_id])

    def __getstate__(self) -> dict[str, object]:
        """Without the terms that were made."""
        return {one.name: getattr(self, one.name) for one in fields(self)}


def union_columns(parts: Sequence[AnswerColumns], variables: tuple[str, ...]) -> AnswerColumns:
    """One answer for each time that a part has, with the rows of all parts."""
    if len(parts) == 1 and parts[0].head.variables == variables:
        return parts[0]
    times = np.concatenate([part.times for part in parts])
    sizes = np.concatenate([np.diff(part.offsets) for part in parts])
    bases = np.cumsum([0, *(part.row_count for part in parts)])
    starts = np.concatenate([part.offsets[:-1] + base for part, base in zip(parts, bases, strict=False)])
    order = times.argsort(kind="stable")
    ends = np.cumsum(sizes[order])
    places = np.arange(ends[-1]) + np.repeat(starts[order] - (ends - sizes[order]), sizes[order])
    ids = np.concatenate([part.rows.ids for part in parts])[places]
    is_last = np.append(times[order][1:] != times[order][:-1], True)
    # What the windows held is told by the first part that has the time: each has seen all elements.
    firsts = order[np.append(True, is_last[:-1])]
    windows = tuple(
        WindowViews(one.label, *(np.concatenate(columns)[firsts] for columns in zip(*views, strict=True)))
        for one, views in zip(
            parts[0].windows,
            ([window[1:] for window in windows] for windows in zip(*(part.windows for part in parts), strict=True)),
            strict=True,
        )
    )
    offsets = np.append(0, ends[is_last])
    texts = unite_texts([part.rows.texts for part in parts])
    head = replace(parts[0].head, variables=variables)
    return AnswerColumns(head, times[firsts], offsets, EncodedRows(ids, texts), windows)


@contextmanager
def _without_cycle_collection() -> Iterator[None]:
    """Turns Python's cycle collector off: over many new objects without cycles it takes as long as making them."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
