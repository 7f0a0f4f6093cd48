"""Elements as columns of ids, which they travel as between processes and wait as for their turn.

Messages of timed N-Quads become columns many at a time, by the columnar scanner; each keeps elements of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np

from headwater.sources.feed import Chunk, columns_of_scan
from headwater.terms.element_columns import ElementColumns
from headwater.terms.ids.term_ids import encode_with_check
from headwater.terms.ids.term_key import forget_with_hash

_REMEMBERED_TERMS = 1 << 16
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"

_encode = lru_cache(_REMEMBERED_TERMS)(encode_with_check)
forget_with_hash(_encode.cache_clear)


def columns_of(chunk: Chunk) -> ElementColumns:
    """The elements of a chunk as columns."""
    elements = chunk.elements
    return elements if isinstance(elements, ElementColumns) else ElementColumns.of(elements, _encode)


def with_columns(chunk: Chunk) -> Chunk:
    """The same chunk, its elements as columns."""
    return chunk if isinstance(chunk.elements, ElementColumns) else replace(chunk, elements=columns_of(chunk))


def scan_timed_messages(
    payloads: Sequence[bytes | None], item_index: int, offsets: Sequence[int]
) -> ElementColumns | None:
    """The elements of messages, at the positions that `payloads.Decoder` gives them.

    None where a message has something that the decoder must report or look at: then it reads all of them.
    """
    given = [payload for payload in payloads if payload is not None]
    if len(given) < len(payloads):
        return None
    from headwater.terms.scanning.scanner import scan

    text = b"\n".join(given)
    # What these mean depends on where a message begins and ends.
    if b"\r" in text or _BYTE_ORDER_MARK in text:
        return None
    lengths = np.fromiter(map(len, given), dtype=np.int64, count=len(given))
    begins = np.zeros(len(given), dtype=np.int64)
    np.cumsum(lengths[:-1] + 1, out=begins[1:])
    scanned = scan(text, breaks=begins)
    if scanned.bad:
        return None
    columns, _ = columns_of_scan(scanned, item_index, is_whole=True)
    message = np.searchsorted(begins, scanned.element_positions, side="right") - 1
    first_of_message = np.searchsorted(message, message, side="left")
    places = (
        np.full_like(message, item_index),
        np.asarray(offsets, dtype=np.int64)[message],
        np.arange(len(message)) - first_of_message,
    )
    return columns.with_positions(np.stack(places, axis=1))
