"""How far the sources of a run have been read: a value that a checkpoint can hold as JSON.

Items (files) are remembered in the order in which they were seen; the number of an item is the first part of the
positions of its elements, so it defines the arrival order together with the place in the item.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

_INSIDE, _AT_END, _WHOLE = 0, 1, 2


@dataclass(frozen=True, slots=True)
class Mark:
    """How far one item was read; `at_end` where it had no more at the time."""

    name: str
    end: int = 0
    at_end: bool = False
    whole: bool = False

    def to_json(self) -> list[Any]:
        return [self.name, self.end, _WHOLE if self.whole else _AT_END if self.at_end else _INSIDE]

    @classmethod
    def from_json(cls, value: list[Any]) -> Mark:
        name, end, state = value
        return cls(name, end, state == _AT_END, state == _WHOLE)


@dataclass(frozen=True, slots=True)
class StreamOffset:
    """How far one stream was read; `ended` where its readers were told that nothing more will come."""

    marks: tuple[Mark, ...] = ()
    ended: bool = False


@dataclass(frozen=True, slots=True)
class Offset:
    """How far all streams were read; `begun` is false only before the first batch.

    `version` is that of the data sets, which belongs to the batch that ends here: one that is run again sees the same.
    """

    streams: Mapping[str, StreamOffset] = field(default_factory=dict)
    begun: bool = False
    version: tuple[int, ...] = ()

    def of(self, stream: str) -> StreamOffset:
        return self.streams.get(stream, StreamOffset())

    def ends_a_stream_of(self, start: Offset) -> bool:
        """Whether a stream has its end between a start and here."""
        return any(offset.ended and not start.of(stream).ended for stream, offset in self.streams.items())

    def to_json(self) -> dict[str, Any]:
        """A value of plain lists, dictionaries, strings and numbers."""
        return {
            "begun": self.begun,
            "version": list(self.version),
            "streams": {
                stream: {"items": [mark.to_json() for mark in offset.marks], "ended": offset.ended}
                for stream, offset in self.streams.items()
            },
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Offset:
        streams = {
            stream: StreamOffset(tuple(map(Mark.from_json, offset["items"])), offset["ended"])
            for stream, offset in value["streams"].items()
        }
        return cls(streams, value["begun"], tuple(value["version"]))
