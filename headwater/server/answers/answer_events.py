"""Events for subscribers, made once for all of them: an object of JSON, and its two forms on the wire.

    mode=answers   answer for each tick, suspended where the query stops
    mode=changes   snapshot at first, then for each tick remove and add with the rows that left and came, and progress

The rows of an answer are bindings as in SPARQL results, or triples in N-Triples, or true and false. A change of answers
is the difference of bags between two ticks. Where a query emits only what is new or gone, its rows are that already.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, TypeAlias

from headwater.server.answers.event_ids import EventId
from headwater.server.answers.log_files import LogRecord

Mode: TypeAlias = Literal["answers", "changes"]
REMOVED, ADDED, PROGRESS = 1, 2, 3
"""The parts of a change of answers, in their order."""
_SUSPENDED = b'"suspended": "'


@dataclass(frozen=True)
class Event:
    """One event: its id, its kind, and the object that it is."""

    kind: str
    data: bytes
    id: EventId | None = None

    @cached_property
    def sse(self) -> bytes:
        """The event as a Server-Sent Event."""
        mark = b"" if self.id is None else b"id: %s\n" % str(self.id).encode()
        return mark + b"event: " + self.kind.encode() + b"\ndata: " + self.data + b"\n\n"

    @cached_property
    def line(self) -> bytes:
        """The event as a line of NDJSON."""
        return self.data + b"\n"

    def of_query(self, query: str) -> bytes:
        """The event with the name of its query, for connections that have several."""
        return b'{"query": ' + json.dumps(query, ensure_ascii=False).encode("utf-8", "replace") + b", " + self.data[1:]


def make_event(kind: str, id: EventId | None = None, **members: Any) -> Event:
    """An event with these members."""
    head: dict[str, Any] = {} if id is None else {"id": str(id)}
    data = json.dumps({**head, "event": kind, **members}, ensure_ascii=False)
    return Event(kind, data.encode("utf-8", "replace"), id)


def answer_events(record: LogRecord) -> Iterator[Event]:
    """The events of a record, one for each answer; the answers stay the bytes that they are."""
    for index, line in enumerate(record.lines):
        yield answer_event(EventId(record.era, record.batch, index), line)


def answer_event(id: EventId, line: bytes) -> Event:
    """The event of an answer."""
    # In JSON a key is the only place where these characters stand unescaped before a text.
    kind = "suspended" if _SUSPENDED in line else "answer"
    head = f'{{"id": "{id}", "event": "{kind}", '.encode()
    return Event(kind, head + line[1:], id)


def rows_of(answer: dict[str, Any]) -> list[str]:
    """The rows of an answer, each as JSON that is the same for the same row."""
    if "results" in answer:
        rows = answer["results"]["bindings"]
    elif "graph" in answer:
        rows = answer["graph"].splitlines()
    else:
        rows = [] if answer.get("boolean") is None else [answer["boolean"]]
    return [json.dumps(row, ensure_ascii=False, sort_keys=True) for row in rows]


@dataclass
class ChangeMaker:
    """Makes changes of the answers of one query, which come in order. `emit` is its streaming operator."""

    emit: str = "rstream"
    rows: Counter[str] = field(default_factory=Counter)
    """The rows of the last answer."""
    last: EventId | None = None
    head: dict[str, Any] = field(default_factory=dict)

    def begin(self, id: EventId, line: bytes) -> None:
        """Take an answer as the one before the first change."""
        self._take(id, json.loads(line))

    def _take(self, id: EventId, answer: dict[str, Any]) -> tuple[list[str], list[str]]:
        found = Counter(rows_of(answer))
        self.last = id._replace(part=PROGRESS)
        self.head = {key: answer[key] for key in ("time", "time_us", "watermark_us", "head") if key in answer}
        if self.emit == "istream":
            added, removed = found, Counter[str]()
        elif self.emit == "dstream":
            added, removed = Counter[str](), found
        else:
            added, removed = found - self.rows, self.rows - found
            self.rows = found
        return list(removed.elements()), list(added.elements())

    def snapshot(self) -> Event:
        """Everything that holds at the last answer."""
        return _rows_event("snapshot", self.last, self.head, list(self.rows.elements()))

    def change(self, id: EventId, line: bytes) -> list[Event]:
        """What is different in an answer."""
        answer = json.loads(line)
        if "suspended" in answer:
            return [answer_event(id, line)]
        removed, added = self._take(id, answer)
        events: list[Event] = []
        if removed:
            events.append(_rows_event("remove", id._replace(part=REMOVED), self.head, removed))
        if added:
            events.append(_rows_event("add", id._replace(part=ADDED), self.head, added))
        times = {key: value for key, value in self.head.items() if key != "head"}
        events.append(make_event("progress", id._replace(part=PROGRESS), **times))
        return events


def _rows_event(kind: str, id: EventId | None, head: dict[str, Any], rows: list[str]) -> Event:
    members = {} if id is None else {"id": str(id)}
    before = json.dumps({**members, "event": kind, **head}, ensure_ascii=False)
    return Event(kind, f'{before[:-1]}, "rows": [{", ".join(rows)}]}}'.encode("utf-8", "replace"), id)
