"""An engine in this process, for the page: a run in the background, and what the page wants to know of it.

access = EmbeddedAccess()
access.add_stream("gates", files("gates/"))
access.start()
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headwater.datasets.dataset import DataSet
from headwater.engine.engine import Engine
from headwater.engine.query_handle import Query
from headwater.engine.stream_sources import AnySource, as_source
from headwater.errors import SettingError, StateError
from headwater.execution.answer_batch import AnswerBatch
from headwater.execution.answers import Answer
from headwater.explain.notation import Notation
from headwater.language.errors import QueryError
from headwater.running.progress import Progress, QueryProgress, StreamProgress
from headwater.server.page.embedded.answer_history import AnswerHistory
from headwater.server.page.embedded.engine_inspection import SHOWN_ELEMENTS, EngineInspection, WindowSpan, memory_bytes
from headwater.server.page.embedded.linked_data_queries import answer_sparql
from headwater.server.page.embedded.page_values import answer_to_page, dialect_name, joins_table
from headwater.server.page.embedded.query_preview import PREVIEWED_ELEMENTS, produced_stream, run_preview
from headwater.server.page.embedded.recent_elements import read_recent
from headwater.server.page.embedded.template_trials import try_rows
from headwater.server.page.page_access import (
    CompletionWord,
    PageAnswer,
    PageElement,
    PageOverview,
    PagePlan,
    PagePreview,
    PageQuery,
    PageStream,
    PageStreamDetails,
    PageTable,
    PageWindow,
    QueryState,
    TemplateTrial,
    TextCheck,
    TextProblem,
    WhyStep,
)
from headwater.terms.names import iri_to_name, name_to_iri
from headwater.terms.scratch_folders import ScratchFolder

_TRIGGER_SECONDS = 0.25
_STOP_SECONDS = 10.0
_SILENT_SECONDS = 10
"""A stream that others wait for is called silent after so long."""


@dataclass
class _Registered:
    """A query as it was registered, whether it is answered now, and what it answered."""

    query: Query
    text: str
    switches: dict[str, Any]
    history: AnswerHistory
    notation: Notation
    is_paused: bool = False
    last: Answer | None = None


class EmbeddedAccess:
    """What the page asks for, answered by an engine in this process, which `start` runs in the background."""

    def __init__(self, **settings: Any) -> None:
        """`settings` are those of the `Engine`."""
        self._scratch = ScratchFolder("page")
        self._letters = self._scratch.path / "dead-letters"
        self._engine = Engine(in_process=True, dead_letters=self._letters, **settings)
        self._sources: dict[str, AnySource] = {}
        self._datasets: dict[str, DataSet] = {}
        self._queries: dict[str, _Registered] = {}
        self._changing = threading.Lock()
        self._failure = ""
        self._is_started = False
        self._watcher: threading.Thread | None = None

    def add_stream(self, name: str, source: AnySource | str | Path) -> None:
        """Say where a stream comes from."""
        found = as_source(source)
        self._engine.stream(name, found)
        self._sources[name_to_iri(name).value] = found

    def add_dataset(self, name: str, data: Any) -> None:
        """Add linked data under a name that people read."""
        folder = self._engine.dataset(data).folder
        for known, one in list(self._datasets.items()):
            if one.folder == folder:
                # What is copied is one data set.
                del self._datasets[known]
                name = f"{known}, {name}"
        self._datasets[name] = DataSet.open(folder)

    def add_query(self, text: str, name: str | None = None, **switches: Any) -> str:
        """Register a query; gives its name. The switches are those of `Engine.register`."""
        with self._changing:
            if name in self._queries:
                raise SettingError(f"there is a query {name!r} already: give this one another name")
            query = self._engine.register(text, name=name, **switches)
            notation = Notation.of(query.plan)
            self._queries[query.name] = _Registered(query, text, switches, AnswerHistory(), notation)
            return query.name

    def start(self, *, on_progress: Callable[[Progress], object] | None = None) -> None:
        """Run the queries in the background, until `stop`."""
        self._is_started = True
        self._engine.start(on_batch=self._take_answers, on_progress=on_progress, trigger_seconds=_TRIGGER_SECONDS)
        self._watcher = threading.Thread(target=self._watch_run, name="headwater-page-run", daemon=True)
        self._watcher.start()

    def stop(self) -> None:
        """End the run, and remove what was kept for it."""
        self._engine.stop()
        for one in self._queries.values():
            one.history.close()
        if self._watcher is not None:
            self._watcher.join(_STOP_SECONDS)
        self._scratch.remove()

    def _watch_run(self) -> None:
        try:
            self._engine.wait()
        except BaseException as error:
            self._failure = str(error)
        self._is_started = False

    def _take_answers(self, answers: AnswerBatch) -> None:
        for answer in answers:
            known = self._queries.get(answer.query)
            if known is not None:
                known.last = answer if answer.suspended is None else known.last
                known.history.add(answer_to_page(answer, known.notation))

    async def overview(self) -> PageOverview:
        return await asyncio.to_thread(self._overview)

    def _overview(self) -> PageOverview:
        progress = self._engine.progress
        queries = tuple(self._query(one, progress) for one in list(self._queries.values()))
        streams = [self._stream(iri, source, progress) for iri, source in list(self._sources.items())]
        for one in list(self._queries.values()):
            derived = produced_stream(one.query.plan)
            if derived is not None:
                counts = progress.queries.get(one.query.name, QueryProgress())
                name = iri_to_name(derived)
                mark = progress.watermarks.get(name)
                source = f"query {iri_to_name(one.query.name)}"
                streams.append(PageStream(name, source, counts.ticks, watermark=mark, is_derived=True))
        with self._changing:
            datasets = self._inspect().describe_datasets()
        return PageOverview(
            self._is_started, tuple(streams), queries, datasets, progress.elements, memory_bytes(), self._failure
        )

    def _stream(self, iri: str, source: AnySource, progress: Progress) -> PageStream:
        name = iri_to_name(iri)
        counts = progress.streams.get(name, StreamProgress())
        mark = progress.watermarks.get(name)
        return PageStream(name, _describe_source(source), counts.elements, counts.late, counts.bad, counts.ahead, mark)

    def _query(self, one: _Registered, progress: Progress) -> PageQuery:
        counts = progress.queries.get(one.query.name, QueryProgress())
        state = QueryState.PAUSED if one.is_paused else QueryState.RUNNING
        reason = counts.reason or ""
        if counts.suspended is not None and not one.is_paused:
            state, reason = QueryState.SUSPENDED, counts.suspended
        plan, now = one.query.plan, time.time_ns() // 1000
        return PageQuery(
            one.query.name,
            dialect_name(plan.dialect),
            state,
            one.text,
            tuple(dict.fromkeys(iri_to_name(window.stream.value) for window in plan.windows)),
            counts.elements,
            counts.ticks,
            counts.rows,
            counts.lag,
            counts.answered,
            counts.state_rows,
            counts.state_bytes,
            counts.seconds,
            reason,
            counts.evaluator,
            tuple(stream for stream, since in counts.waits_for.items() if now - since > _SILENT_SECONDS * 1_000_000),
        )

    async def validate(self, text: str) -> TextCheck:
        return await asyncio.to_thread(self._validate, text)

    def _validate(self, text: str) -> TextCheck:
        from headwater.algebra.build import plan_query
        from headwater.language.parser import parse

        try:
            parsed = parse(text)
            plan = plan_query(parsed, name="query", streams=sorted(self._sources))
        except QueryError as error:
            problem = TextProblem(error.message, error.line, error.column, error.offset, error.expected)
            return TextCheck(problem)
        made = {produced_stream(one.query.plan) for one in list(self._queries.values())}
        unknown = dict.fromkeys(one.stream.value for one in plan.windows)
        missing = tuple(iri_to_name(iri) for iri in unknown if iri not in self._sources and iri not in made)
        name = iri_to_name(parsed.registration.name) if parsed.registration else ""
        return TextCheck(None, dialect_name(plan.dialect), name, missing)

    async def preview(self, text: str) -> PagePreview:
        return await asyncio.to_thread(self._preview, text)

    def _preview(self, text: str) -> PagePreview:
        recent = {iri: read_recent(source, PREVIEWED_ELEMENTS) for iri, source in list(self._sources.items())}
        plans = {name: one.query.plan for name, one in list(self._queries.items())}
        folders = [data.folder for data in self._datasets.values()]
        result = run_preview(text, plans, recent, folders)
        if result.missing:
            return PagePreview((), f"No element can be read yet of {', '.join(result.missing)}.")
        notation = Notation.of(result.plan)
        answers = tuple(answer_to_page(answer, notation) for answer in result.answers)
        note = f"{result.ticks:,} answers over the last {result.elements:,} elements"
        return PagePreview(answers, f"{note}, {'none of them has rows' if not answers else 'the newest first'}.")

    async def register(self, text: str, *, name: str | None = None) -> str:
        return await asyncio.to_thread(self.add_query, text, name)

    def _known(self, name: str) -> _Registered:
        known = self._queries.get(name)
        if known is None:
            raise StateError(f"there is no query {name!r}")
        return known

    async def pause(self, name: str) -> None:
        await asyncio.to_thread(self._pause, name)

    def _pause(self, name: str) -> None:
        with self._changing:
            known = self._known(name)
            if not known.is_paused:
                self._engine.drop(name)
                known.is_paused = True

    async def resume(self, name: str) -> None:
        await asyncio.to_thread(self._resume, name)

    def _resume(self, name: str) -> None:
        with self._changing:
            known = self._known(name)
            if known.is_paused:
                known.query = self._engine.register(known.text, name=name, **known.switches)
                known.is_paused = False
            elif name in self._engine.progress.suspended:
                self._engine.resume(name)

    async def drop(self, name: str) -> None:
        await asyncio.to_thread(self._drop, name)

    def _drop(self, name: str) -> None:
        with self._changing:
            known = self._known(name)
            if not known.is_paused:
                self._engine.drop(name)
            del self._queries[name]
            known.history.close()

    def answers(self, name: str, after: str | None = None) -> AsyncIterator[PageAnswer]:
        return self._known(name).history.follow(after)

    async def plan(self, name: str) -> PagePlan:
        return await asyncio.to_thread(self._plan, name)

    def _plan(self, name: str) -> PagePlan:
        query = self._known(name).query
        mermaid = query.explain(format="mermaid", graph="operators")
        choices = self._engine.progress.queries.get(name, QueryProgress()).choices
        return PagePlan(mermaid, query.explain(), joins_table(choices))

    async def windows(self, name: str) -> tuple[PageWindow, ...]:
        return await asyncio.to_thread(self._windows, name)

    def _windows(self, name: str) -> tuple[PageWindow, ...]:
        known = self._known(name)
        inputs = () if known.last is None else known.last.inputs
        spans = [WindowSpan(view.label, view.low, view.high, view.items) for view in inputs]
        return self._inspect().windows(known.query, spans)

    def _inspect(self) -> EngineInspection:
        queries = [one.query for one in list(self._queries.values())]
        return EngineInspection(dict(self._sources), queries, dict(self._datasets), self._letters)

    async def why(self, name: str, time: int) -> tuple[WhyStep, ...]:
        known = self._known(name)
        if known.is_paused:
            raise StateError(f"the query {name} is paused: resume it first")
        explanation = await asyncio.to_thread(known.query.why, time)
        return tuple(WhyStep(one.depth, one.text, one.solutions, one.is_end) for one in explanation.steps)

    async def stream_details(self, name: str) -> PageStreamDetails:
        return await asyncio.to_thread(self._stream_details, name)

    def _stream_details(self, name: str) -> PageStreamDetails:
        iri = name_to_iri(name).value
        return self._inspect().stream_details(iri) if iri in self._sources else self._derived_details(iri)

    def _derived_details(self, iri: str) -> PageStreamDetails:
        """What a stream brought that a query makes: the triples of its answers."""
        for one in list(self._queries.values()):
            if produced_stream(one.query.plan) == iri:
                answers = [answer for _, answer in one.history.after(0)][: -SHOWN_ELEMENTS - 1 : -1]
                shown = tuple(
                    PageElement(answer.time, "\n".join(" ".join(map(str, row)) for row in answer.table.rows))
                    for answer in answers
                    if answer.table.rows
                )
                return PageStreamDetails(shown, note=f"Made by the query {iri_to_name(one.query.name)}.")
        raise SettingError(f"there is no stream {iri_to_name(iri)}")

    async def try_template(self, template: str, rows: str, ending: str) -> TemplateTrial:
        return await asyncio.to_thread(try_rows, template, rows, ending)

    async def sparql(self, text: str) -> PageTable:
        return await asyncio.to_thread(answer_sparql, text, [data.folder for data in self._datasets.values()])

    async def completions(self) -> tuple[CompletionWord, ...]:
        return await asyncio.to_thread(self._inspect().completions)


def _describe_source(source: AnySource) -> str:
    """Where a stream comes from, in a few words."""
    patterns: Sequence[str] = getattr(source, "patterns", ())
    if patterns:
        return ", ".join(Path(one).name or one for one in patterns)
    return str(getattr(source, "address", type(source).__name__))
