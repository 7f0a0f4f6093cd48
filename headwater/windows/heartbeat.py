"""Heartbeats: what the machine's clock says about a stream that brings nothing.

A run that follows its sources watches them. A heartbeat is a place in the arrival order of a stream: there everything
that the source had was read. Whoever reads a stream notes its heartbeats in the offsets of batches, so a batch that is
run again has the same ones; a recording has none. What they mean is in `stream_clock`.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple, TypeAlias


class Heartbeat(NamedTuple):
    """A run has watched a stream from `since` to `until`, by the machine's clock, and has read all that there was.

    Both are in microseconds since 1970. Time in which no run watched is no silence, so `since` is when the run began.
    `settled` is given for a source that stamps by arrival: everything with an older timestamp was read, and nothing
    will be stamped so any more.
    """

    since: int
    until: int
    settled: int | None = None


Heartbeats: TypeAlias = Mapping[str, Heartbeat]
"""The heartbeats of streams, by their IRIs."""

NO_HEARTBEATS: Heartbeats = MappingProxyType({})
