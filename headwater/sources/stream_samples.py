"""Samples of streams: the first elements of their files, for the lint and for explanations."""

from __future__ import annotations

from itertools import chain, islice, takewhile
from typing import TypedDict

import numpy as np

from headwater.linting.observed_data import StreamSample, index_triples
from headwater.sources.files import FileSource, MemorySource
from headwater.sources.source import ItemRange
from headwater.terms.model import BadElement, Element
from headwater.terms.statements import graph_term
from headwater.terms.timed_graphs import missing_graph_time

SAMPLED_ELEMENTS = 10_000
"""How many elements of a stream a sample has at most."""

_SAMPLED_BYTES = 4 << 20
"""In so many bytes of each file JSON rows are looked at for the columns that they have."""

_LARGEST_WHOLE = 32 << 20
"""Larger files that can only be read as a whole are left out."""


class _Late(TypedDict):
    late: int
    late_by: int
    first_late: tuple[int, int] | None


def sample_stream(source: object, most: int = SAMPLED_ELEMENTS) -> StreamSample | None:
    """The first elements of a stream of files or in memory; None for other sources, which cannot be read twice."""
    if not isinstance(source, FileSource | MemorySource):
        return None
    items = source.list_items()
    ranges = [ItemRange(item.name, 0, item.size, is_whole=source.needs_whole_read(item)) for item in items]
    chosen = list(takewhile(lambda one: not one.is_whole or one.end <= _LARGEST_WHOLE, ranges))
    arrivals = chain.from_iterable(source.read(one) for one in chosen)
    read = list(islice(arrivals, most))
    is_whole = len(chosen) == len(ranges) and next(arrivals, None) is None
    template = source.template if isinstance(source, FileSource) else None
    columns = source.list_columns(_SAMPLED_BYTES) if isinstance(source, FileSource) else frozenset()
    elements = [one for one in read if isinstance(one, Element)]
    bad = [one for one in read if isinstance(one, BadElement)]
    times = [element.time for element in elements if element.time is not None]
    return StreamSample(
        len(elements),
        is_whole,
        index_triples(triple for one in elements for triple in (*one.triples, *missing_graph_time(one))),
        min(times, default=None),
        max(times, default=None),
        len(bad),
        _describe_bad(bad[0]) if bad else "",
        frozenset(graph_term(element.graph) for element in elements if element.graph is not None),
        columns,
        template.expected_columns - columns if template is not None and columns else frozenset(),
        **_find_late(times),
        is_empty=not any(item.size for item in items),
    )


def _find_late(times: list[int]) -> _Late:
    """What a sample says about elements that are older than one before them; `times` are in the order of arrival."""
    given = np.array(times, dtype=np.int64)
    highest = np.maximum.accumulate(given)
    late = np.flatnonzero(given < highest)
    first = (times[late[0]], int(highest[late[0]])) if len(late) else None
    return {"late": len(late), "late_by": int((highest - given).max(initial=0)), "first_late": first}


def _describe_bad(bad: BadElement) -> str:
    place = bad.source if bad.line is None else f"{bad.source}, line {bad.line}"
    return f"{place}: {bad.reason}"
