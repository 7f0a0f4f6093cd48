"""Gathers texts that lie anywhere in an array of bytes into one of their own, by compiled code."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from headwater.terms.compiled_code import compiled
from headwater.terms.ids.prefetching import prefetch

_AHEAD = 8
"""So many texts before it is copied, a text is fetched into the cache: texts lie anywhere in a large array."""
_Ints = npt.NDArray[np.int64]
_Bytes = npt.NDArray[np.uint8]


@compiled
def _copy_bytes(blob, starts, offsets, copied):  # type: ignore[no-untyped-def]
    """Copy the bytes from each start on to their place among the copies."""
    for i in range(starts.shape[0]):
        if i + _AHEAD < starts.shape[0]:
            prefetch(blob, starts[i + _AHEAD])
        shift = starts[i] - offsets[i]
        for place in range(offsets[i], offsets[i + 1]):
            copied[place] = blob[place + shift]


def gather_texts(blob: _Bytes, starts: _Ints, ends: _Ints) -> tuple[_Ints, _Bytes]:
    """The texts that begin and end at these bytes, one behind the other: where each begins, last the end; the bytes."""
    offsets = np.zeros(starts.shape[0] + 1, dtype=np.int64)
    np.cumsum(ends - starts, out=offsets[1:])
    copied = np.empty(int(offsets[-1]), dtype=np.uint8)
    _copy_bytes(blob, starts, offsets, copied)
    return offsets, copied
