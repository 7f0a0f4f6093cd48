"""Columns of ids as columns of Python's numbers, where all of them are numbers."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from headwater.terms.compiled_code import compiled
from headwater.terms.ids.compiled_decoding import (
    INTEGER,
    QUOTIENT,
    type_of_id,
    value_class_of,
    value_of_id,
    value_to_double,
)
from headwater.terms.ids.inline_layout import INTEGER_BIAS, NO_TERM, InlineType
from headwater.terms.ids.term_texts import Ints

_INTEGERS, _REALS, _BOOLEANS, _OTHERS = 1, 2, 4, 8
_BOOLEAN = int(InlineType.BOOLEAN)

Numbers = npt.NDArray[np.int64] | npt.NDArray[np.float64] | npt.NDArray[np.bool_]


@compiled
def _decode_numbers(ids, integers, reals):  # type: ignore[no-untyped-def]
    """Decode a column; gives the kinds of terms that it has. A boolean is an integer, 0 or 1."""
    kinds = 0
    for i in range(ids.shape[0]):
        term_id = ids[i]
        integers[i] = 0
        reals[i] = np.nan
        if term_id == NO_TERM:
            continue
        if term_id >= 0:
            return kinds | _OTHERS
        value_class, value = value_class_of(term_id), value_of_id(term_id)
        if value_class == INTEGER:
            kinds |= _INTEGERS
            integers[i] = value - INTEGER_BIAS
            reals[i] = np.float64(value - INTEGER_BIAS)
        elif INTEGER < value_class <= QUOTIENT:
            kinds |= _REALS
            reals[i] = value_to_double(value_class, value)
        elif type_of_id(term_id) == _BOOLEAN:
            kinds |= _BOOLEANS
            integers[i] = value & 1
        else:
            return kinds | _OTHERS
    return kinds


def decode_numbers(ids: Ints) -> Numbers | None:
    """A column of ids as integers, as doubles or as booleans; None where some terms are nothing of that."""
    integers, reals = np.empty(ids.shape[0], np.int64), np.empty(ids.shape[0], np.float64)
    kinds = _decode_numbers(ids, integers, reals)
    if kinds == _INTEGERS:
        return integers
    if kinds in (_REALS, _REALS | _INTEGERS):
        return reals
    return integers.astype(np.bool_) if kinds == _BOOLEANS else None
