"""Where elements stand in their sources, found by their times and triples.

Programs number elements as they come, and forget where they came from. Of each element that is read, its time and its
position are kept, which is little; the text is read again where several have one time.
"""

from __future__ import annotations

import numpy as np

from headwater.sources.feed import Chunk, Feed
from headwater.terms.element_columns import ElementColumns
from headwater.terms.ids.term_texts import Ints
from headwater.terms.model import Triple

_Position = tuple[int, ...]


class ElementPlaces:
    """The sources and positions of the elements that a feed has read."""

    def __init__(self, feed: Feed) -> None:
        self._feed = feed
        self._chunks: dict[str, list[tuple[str, Ints, list[_Position] | Ints]]] = {}
        self._taken: set[tuple[str, str, _Position]] = set()

    def add(self, chunk: Chunk) -> None:
        """Take note of the elements of a chunk."""
        if chunk.stream is None or not chunk.source:
            return
        elements = chunk.elements
        if isinstance(elements, ElementColumns):
            found = chunk.source, elements.times, elements.positions
        else:
            times = np.array([element.time for element in elements], dtype=np.int64)
            found = chunk.source, times, [element.position for element in elements]  # type: ignore[assignment]
        self._chunks.setdefault(chunk.stream, []).append(found)

    def take(self, stream: str, time: int, triples: tuple[Triple, ...]) -> tuple[str, int | None]:
        """The source of an element and its line; where nothing is known of it, no source and no line.

        Equal elements are taken one after the other.
        """
        for source, times, positions in self._chunks.get(stream, ()):
            for place in np.flatnonzero(times == time).tolist():
                position = tuple(int(part) for part in positions[place])
                key = stream, source, position
                if key not in self._taken and self._has(*key, triples):
                    self._taken.add(key)
                    (line,) = self._feed.line_numbers(stream, source, [position])
                    return source, line
        return "", None

    def _has(self, stream: str, source: str, position: _Position, triples: tuple[Triple, ...]) -> bool:
        text = self._feed.text_at(stream, source, position)
        return text is None or all(str(triple) in text for triple in triples)
