"""What the page asks for, answered by the server: its last known counts, its log of answers, and its engine process.

There is one for each open page, because who looks decides what is shown and allowed.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from functools import lru_cache
from typing import Any

from headwater.errors import SettingError, StateError
from headwater.language.errors import QueryError
from headwater.language.parser import parse
from headwater.language.query import ParsedQuery
from headwater.server.access import Caller, Scope
from headwater.server.answers.event_ids import EventId
from headwater.server.answers.log_files import LogPlace, LogReader, LogRecord, list_segments, read_segment
from headwater.server.page.embedded.completion_words import list_completions
from headwater.server.page.embedded.page_values import dialect_name
from headwater.server.page.page_access import (
    CompletionWord,
    PageAnswer,
    PageDataSet,
    PageDeadLetter,
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
from headwater.server.page.served.logged_answers import logged_answer_to_page
from headwater.server.problems import Problem
from headwater.server.process.call_errors import CallError, EngineDown
from headwater.server.routes.path_names import check_name
from headwater.server.server_services import ServerServices
from headwater.server.stream_rights import check_stream_rights
from headwater.terms.names import iri_to_name

_LOOK_SECONDS = 0.25
_PROCESS_SECONDS = 2.0
_SILENT_SECONDS = 10
_FIRST_ANSWERS = 300
_STATES = {"paused": QueryState.PAUSED, "suspended": QueryState.SUSPENDED, "failed": QueryState.SUSPENDED}

Note = Callable[[str, str], None]
"""Writes into the audit log what was done, and to what."""


class ServerAccess:
    """The server as a caller sees it; `note` is called with what the caller changed."""

    def __init__(self, server: ServerServices, caller: Caller, note: Note) -> None:
        self._server = server
        self._caller = caller
        self._note = note
        self._datasets: tuple[PageDataSet, ...] = ()
        self._memory: int | None = None
        self._asked_at = float("-inf")

    def _check(self, scope: Scope, *, query: str | None = None, stream: str | None = None) -> None:
        if not self._caller.may(scope, query=query, stream=stream):
            raise StateError(f"your token does not allow this: it needs the scope {scope}")

    async def _check_stream_rights(self, scope: Scope, text: str) -> None:
        """Raise a `StateError` where a query text reads or makes a stream for which the caller has no right."""
        try:
            await check_stream_rights(self._caller, scope, text, None, self._server.status["streams"])
        except Problem as problem:
            raise StateError(f"your token does not allow this: {problem.detail}") from None

    async def _call(self, method: str, /, **arguments: Any) -> Any:
        return await self._server.engine.call(method, **arguments)

    async def overview(self) -> PageOverview:
        self._check("read")
        status = self._server.visible_status(self._caller)
        run = status["run"]
        await self._ask_process()
        counts = run.get("streams", {})
        queries = [_query(name, one) for name, one in status["queries"].items()]
        streams = [_stream(name, one, counts) for name, one in status["streams"].items()]
        failure = status["failure"] or ""
        if not self._server.engine.is_ready:
            gone = self._server.engine.failure
            failure = "the engine is being started; what was answered is kept, and it goes on by itself"
            if gone is not None:
                failure = "the engine cannot begin: the server's log and /ready say why"
        return PageOverview(
            self._server.engine.is_ready,
            tuple(streams),
            tuple(queries),
            self._datasets,
            run.get("elements", sum(one.elements for one in streams)),
            self._memory,
            failure,
        )

    async def _ask_process(self) -> None:
        """Ask the engine process for its data and its memory, now and then; while it is away, the last ones hold."""
        if time.monotonic() - self._asked_at > _PROCESS_SECONDS and self._server.engine.is_ready:
            self._asked_at = time.monotonic()
            with suppress(EngineDown):
                found = await self._call("page_process")
                self._datasets = tuple(PageDataSet(**one) for one in found["datasets"])
                self._memory = found["memory"]

    async def validate(self, text: str) -> TextCheck:
        self._check("read")
        with suppress(CallError):
            # Where a text is wrong, the engine says the same.
            await self._check_stream_rights("read", text)
        found = await self._call("validate", text=text)
        if not found["valid"]:
            first = found["errors"][0]
            offset = _offset_of(text, first["line"], first["column"])
            problem = TextProblem(first["message"], first["line"], first["column"], offset, tuple(first["expected"]))
            return TextCheck(problem)
        parsed = parse_known(text)
        name = parsed.registration.name if parsed is not None and parsed.registration else ""
        made = {name for name in self._server.status["queries"]}
        unknown = tuple(one for one in found["unknown_streams"] if one not in made)
        dialect = "" if parsed is None else dialect_name(parsed.dialect)
        return TextCheck(None, dialect, iri_to_name(name), unknown)

    def _visible_streams(self) -> list[str]:
        return [name for name in self._server.status["streams"] if self._caller.may("read", stream=name)]

    async def preview(self, text: str) -> PagePreview:
        self._check("read")
        await self._check_stream_rights("read", text)
        found = await self._call("preview", text=text, options={})
        if found["answer"] is None:
            return PagePreview((), "The windows hold nothing that gives an answer yet.")
        note = "The answer at the newest element" + ("." if found["whole"] else ", as far as there was time to read.")
        return PagePreview((logged_answer_to_page("", found["answer"], _prefixes(text)),), note)

    async def register(self, text: str, *, name: str | None = None) -> str:
        parsed = parse(text)
        known = self._server.status["queries"]
        chosen = name or (iri_to_name(parsed.registration.name) if parsed.registration else _free_name(known))
        self._check("register", query=chosen)
        try:
            check_name("query", chosen)
        except Problem as problem:
            raise SettingError(f"{problem.title}: {problem.detail}") from None
        await self._check_stream_rights("register", text)
        if chosen in known:
            raise SettingError(f"there is a query {chosen!r} already: give this one another name")
        await self._call("put_query", name=chosen, text=text, options={}, owner=self._caller.name)
        self._note("register", chosen)
        return chosen

    async def pause(self, name: str) -> None:
        await self._change("pause", name)

    async def resume(self, name: str) -> None:
        await self._change("resume", name)

    async def drop(self, name: str) -> None:
        await self._change("drop", name)

    async def _change(self, action: str, name: str) -> None:
        self._check("register", query=name)
        await self._call(f"{action}_query", name=name)
        self._note(action, name)

    def answers(self, name: str, after: str | None = None) -> AsyncIterator[PageAnswer]:
        self._check("read", query=name)
        if name not in self._server.status["queries"]:
            raise StateError(f"there is no query {name!r}")
        return self._follow(name, None if after is None else EventId.parse(after))

    async def _follow(self, name: str, last: EventId | None) -> AsyncIterator[PageAnswer]:
        """The newest answers of the log, and then what is added to it."""
        reader = self._server.fan_out.reader(name)
        records, place = await asyncio.to_thread(_read_tail, reader)
        seen: object = None
        while True:
            query = self._server.status["queries"].get(name)
            if query is None:
                return
            prefixes, emit = _prefixes(query["text"]), query.get("emit") or "rstream"
            for id, line in _lines(records):
                if last is None or id > last:
                    last = id
                    yield logged_answer_to_page(str(id), json.loads(line), prefixes, emit)
            records = []
            news = (query.get("counts", {}).get("ticks"), self._server.engine.starts, query.get("status"))
            if news != seen:
                seen = news
                read = await asyncio.to_thread(_read_from, reader, place)
                records, place = [one for one, _ in read], read[-1][1] if read else place
            if not records:
                await asyncio.sleep(_LOOK_SECONDS)

    async def plan(self, name: str) -> PagePlan:
        self._check("read", query=name)
        found = await self._call("page_plan", name=name)
        rows = tuple(tuple(row) for row in found["rows"])
        return PagePlan(found["mermaid"], found["text"], PageTable(tuple(found["columns"]), rows))

    async def windows(self, name: str) -> tuple[PageWindow, ...]:
        self._check("read", query=name)
        last = await asyncio.to_thread(self._server.fan_out.reader(name).last_record)
        inputs = [] if last is None else json.loads(last[0].lines[-1]).get("inputs", [])
        spans = [[one["window"], one["from_us"], one["before_us"], one["items"]] for one in inputs]
        found = await self._call("page_windows", name=name, spans=spans)
        return tuple(PageWindow(**{**one, "elements": _elements(one["elements"])}) for one in found)

    async def why(self, name: str, time: int) -> tuple[WhyStep, ...]:
        self._check("read", query=name)
        return tuple(WhyStep(**one) for one in await self._call("page_why", name=name, time=time))

    async def stream_details(self, name: str) -> PageStreamDetails:
        self._check("read", stream=name)
        found = await self._call("page_stream", name=name)
        letters = tuple(PageDeadLetter(**one) for one in found["dead_letters"])
        predicates = tuple((iri, count) for iri, count in found["predicates"])
        return PageStreamDetails(_elements(found["elements"]), letters, predicates, found["note"])

    async def try_template(self, template: str, rows: str, ending: str) -> TemplateTrial:
        self._check("read")
        found = await self._call("page_template", template=template, rows=rows, ending=ending)
        return TemplateTrial(_elements(found["elements"]), tuple(found["problems"]))

    async def sparql(self, text: str) -> PageTable:
        self._check("read")
        found = await self._call("page_sparql", text=text)
        return PageTable(tuple(found["columns"]), tuple(tuple(row) for row in found["rows"]), found["left_out"])

    async def completions(self) -> tuple[CompletionWord, ...]:
        self._check("read")
        visible = self._visible_streams()
        if len(visible) < len(self._server.status["streams"]):
            # The predicates of the others are not for this caller.
            return list_completions((), visible, ())
        return tuple(CompletionWord(**one) for one in await self._call("page_completions"))


def _query(name: str, status: dict[str, Any]) -> PageQuery:
    """A query, from what the engine told last."""
    counts = status.get("counts", {})
    parsed = parse_known(status["text"])
    now = time.time_ns() // 1000
    waits_for = counts.get("waits_for", {})
    return PageQuery(
        name,
        "" if parsed is None else dialect_name(parsed.dialect),
        _STATES.get(status["status"], QueryState.RUNNING),
        status["text"],
        tuple(counts.get("streams", ())),
        counts.get("elements", 0),
        counts.get("ticks", 0),
        counts.get("rows", 0),
        counts.get("lag"),
        counts.get("answered"),
        counts.get("state_rows", 0),
        counts.get("state_bytes"),
        counts.get("seconds", 0.0),
        status.get("reason") or counts.get("reason") or "",
        counts.get("evaluator", "kernel"),
        tuple(stream for stream, since in waits_for.items() if now - since > _SILENT_SECONDS * 1_000_000),
    )


def _stream(name: str, status: dict[str, Any], counts: dict[str, Any]) -> PageStream:
    """A stream, from what the engine told last."""
    own = counts.get(iri_to_name(status.get("iri", name)), {})
    return PageStream(
        name,
        status["source"],
        own.get("elements", 0),
        own.get("late", 0),
        own.get("bad", 0),
        own.get("ahead", 0),
        status.get("watermark"),
    )


@lru_cache(maxsize=500)
def parse_known(text: str) -> ParsedQuery | None:
    """A query that was registered; None where this version does not understand it."""
    try:
        return parse(text)
    except QueryError:
        return None


def _prefixes(text: str) -> tuple[tuple[str, str], ...]:
    parsed = parse_known(text)
    return () if parsed is None else parsed.prefixes


def _free_name(taken: dict[str, Any]) -> str:
    number = 1
    while (name := f"query-{number}") in taken:
        number += 1
    return name


def _offset_of(text: str, line: int, column: int) -> int:
    """The place of a line and a column, both counted from 1."""
    lines = text.split("\n")
    return sum(len(one) + 1 for one in lines[: line - 1]) + column - 1


def _elements(values: list[dict[str, Any]]) -> tuple[PageElement, ...]:
    return tuple(PageElement(**one) for one in values)


def _read_tail(reader: LogReader) -> tuple[list[LogRecord], LogPlace]:
    """The newest records of a log, those of its last file, and the place behind them."""
    records: deque[LogRecord] = deque(maxlen=_FIRST_ANSWERS)
    place = LogPlace()
    for name in list_segments(reader.folder)[-1:]:
        for record, end in read_segment(reader.folder / name):
            records.append(record)
            place = LogPlace(name, end)
    return list(records), place


def _read_from(reader: LogReader, place: LogPlace) -> list[tuple[LogRecord, LogPlace]]:
    return list(reader.read_from(place))


def _lines(records: list[LogRecord]) -> Iterator[tuple[EventId, bytes]]:
    for record in records:
        for index, line in enumerate(record.lines):
            yield EventId(record.era, record.batch, index), line
