"""Columns of ids as Arrow arrays of texts: an IRI as it is, a literal as its text."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from headwater.terms.ids.distinct_ids import DistinctIds
from headwater.terms.ids.gathered_texts import gather_texts
from headwater.terms.ids.term_texts import Ints, TermTexts

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt
    import pyarrow as pa

_ANGLE, _BACKSLASH = ord("<"), ord("\\")
_MOST_BYTES = (1 << 31) - 1


def ids_to_texts(ids: Ints, texts: TermTexts, text_of: Callable[[int], str | None]) -> pa.Array:
    """The texts of a column of ids, each made once. IRIs are copied together; `text_of` makes the others."""
    import pyarrow as pa

    distinct = DistinctIds(ids)
    iris, starts, ends = _find_iris(distinct.ids, texts)
    if len(iris) == len(distinct.ids):
        return _copy_texts(texts.blob, starts, ends, distinct.places)
    is_other = np.ones(len(distinct.ids), np.bool_)
    is_other[iris] = False
    others = np.flatnonzero(is_other)
    order = np.empty(len(distinct.ids), np.int64)
    order[iris] = np.arange(len(iris))
    order[others] = np.arange(len(iris), len(distinct.ids))
    made = pa.array([text_of(term_id) for term_id in distinct.ids[others].tolist()], pa.string())
    return pa.concat_arrays([_copy_texts(texts.blob, starts, ends), made]).take(pa.array(order[distinct.places]))


def _find_iris(ids: Ints, texts: TermTexts) -> tuple[Ints, Ints, Ints]:
    """Which ids are IRIs written without escapes, and where their texts begin and end, without brackets."""
    if not len(texts) or not len(ids):
        none = np.empty(0, np.int64)
        return none, none, none
    by_id = texts.ids.argsort()
    places = by_id[np.minimum(texts.ids.searchsorted(ids, sorter=by_id), len(texts) - 1)]
    starts, ends = texts.offsets[places], texts.offsets[places + 1]
    is_iri = (texts.ids[places] == ids) & (texts.blob[starts] == _ANGLE) & (texts.blob[starts + 1] != _ANGLE)
    escapes = np.flatnonzero(texts.blob == _BACKSLASH)
    if len(escapes):
        is_iri &= escapes.searchsorted(starts) == escapes.searchsorted(ends)
    # A longer blob would need offsets of 64 bits.
    is_iri &= (ends - starts).cumsum() <= _MOST_BYTES
    iris = np.flatnonzero(is_iri)
    return iris, starts[iris] + 1, ends[iris] - 1


def _copy_texts(
    blob: npt.NDArray[np.uint8], starts: Ints, ends: Ints, places: npt.NDArray[np.integer] | None = None
) -> pa.Array:
    """The texts between starts and ends; with `places`, those of these numbers, if they are not too long together."""
    import pyarrow as pa

    if places is not None:
        total = int((ends - starts)[places].sum())
        if total > _MOST_BYTES:
            return _copy_texts(blob, starts, ends).take(pa.array(places))
        starts, ends = starts[places], ends[places]
    offsets, copied = gather_texts(blob, starts, ends)
    buffers = [None, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(copied)]
    return pa.Array.from_buffers(pa.string(), len(starts), buffers)
