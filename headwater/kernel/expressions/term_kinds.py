"""isIRI, isBLANK and isLITERAL over columns of ids.

An id that holds its value is a literal. A hashed id does not say what it stands for, but the first letters of its text
do, so that nobody has to read the term:

    <http://…>    "…"    _:…    << … >>
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from headwater.kernel.columns.delta import UNBOUND
from headwater.kernel.columns.ring_index import Ints
from headwater.kernel.columns.vocabulary import Vocabulary
from headwater.kernel.expressions.comparison import ERROR, FALSE, TRUE, Truths
from headwater.terms.ids.term_texts import Kind

KIND_TESTS: dict[str, Kind] = {"ISIRI": Kind.IRI, "ISBLANK": Kind.BLANK, "ISLITERAL": Kind.LITERAL}


def test_kind(column: Ints, kind: Kind, vocabulary: Vocabulary) -> Truths:
    """Whether each id is one of a term of this kind; an error where there is none."""
    truths = np.full(column.shape[0], _truth(kind is Kind.LITERAL), dtype=np.uint8)
    truths[column == UNBOUND] = ERROR
    is_hashed = column >= 0
    if is_hashed.any():
        different, places = np.unique(column[is_hashed], return_inverse=True)
        found: npt.NDArray[np.bool_] = (vocabulary.kinds_of(different) == kind)[places]
        truths[is_hashed] = np.where(found, np.uint8(TRUE), np.uint8(FALSE))
    return truths


def _truth(value: bool) -> int:
    return TRUE if value else FALSE
