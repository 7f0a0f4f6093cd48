"""Chunks as bytes, for the way from the workers that read to the worker that evaluates.

Elements travel as columns of ids (`terms.element_columns`); one binary value holds all of a chunk, because rows are
what costs time between processes.
"""

from __future__ import annotations

import pickle
from dataclasses import replace
from functools import lru_cache

from headwater.sources.feed import Chunk
from headwater.terms.element_columns import ElementColumns
from headwater.terms.ids.term_ids import encode

_REMEMBERED_TERMS = 1 << 16

_encode = lru_cache(_REMEMBERED_TERMS)(encode)


def with_columns(chunk: Chunk) -> Chunk:
    """The same chunk, its elements as columns."""
    elements = chunk.elements
    if isinstance(elements, ElementColumns):
        return chunk
    return replace(chunk, elements=ElementColumns.of(elements, _encode))


def pack_chunk(chunk: Chunk) -> bytes:
    """A chunk as bytes, its elements as columns."""
    return pickle.dumps(with_columns(chunk), protocol=pickle.HIGHEST_PROTOCOL)


def unpack_chunk(data: bytes) -> Chunk:
    """The chunk that `pack_chunk` packed, its elements as columns."""
    chunk: Chunk = pickle.loads(data)
    return chunk
