"""The clocks of a program's streams: how they are made, how heartbeats move them, and what that leads to."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from headwater.execution.evaluator import Evaluator
from headwater.execution.registered import RegisteredQuery
from headwater.execution.suspension import SuspendedEvaluator
from headwater.execution.window_log import StreamKey
from headwater.terms.names import iri_to_name
from headwater.windows.element_sequences import times_of
from headwater.windows.heartbeat import Heartbeats
from headwater.windows.partitioned_clock import make_clock
from headwater.windows.stream_clock import DerivedStreamClock, StreamClock, combine_clocks


def make_clocks(
    keys: Iterable[StreamKey],
    produced: Collection[str],
    delay: int,
    idle: Mapping[str, int],
    skews: Mapping[str, int],
    max_ahead: int | None,
) -> dict[StreamKey, StreamClock]:
    """A clock for each stream key: partitions have no order across them, and queries produce in the order of time."""
    clocks: dict[StreamKey, StreamClock] = {}
    for key in sorted(keys, key=str):
        stream = key[0]
        if stream in produced:
            clocks[key] = DerivedStreamClock()
        else:
            clocks[key] = make_clock(delay, idle.get(stream), max_ahead, skews.get(stream))
    return clocks


def keys_by_stream(keys: Iterable[StreamKey]) -> dict[str, list[StreamKey]]:
    """The keys of each stream."""
    found: dict[str, list[StreamKey]] = {}
    for key in keys:
        found.setdefault(key[0], []).append(key)
    return found


def watermark_of(clocks: Sequence[StreamClock]) -> tuple[int | None, bool, int | None]:
    """The watermark of some streams together, whether all have ended, and the time after the newest element."""
    watermark, ended = combine_clocks(clocks)
    newest = max((one.highest_time + 1 for one in clocks if one.highest_time is not None), default=None)
    return watermark, ended, newest


def find_answer_limit(clocks: Sequence[StreamClock]) -> int | None:
    """The instant before which all ticks over these clocks are answered; None where the streams have not begun."""
    watermark, ended = combine_clocks(clocks)
    if not ended:
        return watermark
    return max(
        (max(c.highest_time + 1, c.closed_before or c.highest_time) for c in clocks if c.highest_time is not None),
        default=None,
    )


def take_heartbeats(clocks: Mapping[StreamKey, StreamClock], heartbeats: Heartbeats) -> None:
    """Have the clocks of streams take their heartbeats, after the elements of the batch were admitted."""
    for key, clock in clocks.items() if heartbeats else ():
        if key[0] in heartbeats:
            clock.beat(heartbeats[key[0]])


def pass_watermark_on(
    clocks: Mapping[StreamKey, StreamClock], stream: str, watermark: int | None, until: int | None
) -> None:
    """Move the clock of a produced stream: the query that produces it has answered every tick before these instants.

    Its answers may have been empty and omitted; who reads the stream need not wait for the next one.
    """
    clock = clocks.get((stream, None))
    if clock is not None and watermark is not None:
        clock.close(watermark if until is None else min(watermark, until))


def is_answer_due(
    evaluators: Sequence[Evaluator],
    clocks: Mapping[StreamKey, StreamClock],
    produced: Mapping[str, RegisteredQuery],
    heartbeats: Heartbeats,
) -> bool:
    """Whether heartbeats would make a tick due; the clocks stay as they are.

    It may say so where no answer comes of it. `evaluators` are in order: who produces comes before who reads.
    """
    moved = {key: replace(clock) for key, clock in clocks.items()}
    take_heartbeats(moved, heartbeats)
    for evaluator in evaluators:
        watermark, ended, floor = watermark_of([moved[key] for key in evaluator.keys])
        for stream, query in produced.items():
            if query.plan.name in evaluator.names:
                pass_watermark_on(moved, stream, watermark, None)
        if watermark is None or isinstance(evaluator, SuspendedEvaluator):
            continue
        if any(len(some) and times_of(some).min() < watermark for some in evaluator.waiting.values()):
            return True
        if not ended and evaluator.ticker.next_tick(watermark, floor) is not None:
            return True
    return False


def list_awaited_streams(evaluator: Evaluator, clocks: Sequence[StreamClock]) -> tuple[str, ...]:
    """The names of the streams that an evaluator waits for: those that hold back elements which are there.

    An evaluator over one stream waits for no other: its last elements are in windows that have not closed yet.
    """
    if len({key[0] for key in evaluator.keys}) < 2:
        return ()
    running = {key: clock for key, clock in zip(evaluator.keys, clocks, strict=True) if not clock.has_ended}
    watermark, _ = combine_clocks(running.values())
    is_held_back = any(len(some) for some in evaluator.waiting.values())
    if not is_held_back or isinstance(evaluator, SuspendedEvaluator):
        return ()
    awaited = [key[0] for key, clock in running.items() if clock.complete_before in (None, watermark)]
    silent = [key[0] for key, clock in running.items() if clock.complete_before is None]
    return tuple(dict.fromkeys(map(iri_to_name, silent or awaited)))
