"""What the engine process is told when it begins: plain values, which the HTTP process made of the settings file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from headwater.server.process.registry import QueryEntry, StreamEntry
from headwater.terms.packing import Plain


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """The folder of the state, the arguments of `Engine`, and what stands in the settings file."""

    state: str
    in_process: bool = True
    engine: Mapping[str, Any] = field(default_factory=dict)
    """Arguments of `Engine`: delay, idle, max_ahead, batch_bytes, window_cap, limits, master, locate_streams."""
    trigger_seconds: float = 0.1
    egress: Mapping[str, Any] = field(default_factory=dict)
    """`allow` and `networks` of the egress policy; nothing is allowed that is not listed."""
    endpoints: tuple[Mapping[str, Any], ...] = ()
    """Arguments of `Engine.endpoint`."""
    data: tuple[Mapping[str, Any], ...] = ()
    """Arguments of `Engine.dataset`."""
    queries: Mapping[str, QueryEntry] = field(default_factory=dict)
    streams: Mapping[str, StreamEntry] = field(default_factory=dict)
    retention_seconds: float = 86_400.0
    retention_bytes: int = 64 << 20
    most_queries: int = 200
    most_streams: int = 200
    most_unread: int = 256 << 20
    preview_seconds: float = 10.0

    def to_plain(self) -> Plain:
        """All of it as plain values."""
        return asdict(self)

    @classmethod
    def from_plain(cls, value: Plain) -> EngineSettings:
        """The settings that `to_plain` gave."""
        queries = {name: QueryEntry(**entry) for name, entry in value["queries"].items()}
        streams = {name: StreamEntry(**entry) for name, entry in value["streams"].items()}
        return cls(**{**value, "queries": queries, "streams": streams})
