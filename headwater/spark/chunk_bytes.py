"""Chunks as bytes, for the way from the workers that read to the worker that evaluates.

Elements travel as columns of ids (`terms.element_columns`); one binary value holds all of a chunk, because rows are
what costs time between processes.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from headwater.sources.feed import Chunk
from headwater.terms.element_columns import ElementColumns
from headwater.terms.ids.term_ids import encode_with_check
from headwater.terms.ids.term_key import forget_with_hash
from headwater.terms.model import BadElement
from headwater.terms.packing import pack, unpack
from headwater.windows.heartbeat import Heartbeat

_REMEMBERED_TERMS = 1 << 16

_encode = lru_cache(_REMEMBERED_TERMS)(encode_with_check)
forget_with_hash(_encode.cache_clear)


def with_columns(chunk: Chunk) -> Chunk:
    """The same chunk, its elements as columns."""
    elements = chunk.elements
    if isinstance(elements, ElementColumns):
        return chunk
    return replace(chunk, elements=ElementColumns.of(elements, _encode))


def pack_chunk(chunk: Chunk) -> bytes:
    """A chunk as bytes, its elements as columns."""
    columns = with_columns(chunk).elements
    assert isinstance(columns, ElementColumns)
    bad = [(one.reason, one.text, one.source, one.position, one.line) for one in chunk.bad]
    elements = columns.to_plain()
    rest = (chunk.has_ended, chunk.version, chunk.heartbeat and tuple(chunk.heartbeat))
    return pack([chunk.stream, chunk.item_index, chunk.source, elements, bad, *rest])


def unpack_chunk(data: bytes) -> Chunk:
    """The chunk that `pack_chunk` packed, its elements as columns."""
    stream, item_index, source, elements, bad, has_ended, version, beat = unpack(data)
    columns = ElementColumns.from_plain(elements)
    heartbeat = None if beat is None else Heartbeat(*beat)
    bad_ones = tuple(BadElement(*one) for one in bad)
    return Chunk(stream, item_index, source, columns, bad_ones, has_ended, version, heartbeat)
