"""The definition of a continuous query, executable: at each tick build the window graphs and ask pyoxigraph.

Nothing here is clever. The one shortcut is that a tick at which no window changed repeats the result of the tick
before, unless the query asks for something that changes by itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, cast

from pyoxigraph import QuerySolutions, Store

from headwater.algebra.nodes import Service
from headwater.algebra.plan import QueryKind, QueryPlan
from headwater.algebra.scope import expressions_of, map_expression, map_expressions, map_plan, nodes, sub_expressions
from headwater.algebra.to_sparql import to_sparql
from headwater.language.expressions import Constant, Expression, FunctionCall
from headwater.language.stream_clauses import StreamOperator
from headwater.reference import blank_nodes, exact
from headwater.reference.answers import Answer
from headwater.reference.construct import describe, instantiate
from headwater.reference.content import WindowBuffer
from headwater.reference.graphs import Dataset
from headwater.reference.ordering import is_ordered, row_text, settled
from headwater.reference.rewrite import Rewriter, uses_timestamps
from headwater.terms.exact import original
from headwater.terms.model import XSD, Element, Literal, NamedNode, Row, Triple
from headwater.terms.timestamps import format_time
from headwater.windows import QuerySettings, Report, Ticker, emitted, timestamp_predicate

StreamKey: TypeAlias = tuple[str, str | None]
"""A stream and, where a window takes its time from the data, the property that holds it."""

_NOW = "urn:headwater:now-placeholder"
_UNSTEADY = frozenset({"NOW", "RAND", "UUID", "STRUUID", "BNODE"})
_RESOLVING = frozenset({"IRI", "URI"})
_FUNCTIONS = {**exact.FUNCTIONS, **blank_nodes.FUNCTIONS}


def stream_keys(plan: QueryPlan) -> tuple[StreamKey, ...]:
    """For each window of a plan, the stream it reads and the clock by which it reads it."""
    return tuple(
        (source.stream.value, predicate.value if (predicate := timestamp_predicate(source.spec)) else None)
        for source in plan.windows
    )


@dataclass
class EvaluatorState:
    """All that must outlive the process: what the windows hold, what waits, what was last said."""

    ticker: Ticker
    buffers: list[WindowBuffer]
    waiting: dict[StreamKey, list[Element]]
    previous: list[object]
    answered_once: bool = False


class ReferenceEvaluator:
    """Evaluates one plan. `advance` takes elements in any order and answers the ticks the watermark has passed."""

    def __init__(self, plan: QueryPlan, settings: QuerySettings, static: Store) -> None:
        self.plan = plan
        self.settings = settings
        self.keys = stream_keys(plan)
        self._dataset = Dataset.of(plan, settings.content, static)
        self._timed = uses_timestamps(plan.root)
        self._ordered = is_ordered(plan.root)
        self._writes_inexact = exact.writes_inexact(plan.root)
        self._texts: dict[tuple[bool, bool], str] = {}
        called = {
            part.name
            for node in nodes(plan.root)
            for expression in expressions_of(node)
            for part in sub_expressions(expression)
            if isinstance(part, FunctionCall) and isinstance(part.name, str)
        }
        self._base = plan.base if called & _RESOLVING else None
        self._unsteady = bool(called & _UNSTEADY) or any(isinstance(node, Service) for node in nodes(plan.root))
        self._last: list[object] | None = None
        self.state = EvaluatorState(Ticker(settings), [WindowBuffer(window) for window in settings.windows], {}, [])

    def _text(self, occurrences: bool, as_written: bool) -> str:
        """The SPARQL text that is asked at a tick, made when it is first needed."""
        known = self._texts.get((occurrences, as_written))
        if known is None:
            root = Rewriter(self.plan, self.settings.content, occurrences, self._dataset.named).rewrite()
            root = settled(map_plan(root, lambda node: map_expressions(node, _at_the_tick)))
            text = to_sparql(exact.over_stored_terms(root) if as_written else root)
            known = self._texts[occurrences, as_written] = text
        return known

    def restore(self, state: EvaluatorState) -> None:
        """Continue from a saved state: the graphs are rebuilt from what the windows held."""
        self.state = state
        self._last = None
        for number, buffer in enumerate(state.buffers):
            self._dataset.change(number, buffer.shown, [])

    def advance(
        self,
        batch: Mapping[StreamKey, Sequence[Element]],
        watermark: int | None,
        *,
        ended: bool = False,
        floor: int | None = None,
    ) -> list[Answer]:
        """Take elements in; answer every tick before the watermark, or all that remain when the streams have ended.

        `floor` is the instant up to which ended streams are known to have been silent.
        """
        for key, elements in batch.items():
            self.state.waiting.setdefault(key, []).extend(elements)
        if watermark is None and not ended:
            return []
        if not self.plan.windows:
            return self._answer_once()
        released = self._release(None if ended else watermark)
        for number, key in enumerate(self.keys):
            times = self.state.buffers[number].add(released.get(key, ()))
            self.state.ticker.observe(number, times)
        limit = None if ended else watermark
        return [answer for tick in self.state.ticker.due(limit, floor) for answer in self._at(tick, watermark)]

    def _release(self, watermark: int | None) -> dict[StreamKey, list[Element]]:
        """The waiting elements that the watermark has passed, in time order."""
        released: dict[StreamKey, list[Element]] = {}
        for key, elements in self.state.waiting.items():
            elements.sort(key=lambda element: element.time)
            cut = len(elements) if watermark is None else _first_at_or_after(elements, watermark)
            released[key] = elements[:cut]
            self.state.waiting[key] = elements[cut:]
        return released

    def _answer_once(self) -> list[Answer]:
        """A query over static data alone has one answer."""
        if self.state.answered_once:
            return []
        self.state.answered_once = True
        tick = self.settings.t0 or 0
        return [self._answer(tick, 0, self._evaluate(tick), [], None)]

    def _at(self, tick: int, watermark: int | None) -> Iterator[Answer]:
        buffers = self.state.buffers
        parts = max(buffer.closings(tick) for buffer in buffers)
        for part in range(parts):
            changed = False
            for number, buffer in enumerate(buffers):
                changed |= self._dataset.change(number, *buffer.move(tick, part))
            if self.settings.report is Report.CHANGE and not changed:
                continue
            if self.settings.report is Report.NONEMPTY and not any(buffer.shown for buffer in buffers):
                continue
            before = self.state.previous
            if changed or self._last is None or self._unsteady or self._timed:
                self._last = self._evaluate(tick)
            answer = self._answer(tick, part, self._last, before, watermark)
            self.state.previous = self._last
            if not self._silent(answer):
                yield answer

    def _silent(self, answer: Answer) -> bool:
        """Between the instants of a fixed rhythm, an operator of change that has nothing to say says nothing."""
        rhythm = self.settings.report in (Report.CLOSE, Report.PERIODIC)
        return answer.is_empty and not rhythm and self.settings.emit is not StreamOperator.RSTREAM

    def _evaluate(self, tick: int) -> list[object]:
        """The result at a tick: rows, or for DESCRIBE triples, or for ASK a verdict."""
        occurrences = self._timed or self._dataset.has_duplicates
        if occurrences:
            self._dataset.describe_occurrences(self.state.buffers)
        as_written = self._dataset.holds_stored_forms or self._writes_inexact
        text = self._text(occurrences, as_written)
        if _NOW in text:
            moment = Literal(format_time(tick), datatype=NamedNode(XSD + "dateTime"))
            text = text.replace(f"<{_NOW}>", str(moment))
        answered = self._dataset.store.query(text, base_iri=self._base, custom_functions=_FUNCTIONS)
        solutions = cast(QuerySolutions, answered)
        positions = {variable.value: i for i, variable in enumerate(solutions.variables)}
        wanted = [positions[variable.value] for variable in self.plan.variables]
        rows: list[Row] = [tuple(solution[i] for i in wanted) for solution in solutions]
        if as_written:
            rows = [tuple(None if term is None else original(term) for term in row) for row in rows]
        match self.plan.kind:
            case QueryKind.ASK:
                return [bool(rows)]
            case QueryKind.DESCRIBE:
                return list(describe(self.plan, rows, self._dataset))
        if not self._ordered:
            rows.sort(key=row_text)
        return list(rows)

    def _answer(self, tick: int, part: int, now: list[object], before: list[object], watermark: int | None) -> Answer:
        kept = emitted(self.settings.emit, now, before)
        rows: tuple[Row, ...] = ()
        triples: tuple[Triple, ...] = ()
        verdict: bool | None = None
        match self.plan.kind:
            case QueryKind.SELECT:
                rows = cast("tuple[Row, ...]", tuple(kept))
            case QueryKind.CONSTRUCT:
                triples = instantiate(self.plan, cast("list[Row]", kept), tick)
            case QueryKind.DESCRIBE:
                triples = cast("tuple[Triple, ...]", tuple(kept))
            case QueryKind.ASK:
                verdict = cast("bool | None", kept[0] if kept else None)
        views = tuple(
            buffer.view(source.label, tick)
            for buffer, source in zip(self.state.buffers, self.plan.windows, strict=True)
        )
        return Answer(
            query=self.plan.name,
            time=tick,
            kind=self.plan.kind,
            operator=self.settings.emit,
            variables=tuple(v.value for v in self.plan.variables) if self.plan.kind is QueryKind.SELECT else (),
            rows=rows,
            triples=triples,
            boolean=verdict,
            part=part,
            inputs=views,
            watermark=watermark,
        )


def _at_the_tick(expression: Expression) -> Expression:
    """NOW() is the tick: a placeholder here, replaced in the text of each tick."""

    def change(part: Expression) -> Expression | None:
        return Constant(NamedNode(_NOW)) if isinstance(part, FunctionCall) and part.name == "NOW" else None

    return map_expression(expression, change)


def _first_at_or_after(elements: Sequence[Element], time: int) -> int:
    low, high = 0, len(elements)
    while low < high:
        middle = (low + high) // 2
        if elements[middle].time < time:
            low = middle + 1
        else:
            high = middle
    return low
