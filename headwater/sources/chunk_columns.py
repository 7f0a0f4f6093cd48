"""The elements of a chunk as columns of ids, which they travel as between processes and wait as for their turn."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from headwater.sources.feed import Chunk
from headwater.terms.element_columns import ElementColumns
from headwater.terms.ids.term_ids import encode_with_check
from headwater.terms.ids.term_key import forget_with_hash

_REMEMBERED_TERMS = 1 << 16

_encode = lru_cache(_REMEMBERED_TERMS)(encode_with_check)
forget_with_hash(_encode.cache_clear)


def columns_of(chunk: Chunk) -> ElementColumns:
    """The elements of a chunk as columns."""
    elements = chunk.elements
    return elements if isinstance(elements, ElementColumns) else ElementColumns.of(elements, _encode)


def with_columns(chunk: Chunk) -> Chunk:
    """The same chunk, its elements as columns."""
    return chunk if isinstance(chunk.elements, ElementColumns) else replace(chunk, elements=columns_of(chunk))
