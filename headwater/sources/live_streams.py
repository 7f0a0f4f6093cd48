"""The streams of a run that come in while it is at work: what they are told, and when all of them are over."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from headwater.sources.offsets import Offset
from headwater.sources.push import PushSource
from headwater.sources.receivers import ReceivedSource
from headwater.sources.records import RecordSource
from headwater.sources.source import Source


def note_read(sources: Mapping[str, Source | ReceivedSource], offset: Offset) -> None:
    """Tell those who receive streams that these were evaluated up to here."""
    for stream, source in sources.items():
        if isinstance(source, ReceivedSource):
            source.note_read(offset.of(stream))


def has_ended(source: Source | ReceivedSource | None) -> bool:
    """Whether a stream was closed by those who send it, and all of it was evaluated."""
    return isinstance(source, PushSource) and source.is_finished


def has_received(sources: Iterable[Source | ReceivedSource]) -> bool:
    """Whether one of the streams comes in while a run is at work, so that the run has no end of its own."""
    return any(isinstance(source, ReceivedSource) for source in sources)


def are_all_closed(sources: Mapping[str, Source | ReceivedSource]) -> bool:
    """Whether all streams that come in during a run were closed by those who send them, so that the run can end.

    Streams from a network, and records that Spark follows, have no end.
    """
    live = [one for one in sources.values() if isinstance(one, ReceivedSource | RecordSource)]
    return bool(live) and all(isinstance(one, PushSource) and one.closed for one in live)
