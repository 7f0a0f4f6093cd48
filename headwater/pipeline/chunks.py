"""Chunks as bytes, for the way from the workers that read to the worker that evaluates."""

from __future__ import annotations

import pickle
from itertools import islice

from headwater.pipeline.feed import Chunk
from headwater.pipeline.packing import text_to_triples, triples_to_text
from headwater.terms.model import Element


def pack_chunk(chunk: Chunk) -> bytes:
    """A chunk as bytes: its triples as N-Triples text, beside them columns of the rest."""
    elements = chunk.elements
    columns = (
        triples_to_text([triple for element in elements for triple in element.triples]),
        [len(element.triples) for element in elements],
        [element.time for element in elements],
        [element.graph for element in elements],
        [element.position for element in elements],
    )
    rest = (chunk.stream, chunk.number, chunk.source, chunk.bad, chunk.ended)
    return pickle.dumps((columns, rest), protocol=pickle.HIGHEST_PROTOCOL)


def unpack_chunk(data: bytes) -> Chunk:
    """The chunk that `pack_chunk` packed."""
    (text, counts, times, graphs, positions), (stream, number, source, bad, ended) = pickle.loads(data)
    triples = iter(text_to_triples(text))
    elements = tuple(
        Element(time, tuple(islice(triples, count)), graph, position)
        for count, time, graph, position in zip(counts, times, graphs, positions, strict=True)
    )
    return Chunk(stream, number, source, elements, bad, ended)
