"""isIRI, isBLANK and isLITERAL over columns of ids.

An id that holds its value is a literal. For a hashed id the first characters of the text decide, without decoding it:

    <http://…>    "…"    _:…    << … >>
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from headwater.kernel.columns.delta import UNBOUND
from headwater.kernel.columns.ring_index import Ints
from headwater.kernel.columns.vocabulary import Vocabulary
from headwater.kernel.expressions.comparison import ERROR, FALSE, TRUE, Truths
from headwater.terms.ids.term_texts import TermKind

KIND_TESTS: dict[str, TermKind] = {"ISIRI": TermKind.IRI, "ISBLANK": TermKind.BLANK, "ISLITERAL": TermKind.LITERAL}


def test_kind(column: Ints, kind: TermKind, vocabulary: Vocabulary) -> Truths:
    """Whether the term of each id is of this kind; an error for `UNBOUND`."""
    truths = np.full(column.shape[0], _truth_of(kind is TermKind.LITERAL), dtype=np.uint8)
    truths[column == UNBOUND] = ERROR
    is_hashed = column >= 0
    if is_hashed.any():
        different, places = np.unique(column[is_hashed], return_inverse=True)
        is_kind: npt.NDArray[np.bool_] = (vocabulary.kinds_of(different) == kind)[places]
        truths[is_hashed] = np.where(is_kind, np.uint8(TRUE), np.uint8(FALSE))
    return truths


def _truth_of(value: bool) -> int:
    return TRUE if value else FALSE
