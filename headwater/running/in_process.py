"""The runner without Spark: one loop in this process. For notebooks, tests, small data and the lowest latency.

With a checkpoint (`saved_runs`) a batch is planned on disk before it is delivered, and committed after.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from threading import Event

from headwater.execution.program_steps import TickPace
from headwater.execution.static_data import Version, is_before
from headwater.execution.tick_thinning import Clock
from headwater.running.batch_reading import BatchSize, ReadAhead, without_version
from headwater.running.compiling_process import start_compiling_process
from headwater.running.delivery import Delivery
from headwater.running.evaluation import Evaluation
from headwater.running.resting import Rest
from headwater.running.saved_runs import SavedRun
from headwater.running.version_choice import VersionChoice
from headwater.running.workload import Workload, WorkloadChanges
from headwater.sources.feed import Feed
from headwater.sources.following.stream_watch import StreamWatch
from headwater.sources.offsets import Offset
from headwater.values.query_guard import Interruption, QueryGuard, RunStopped
from headwater.values.query_limits import QueryLimits


def run_in_process(
    workload: Workload,
    changes: WorkloadChanges,
    delivery: Delivery,
    stop: Event,
    *,
    follow: bool = False,
    drain: bool = True,
    checkpoint: Path | None = None,
    accept_state: Callable[[], None] = lambda: None,
    batch_bytes: int | None = None,
    data_changes: bool = False,
    trigger_seconds: float | None = None,
    skips_ticks: bool = False,
    interruption: Interruption | None = None,
    clock: Clock = time.monotonic,
    watch: StreamWatch | None = None,
    woken: Event | None = None,
    on_read: Callable[[Offset], None] = lambda offset: None,
    is_finished: Callable[[], bool] | None = None,
) -> None:
    """Read, evaluate and deliver until everything is read or, when following, until `stop` is set.

    `data_changes` says that there is data that may be another one at any tick. Where answers are handed over one by
    one, each tick is then delivered before the next one is answered, so that a change made because of one answer is
    seen by the next tick; otherwise ticks that are due together may share a step (`TickPace`). `accept_state` is called
    when the state of the checkpoint was read. With `skips_ticks`, a run that follows and falls behind evaluates fewer
    ticks, by `clock`. `watch` gives the heartbeats of live streams that are followed. `interruption` ends a batch that
    takes too long when the run is stopped. A run that does not follow its sources ends with the error of a query when
    all queries are suspended.

    A run without a query waits for one; it ends where it does not follow. `woken` is set by whoever has something new
    for a run at rest. `on_read` is called when a batch was delivered. A run that follows only until `is_finished` then
    answers what is left, and ends.
    """
    if (begun := changes.wait_for_queries(workload, stop)) is None:
        return
    workload = begun
    start_compiling_process()
    evaluation = Evaluation(workload.description.program(interruption))
    if skips_ticks and follow:
        evaluation.thin_ticks(clock)
    saved = None if checkpoint is None else SavedRun(checkpoint)
    batch, offset = (0, Offset()) if saved is None else saved.load(evaluation)
    accept_state()
    delivery.note_suspended({name: one.reason for name, one in evaluation.suspensions.items()})
    if not follow:
        evaluation.raise_if_all_suspended()
    choice = VersionChoice(evaluation.prepare_version)
    pace = None if delivery.has_answer_callback else TickPace()
    watch = (watch or StreamWatch()) if follow else None
    feed = _feed(workload, watch, drain)

    def choose_step(tick: int) -> tuple[int, Version]:
        newest = feed.newest_version()
        planned = None if saved is None else saved.take_planned_step()
        if planned is not None:
            tick, version = planned
            return tick, version if is_before(version, newest) else newest
        version = choice.next(evaluation.data_version, newest)
        if saved is not None:
            saved.plan_step(tick, version)
        return tick, version

    size, read_ahead = BatchSize(batch_bytes), ReadAhead()
    rest, save_seconds = Rest(woken, stop, trigger_seconds), 0.0
    sink_guard = QueryGuard(QueryLimits(seconds=math.inf), interruption=interruption)
    while not stop.is_set():
        if (other := changes.take()) is not None:
            next_one = changes.wait_for_queries(other, stop) if follow or other.description.queries else None
            if next_one is None:
                break
            workload = next_one
            evaluation.replace_program(workload.description.program(interruption))
            delivery.note_suspended({name: one.reason for name, one in evaluation.suspensions.items()})
            if skips_ticks and follow:
                evaluation.thin_ticks(clock)
            feed = _feed(workload, watch, drain)
            read_ahead.forget()
        if follow and is_finished is not None and is_finished():
            # Nothing more comes: no clock moves the streams, they end.
            follow, watch = False, None
            feed = _feed(workload, watch, drain)
        is_repeated = saved is not None and saved.planned is not None
        end = saved.planned if saved is not None else None
        if end is None and (ahead := read_ahead.planned_end_after(offset)) is not None:
            end = replace(ahead, version=feed.newest_version())
        end = end or feed.next_offset(offset, size.limit)
        if changes.is_requested:
            # What came after a change is for those who are there then.
            continue
        is_silent = not is_repeated and _is_silent(offset, end)
        heartbeats = end.heartbeats_since(offset)
        if is_silent and not (heartbeats and evaluation.is_answer_due(heartbeats)):
            if not follow:
                return
            size.shrink()
            evaluation.prepare_newest()
            rest.wait(feed, save_seconds)
            continue
        if not is_silent:
            rest.note_news()
        if saved is not None:
            saved.plan_batch(batch, end)
        chunks = read_ahead.take(feed, offset, end)
        size.grow()
        if not follow and size.is_worth_a_thread:
            # What comes next is there: it is read while this batch is evaluated.
            read_ahead.plan(feed, end, size.limit)
        outcomes = (
            evaluation.step_by_ticks(chunks, choose_step, pace)
            if data_changes
            else (evaluation.step(one) for one in [chunks])
        )
        try:
            for outcome in outcomes:
                if not follow and evaluation.suspensions:
                    # A run from the checkpoint tries this batch again, perhaps with higher limits.
                    evaluation.raise_if_all_suspended()
                delivery.deliver(batch, outcome, is_repeated=is_repeated, guard=sink_guard)
                batch += 1
                if choice.is_behind(evaluation.data_version):
                    evaluation.prepare_newest()
        except RunStopped:
            # A run from the checkpoint repeats the batch, as it was planned.
            break
        offset = replace(end, version=evaluation.data_version)
        if saved is not None:
            begin = time.monotonic()
            saved.commit(batch, offset, evaluation.snapshot())
            save_seconds = time.monotonic() - begin
            delivery.add_seconds("save", save_seconds)
        feed.commit(offset)
        on_read(offset)
        if is_silent:
            size.shrink()
            # Heartbeats have no end: the next one comes when the sources are looked at again.
            rest.wait(feed, save_seconds)
    read_ahead.forget()


def _is_silent(begin: Offset, end: Offset) -> bool:
    """Whether nothing but heartbeats and a version of the data lies between two offsets."""
    return without_version((begin.without_heartbeats(),)) == without_version((end.without_heartbeats(),))


def _feed(workload: Workload, watch: StreamWatch | None, drain: bool) -> Feed:
    """The feed of a run that follows, if it has a watch, or of one that reads what there is now."""
    feed = workload.feed(drain=drain, watch=watch)
    if watch is None:
        feed.finish()
    return feed
