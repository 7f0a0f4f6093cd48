"""Rows of ids as rows of terms, sorted by their texts (`headwater.values.row_order.row_text`).

Each different term is decoded and written once. Rows are compared term by term, by text, or by the rank of the text
where there are many rows. That is the order of the rows' texts, in which a separator stands between terms, as long as
no term's text contains the separator or a character below it; otherwise the texts of whole rows are compared.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate
from operator import itemgetter
from typing import cast

import numpy as np

from headwater.terms.ids.term_texts import Ints
from headwater.terms.model import Row, Term
from headwater.values.row_order import SEPARATOR, row_text

_FEW_ROWS = 24
_term = itemgetter(1)


class SortTexts(dict[int, tuple[str, Term | None]]):
    """For each id the text of the term and the term, cached; an empty text where `term_of` gives no term.

    `can_sort_by_term`: rows compared by the texts of their terms are in the order of the rows' texts (`sort_rows`).
    `decode_terms` is told of ids that are needed next, which may be decoded together.
    """

    def __init__(
        self, term_of: Callable[[int], Term | None], decode_terms: Callable[[Ints], None] = lambda _: None
    ) -> None:
        super().__init__()
        self.term_of = term_of
        self.decode_terms = decode_terms
        self.can_sort_by_term = True

    def __missing__(self, term_id: int) -> tuple[str, Term | None]:
        term = self.term_of(term_id)
        text = "" if term is None else str(term)
        if text and not text.isprintable() and min(text) <= SEPARATOR:
            self.can_sort_by_term = False
        cell = self[term_id] = text, term
        return cell


def sort_rows(rows: Sequence[Sequence[int]] | Ints, sort_texts: SortTexts) -> list[Row]:
    """The terms of some rows, sorted."""
    if isinstance(rows, np.ndarray) and rows.shape[0] <= _FEW_ROWS:
        rows = cast("list[list[int]]", rows.tolist())
    count, width = len(rows), len(rows[0]) if len(rows) else 0
    if count == 1:
        return [tuple(map(sort_texts.term_of, rows[0]))]
    if count <= _FEW_ROWS or not width:
        cells = [tuple(map(sort_texts.__getitem__, row)) for row in rows]
        if sort_texts.can_sort_by_term:
            # Equal texts are of one term, so terms are never compared.
            cells.sort()
        else:
            cells.sort(key=lambda row: row_text(tuple(map(_term, row))))
        return [tuple(map(_term, row)) for row in cells]
    return sort_tables([np.array(rows, dtype=np.int64)], sort_texts)[0]


def sort_tables(tables: Sequence[Ints], sort_texts: SortTexts) -> list[list[Row]]:
    """The terms of the rows of several tables with the same columns, each table sorted."""
    ids, sizes = np.concatenate(tables), [table.shape[0] for table in tables]
    if not ids.shape[1]:
        return [[()] * size for size in sizes]
    ends = list(accumulate(sizes))
    different, places = np.unique(ids, return_inverse=True)
    places = places.reshape(ids.shape)
    sort_texts.decode_terms(different)
    cells = [sort_texts[term_id] for term_id in different.tolist()]
    if sort_texts.can_sort_by_term:
        texts, terms = [text for text, _ in cells], [term for _, term in cells]
        text_order = sorted(range(len(texts)), key=texts.__getitem__)
        ranks = np.empty(len(texts), dtype=np.int64)
        ranks[text_order] = np.arange(len(texts))
        keys = (*ranks[places].T[::-1], np.repeat(np.arange(len(tables)), sizes))
        columns = [[terms[place] for place in column] for column in places[np.lexsort(keys)].T.tolist()]
        rows = list(zip(*columns, strict=True))
        return [rows[end - size : end] for size, end in zip(sizes, ends, strict=True)]
    term_of = sort_texts.term_of
    unordered = [tuple([term_of(term_id) for term_id in row]) for row in ids.tolist()]
    return [sorted(unordered[end - size : end], key=row_text) for size, end in zip(sizes, ends, strict=True)]
