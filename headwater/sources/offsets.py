"""How far the sources of a run have been read: a value that a checkpoint can hold as JSON.

Items (files) are kept in the order in which they were first listed. The index of an item begins the positions of its
elements, so it defines the arrival order together with the place in the item. Two items may have one name, where a file
took the place of another.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from headwater.windows.heartbeat import Heartbeat

_INSIDE, _AT_END, _WHOLE, _GONE = 0, 1, 2, 3


@dataclass(frozen=True, slots=True)
class ItemOffset:
    """How far one item was read; `is_at_end` where it had no more at the time.

    `identity` says which file it was, whatever is under its name now (`file_identity`); `is_gone` where it is not found
    any more.
    """

    name: str
    end: int = 0
    is_at_end: bool = False
    is_whole: bool = False
    identity: str = ""
    is_gone: bool = False

    @property
    def folder(self) -> str:
        """The folder in which the file was."""
        return os.path.dirname(self.name)

    def to_json(self) -> list[Any]:
        state = _GONE if self.is_gone else _WHOLE if self.is_whole else _AT_END if self.is_at_end else _INSIDE
        return [self.name, self.end, state, self.identity]

    @classmethod
    def from_json(cls, value: list[Any]) -> ItemOffset:
        name, end, state, identity = value
        return cls(name, end, state == _AT_END, state == _WHOLE, identity, state == _GONE)


@dataclass(frozen=True, slots=True)
class StreamOffset:
    """How far one stream was read; `has_ended` where a batch carried the end of the stream.

    `heartbeat` is the last one of a live stream.
    """

    items: tuple[ItemOffset, ...] = ()
    has_ended: bool = False
    heartbeat: Heartbeat | None = None

    def to_json(self) -> dict[str, Any]:
        found: dict[str, Any] = {"items": [item.to_json() for item in self.items], "ended": self.has_ended}
        return found if self.heartbeat is None else found | {"heartbeat": list(self.heartbeat)}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> StreamOffset:
        heartbeat = Heartbeat(*value["heartbeat"]) if "heartbeat" in value else None
        return cls(tuple(map(ItemOffset.from_json, value["items"])), value["ended"], heartbeat)


@dataclass(frozen=True, slots=True)
class Offset:
    """How far all streams were read; `has_begun` is false only before the first batch.

    `version` is that of the data sets, which belongs to the batch that ends here: one that is run again sees the same.
    """

    streams: Mapping[str, StreamOffset] = field(default_factory=dict)
    has_begun: bool = False
    version: tuple[int, ...] = ()

    def of(self, stream: str) -> StreamOffset:
        """How far one stream was read."""
        return self.streams.get(stream, StreamOffset())

    def without_heartbeats(self) -> Offset:
        """The same offset without the heartbeats: equal where nothing was read in between."""
        streams = {stream: replace(offset, heartbeat=None) for stream, offset in self.streams.items()}
        return replace(self, streams=streams)

    def heartbeats_since(self, before: Offset) -> dict[str, Heartbeat]:
        """The heartbeats by stream that are not those of an offset before."""
        return {
            stream: offset.heartbeat
            for stream, offset in self.streams.items()
            if offset.heartbeat is not None and offset.heartbeat != before.of(stream).heartbeat
        }

    def to_json(self) -> dict[str, Any]:
        """A value of plain lists, dictionaries, strings and numbers."""
        return {
            "begun": self.has_begun,
            "version": list(self.version),
            "streams": {stream: offset.to_json() for stream, offset in self.streams.items()},
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Offset:
        """The offset that `to_json` wrote."""
        streams = {stream: StreamOffset.from_json(offset) for stream, offset in value["streams"].items()}
        return cls(streams, value["begun"], tuple(value["version"]))
