"""Rows of ids as rows of terms, in the order of their texts (`headwater.reference.ordering.row_text`).

Each different term is looked up and written once; rows are then ordered by the ranks of their terms. That is the order
of the texts with a separator between them, because no term's text has a character below the separator; where one
does, the texts themselves are compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import numpy as np

from headwater.kernel.vocabulary import Vocabulary
from headwater.reference.ordering import SEPARATOR, row_text
from headwater.terms.model import Row

_FEW = 24


def rows_in_order(rows: Sequence[Sequence[int]], vocabulary: Vocabulary) -> list[Row]:
    """The terms of some rows, ordered."""
    count, width = len(rows), len(rows[0]) if rows else 0
    if count <= _FEW or not width:
        listed = list(rows)
        if count == 1:
            return [tuple(map(vocabulary.term_of, listed[0]))]
        written, known = {}, {}
        for number in set(chain.from_iterable(listed)):
            written[number], known[number] = vocabulary.written(number)
        keys = [SEPARATOR.join(map(written.__getitem__, row)) for row in listed]
        listed = [row for _, row in sorted(zip(keys, listed, strict=True))]
        return [tuple(map(known.__getitem__, row)) for row in listed]
    ids = np.array(rows, dtype=np.int64)
    different, places = np.unique(ids, return_inverse=True)
    places = places.reshape(ids.shape)
    described = [vocabulary.written(number) for number in different.tolist()]
    texts, terms = [text for text, _ in described], [term for _, term in described]
    if any(min(text, default=SEPARATOR) < SEPARATOR for text in texts):
        return sorted(vocabulary.terms_of(ids), key=row_text)
    by_text = sorted(range(len(texts)), key=texts.__getitem__)
    ranks = np.empty(len(texts), dtype=np.int64)
    ranks[by_text] = np.arange(len(texts))
    ordered = places[np.lexsort(ranks[places].T[::-1])]
    columns = [[terms[place] for place in ordered[:, column].tolist()] for column in range(width)]
    return list(zip(*columns, strict=True))
