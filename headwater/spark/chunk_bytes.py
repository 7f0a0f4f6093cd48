"""Chunks as bytes, for the way from the workers that read to the worker that evaluates.

Elements travel as columns of ids (`terms.element_columns`); one binary value holds all of a chunk, because rows are
what costs time between processes.
"""

from __future__ import annotations

from headwater.sources.chunk_columns import columns_of
from headwater.sources.feed import Chunk
from headwater.terms.element_columns import ElementColumns
from headwater.terms.model import BadElement
from headwater.terms.packing import pack, unpack
from headwater.windows.heartbeat import Heartbeat


def pack_chunk(chunk: Chunk) -> bytes:
    """A chunk as bytes, its elements as columns."""
    columns = columns_of(chunk)
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
