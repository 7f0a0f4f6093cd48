"""Rows of ids as rows of terms, in the order of their texts (`headwater.values.row_order.row_text`).

Each different term is looked up and written once. Rows are ordered by the texts of their terms, one after the other,
or by the ranks of those texts where there are many rows. That is the order of the rows' texts, which have a separator
between terms, because no term's text has the separator or a character below it; where one does, the texts of the rows
are compared.
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

_FEW = 24
_term = itemgetter(1)


def rows_in_order(rows: Sequence[Sequence[int]] | Ints, vocabulary: Vocabulary) -> list[Row]:
    """The terms of some rows, ordered."""
    if isinstance(rows, np.ndarray) and rows.shape[0] <= _FEW:
        rows = cast("list[list[int]]", rows.tolist())
    count, width = len(rows), len(rows[0]) if len(rows) else 0
    if count == 1:
        return [tuple(map(vocabulary.term_of, rows[0]))]
    written = vocabulary.written
    if count <= _FEW or not width:
        described = [tuple(map(written.__getitem__, row)) for row in rows]
        if written.by_parts:
            # Equal texts are of one term, so terms are never compared.
            described.sort()
        else:
            described.sort(key=lambda row: row_text(tuple(map(_term, row))))
        return [tuple(map(_term, row)) for row in described]
    return many_in_order([np.array(rows, dtype=np.int64)], vocabulary)[0]


def many_in_order(tables: Sequence[Ints], vocabulary: Vocabulary) -> list[list[Row]]:
    """The terms of the rows of some tables with the same columns, those of each table ordered."""
    ids, sizes = np.concatenate(tables), [table.shape[0] for table in tables]
    if not ids.shape[1]:
        return [[()] * size for size in sizes]
    ends = list(accumulate(sizes))
    different, places = np.unique(ids, return_inverse=True)
    places = places.reshape(ids.shape)
    vocabulary.make_terms(different)
    written = vocabulary.written
    cells = [written[number] for number in different.tolist()]
    if written.by_parts:
        texts, terms = [text for text, _ in cells], [term for _, term in cells]
        by_text = sorted(range(len(texts)), key=texts.__getitem__)
        ranks = np.empty(len(texts), dtype=np.int64)
        ranks[by_text] = np.arange(len(texts))
        keys = (*ranks[places].T[::-1], np.repeat(np.arange(len(tables)), sizes))
        columns = [[terms[place] for place in column] for column in places[np.lexsort(keys)].T.tolist()]
        rows = list(zip(*columns, strict=True))
        return [rows[end - size : end] for size, end in zip(sizes, ends, strict=True)]
    unordered = vocabulary.terms_of(ids)
    return [sorted(unordered[end - size : end], key=row_text) for size, end in zip(sizes, ends, strict=True)]
