"""What the page asks for: everything that it shows, and the few things that it changes, as plain values.

Times are in microseconds since 1970. What goes wrong is a `HeadwaterError`, whose text the page shows.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol, TypeAlias

from headwater.terms.names import iri_to_name

PageCell: TypeAlias = str | int | float | bool | None
"""A value in a table: a number or a truth value where the term is one, a text for people otherwise."""


class QueryState(Enum):
    """Whether a query is answered."""

    RUNNING = "running"
    PAUSED = "paused"
    SUSPENDED = "suspended"


@dataclass(frozen=True, slots=True)
class PageTable:
    """Rows under columns. `left_out` rows more there are."""

    columns: tuple[str, ...] = ()
    rows: tuple[tuple[PageCell, ...], ...] = ()
    left_out: int = 0


@dataclass(frozen=True, slots=True)
class PageStream:
    """A stream: where it comes from, how much has come since the start, and how far it is in time."""

    name: str
    source: str
    elements: int = 0
    late: int = 0
    bad: int = 0
    ahead: int = 0
    watermark: int | None = None
    is_derived: bool = False
    """Whether a query makes it."""

    def delay(self, now: int) -> int | None:
        """How far the time of the stream is behind the clock; None before its first element."""
        return None if self.watermark is None else max(0, now - self.watermark)


@dataclass(frozen=True, slots=True)
class PageQuery:
    """A query and its counts since the start. `reason` says why it is suspended, or what evaluates it slowly."""

    name: str
    dialect: str
    state: QueryState
    text: str
    streams: tuple[str, ...] = ()
    elements: int = 0
    ticks: int = 0
    rows: int = 0
    lag: int | None = None
    answered: int | None = None
    state_rows: int = 0
    state_bytes: int | None = None
    seconds: float = 0.0
    reason: str = ""
    evaluator: str = "kernel"
    waits_for: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """The name as a person would write it."""
        return iri_to_name(self.name)


@dataclass(frozen=True, slots=True)
class PageDataSet:
    """Linked data: how many statements at which version; `bytes` is its size on disk."""

    name: str
    statements: int
    version: int
    graphs: int
    bytes: int


@dataclass(frozen=True, slots=True)
class PageOverview:
    """All there is, at one moment. `failure` says why nothing is answered any more."""

    is_running: bool
    streams: tuple[PageStream, ...] = ()
    queries: tuple[PageQuery, ...] = ()
    datasets: tuple[PageDataSet, ...] = ()
    elements: int = 0
    memory_bytes: int | None = None
    failure: str = ""


@dataclass(frozen=True, slots=True)
class TextProblem:
    """What is wrong with a text: the message, the place counted from 1, and what was expected there."""

    message: str
    line: int
    column: int
    offset: int
    expected: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TextCheck:
    """What a text is as a query: its dialect and name, or the problem; `unknown_streams` have no source yet."""

    problem: TextProblem | None = None
    dialect: str = ""
    name: str = ""
    unknown_streams: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PageAnswer:
    """The answer of a query at an instant; `id` is where a reader goes on. `operator` is that of the query."""

    id: str
    time: int
    table: PageTable
    operator: str = "RSTREAM"
    is_complete: bool = True
    suspended: str = ""
    remarks: tuple[str, ...] = ()
    """What else is known of it: the version of the data that it saw, and how good it is where it rests on SERVICE."""


@dataclass(frozen=True, slots=True)
class PagePreview:
    """What a query would answer over the elements that came last; `note` says what that means or why there is none."""

    answers: tuple[PageAnswer, ...] = ()
    note: str = ""


@dataclass(frozen=True, slots=True)
class PagePlan:
    """The plan of a query as a Mermaid flowchart and as text, and what its joins chose as they ran."""

    mermaid: str
    text: str
    joins: PageTable = field(default_factory=PageTable)


@dataclass(frozen=True, slots=True)
class PageElement:
    """An element of a stream, as text."""

    time: int | None
    triples: str
    graph: str = ""


@dataclass(frozen=True, slots=True)
class PageWindow:
    """What a window held when its query was answered last; `elements` are the newest of them, if they are known."""

    label: str
    stream: str
    specification: str
    low: int
    high: int
    items: int
    elements: tuple[PageElement, ...] = ()


@dataclass(frozen=True, slots=True)
class WhyStep:
    """A step of a plan, how many solutions are left after it, and whether they end here."""

    depth: int
    text: str
    solutions: int
    is_end: bool = False


@dataclass(frozen=True, slots=True)
class PageDeadLetter:
    """An element that took no part in any answer, and why."""

    kind: str
    reason: str
    text: str
    source: str
    line: int | None = None
    time: str = ""


@dataclass(frozen=True, slots=True)
class PageStreamDetails:
    """What a stream brought last: elements, dead letters, and its predicates with how many of the triples have them."""

    elements: tuple[PageElement, ...] = ()
    dead_letters: tuple[PageDeadLetter, ...] = ()
    predicates: tuple[tuple[str, int], ...] = ()
    note: str = ""


@dataclass(frozen=True, slots=True)
class TemplateTrial:
    """What a template makes of sample rows: elements, and what is wrong with the others or with the template."""

    elements: tuple[PageElement, ...] = ()
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CompletionWord:
    """A word that the editor offers: what is inserted, what kind it is, and what it stands for."""

    label: str
    kind: str
    detail: str = ""


class PageAccess(Protocol):
    """All that the page shows and changes. Every call may be slow, none may block."""

    async def overview(self) -> PageOverview:
        """All streams, queries and data sets with their counts."""

    async def validate(self, text: str) -> TextCheck:
        """Whether a text is a query."""

    async def preview(self, text: str) -> PagePreview:
        """Answer a text over what has come last; nothing of it stays."""

    async def register(self, text: str, *, name: str | None = None) -> str:
        """Register a query; gives its name."""

    async def pause(self, name: str) -> None:
        """Answer a query no more, until it is resumed."""

    async def resume(self, name: str) -> None:
        """Answer a query again."""

    async def drop(self, name: str) -> None:
        """Forget a query."""

    def answers(self, name: str, after: str | None = None) -> AsyncIterator[PageAnswer]:
        """The answers of a query behind an id, first those that are kept, then each as it comes."""

    async def plan(self, name: str) -> PagePlan:
        """How a query is evaluated."""

    async def windows(self, name: str) -> tuple[PageWindow, ...]:
        """What the windows of a query held when it was answered last."""

    async def why(self, name: str, time: int) -> tuple[WhyStep, ...]:
        """How many solutions each step of the plan has at the tick of an answer."""

    async def stream_details(self, name: str) -> PageStreamDetails:
        """What a stream brought last."""

    async def try_template(self, template: str, rows: str, ending: str) -> TemplateTrial:
        """What a template makes of the text of rows; `ending` is `.csv` or `.jsonl`."""

    async def sparql(self, text: str) -> PageTable:
        """Answer a SPARQL query over the linked data."""

    async def completions(self) -> tuple[CompletionWord, ...]:
        """What the editor may offer: prefixes, streams, predicates."""
