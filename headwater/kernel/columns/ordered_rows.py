"""Rows of ids as rows of terms, sorted by their texts (`headwater.values.row_order.row_text`).

Each different term is decoded and written once. Rows are compared term by term, by text, or by the rank of the text
where there are many rows. That is the order of the rows' texts, in which a separator stands between terms, as long as
no term's text contains the separator or a character below it; otherwise the texts of whole rows are compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from operator import itemgetter
from typing import cast

import numpy as np

from headwater.kernel.columns.ring_index import Ints
from headwater.kernel.columns.vocabulary import Vocabulary
from headwater.terms.model import Row
from headwater.values.row_order import row_text

_FEW_ROWS = 24
_term = itemgetter(1)


def sort_rows(rows: Sequence[Sequence[int]] | Ints, vocabulary: Vocabulary) -> list[Row]:
    """The terms of some rows, sorted."""
    if isinstance(rows, np.ndarray) and rows.shape[0] <= _FEW_ROWS:
        rows = cast("list[list[int]]", rows.tolist())
    count, width = len(rows), len(rows[0]) if len(rows) else 0
    if count == 1:
        return [tuple(map(vocabulary.term_of, rows[0]))]
    sort_texts = vocabulary.sort_texts
    if count <= _FEW_ROWS or not width:
        cells = [tuple(map(sort_texts.__getitem__, row)) for row in rows]
        if sort_texts.can_sort_by_term:
            # Equal texts are of one term, so terms are never compared.
            cells.sort()
        else:
            cells.sort(key=lambda row: row_text(tuple(map(_term, row))))
        return [tuple(map(_term, row)) for row in cells]
    return sort_tables([np.array(rows, dtype=np.int64)], vocabulary)[0]


def sort_tables(tables: Sequence[Ints], vocabulary: Vocabulary) -> list[list[Row]]:
    """The terms of the rows of several tables with the same columns, each table sorted."""
    ids, sizes = np.concatenate(tables), [table.shape[0] for table in tables]
    if not ids.shape[1]:
        return [[()] * size for size in sizes]
    ends = list(accumulate(sizes))
    different, places = np.unique(ids, return_inverse=True)
    places = places.reshape(ids.shape)
    vocabulary.decode_terms(different)
    sort_texts = vocabulary.sort_texts
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
    unordered = vocabulary.terms_of_rows(ids)
    return [sorted(unordered[end - size : end], key=row_text) for size, end in zip(sizes, ends, strict=True)]
