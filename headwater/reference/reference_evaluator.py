"""The definition of a continuous query, executable: at each tick build the window graphs and ask pyoxigraph.

Nothing here is clever. The one shortcut is that a tick at which no window changed repeats the result of the tick
before, unless the query asks for something that changes by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

from pyoxigraph import QuerySolutions, Store

from headwater.algebra.nodes import Node, Service
from headwater.algebra.plan import QueryKind, QueryPlan
from headwater.algebra.scope import expressions_of, map_expression, map_expressions, map_plan, nodes, sub_expressions
from headwater.algebra.to_sparql import to_sparql
from headwater.algebra.triple_timestamps import uses_timestamps
from headwater.execution.answers import WindowView
from headwater.execution.evaluator import Evaluator
from headwater.execution.static_data import StaticData
from headwater.execution.window_log import Size
from headwater.language.expressions import Constant, Expression, FunctionCall
from headwater.language.stream_clauses import StreamOperator
from headwater.reference import aggregate_calls, blank_nodes
from headwater.reference import pyoxigraph_workarounds as quirks
from headwater.reference.description import describe
from headwater.reference.plan_rewriter import Rewriter
from headwater.reference.tick_dataset import Dataset
from headwater.reference.window_content import WindowBuffer
from headwater.terms.model import XSD, Element, Literal, NamedNode, Row, Variable
from headwater.terms.stored_forms import restore_term
from headwater.terms.timestamps import format_time
from headwater.values import stored_form_queries as exact
from headwater.values.row_order import is_ordered, row_text, settled
from headwater.windows.element_sequences import Elements, elements_of
from headwater.windows.settings import QuerySettings
from headwater.windows.stream_operators import emitted

if TYPE_CHECKING:
    from pyoxigraph import AggregateFunctionAccumulator

_NOW = "urn:headwater:now-placeholder"
_UNSTEADY = frozenset({"NOW", "RAND", "UUID", "STRUUID", "BNODE"})
_RESOLVING = frozenset({"IRI", "URI"})
_FUNCTIONS = {**exact.FUNCTIONS, **blank_nodes.FUNCTIONS}


@dataclass(frozen=True)
class Question:
    """The SPARQL text of a tick, and the aggregate functions that it calls."""

    text: str
    aggregates: dict[NamedNode, Callable[[], AggregateFunctionAccumulator]]


class ReferenceEvaluator(Evaluator):
    """Evaluates one plan, at each tick anew. `dataset` shares the graphs of another evaluator."""

    kind = "reference"
    needs_all_texts = True

    def __init__(
        self, plan: QueryPlan, settings: QuerySettings, static: StaticData, dataset: Dataset | None = None
    ) -> None:
        super().__init__(plan, settings)
        self._static = static
        self._dataset = Dataset.of(plan, settings.content, static) if dataset is None else dataset
        self._timed = uses_timestamps(plan.root)
        self._ordered = is_ordered(plan.root)
        self._writes_inexact = exact.writes_inexact(plan.root)
        self._questions: dict[tuple[bool, bool], Question] = {}
        called = {
            part.name
            for node in nodes(plan.root)
            for expression in expressions_of(node)
            for part in sub_expressions(expression)
            if isinstance(part, FunctionCall) and isinstance(part.name, str)
        }
        self._base = plan.base if called & _RESOLVING else None
        self._unsteady = bool(called & _UNSTEADY) or any(isinstance(node, Service) for node in nodes(plan.root))
        windows = zip(settings.windows, (source.label for source in plan.windows), strict=True)
        self._buffers = [WindowBuffer(window, label, settings.cap) for window, label in windows]
        self._now: list[object] | None = None
        self._before: list[object] = []
        self._stale = True

    def _question(self, occurrences: bool, as_written: bool) -> Question:
        """What is asked at a tick, made when it is first needed."""
        known = self._questions.get((occurrences, as_written))
        if known is None:
            rewriter = Rewriter(self.plan, self.settings.content, occurrences, self._dataset.named)
            root = quirks.avoided(rewriter.rewrite(), rewriter.fresh)
            root = settled(map_plan(root, lambda node: map_expressions(node, _at_the_tick)))
            asked = aggregate_calls.with_calls(root)
            text = to_sparql(exact.over_stored_terms(asked) if as_written else asked)
            known = Question(text, aggregate_calls.functions_of(root, as_written))
            self._questions[occurrences, as_written] = known
        return known

    def static_changed(self) -> None:
        self._dataset = Dataset.of(self.plan, self.settings.content, self._static)
        for number, buffer in enumerate(self._buffers):
            self._dataset.change(number, buffer.shown, [])
        self._questions.clear()
        self._stale = True

    def _memory(self) -> list[object]:
        return self._before if self._now is None else self._now

    def _recall(self, memory: list[object] | None) -> None:
        tick = self.ticker.answered
        if memory is None:
            memory = [] if tick is None or self.settings.emit is StreamOperator.RSTREAM else self._evaluate(tick)
        self._before = memory

    def _converted(self, elements: Elements) -> list[Element]:
        return elements_of(elements)

    def _refill(self, number: int, elements: list[Element]) -> None:
        buffer = self._buffers[number]
        buffer.refill(elements, self.ticker.count(number), self.ticker.answered)
        self._dataset.change(number, buffer.shown, [])

    def needed_from(self, number: int) -> int | None:
        return self._buffers[number].needed_from(self.ticker.answered)

    def size(self) -> Size:
        # The store is not ours to measure.
        return Size(sum(buffer.triples for buffer in self._buffers), None)

    def _add(self, number: int, elements: list[Element]) -> Sequence[int]:
        return self._buffers[number].add(elements)

    def _closings(self, tick: int) -> int:
        return max(buffer.closings(tick) for buffer in self._buffers)

    def _move(self, tick: int, part: int) -> bool:
        changed = False
        for number, buffer in enumerate(self._buffers):
            changed |= self._dataset.change(number, *buffer.move(tick, part))
        self._stale |= changed
        return changed

    def _holds_something(self) -> bool:
        return any(buffer.shown for buffer in self._buffers)

    def _views(self, tick: int) -> tuple[WindowView, ...]:
        pairs = zip(self._buffers, self.plan.windows, strict=True)
        return tuple(buffer.view(source.label, tick) for buffer, source in pairs)

    def _said(self, tick: int) -> list[object]:
        before = self._before if self._now is None else self._now
        if self._now is None or self._stale or self._unsteady or self._timed:
            self._now = self._evaluate(tick)
            self._stale = False
        return emitted(self.settings.emit, self._now, before)

    def over_same_data(self, root: Node, variables: tuple[Variable, ...]) -> list[Row]:
        """What another plan answers over the data of this one while its windows are empty: a static part."""
        plan = replace(self.plan, root=root, variables=variables, kind=QueryKind.SELECT)
        return cast("list[Row]", ReferenceEvaluator(plan, self.settings, Store(), self._dataset)._evaluate(0))

    def _evaluate(self, tick: int) -> list[object]:
        """The result at a tick: rows, or for DESCRIBE triples, or for ASK a verdict."""
        occurrences = self._timed or self._dataset.has_duplicates
        if occurrences:
            self._dataset.describe_occurrences(self._buffers)
        as_written = self._dataset.holds_stored_forms or self._writes_inexact
        question = self._question(occurrences, as_written)
        text = question.text
        if _NOW in text:
            moment = Literal(format_time(tick), datatype=NamedNode(XSD + "dateTime"))
            text = text.replace(f"<{_NOW}>", str(moment))
        answered = self._dataset.store.query(
            text,
            base_iri=self._base,
            custom_functions=_FUNCTIONS,
            custom_aggregate_functions=question.aggregates,
        )
        solutions = cast(QuerySolutions, answered)
        positions = {variable.value: i for i, variable in enumerate(solutions.variables)}
        wanted = [positions[variable.value] for variable in self.plan.variables]
        rows: list[Row] = [tuple(solution[i] for i in wanted) for solution in solutions]
        if as_written:
            rows = [tuple(None if term is None else restore_term(term) for term in row) for row in rows]
        match self.plan.kind:
            case QueryKind.ASK:
                return [bool(rows)]
            case QueryKind.DESCRIBE:
                return list(describe(self.plan, rows, self._dataset))
        if not self._ordered:
            rows.sort(key=row_text)
        return list(rows)


def _at_the_tick(expression: Expression) -> Expression:
    """NOW() is the tick: a placeholder here, replaced in the text of each tick."""

    def change(part: Expression) -> Expression | None:
        return Constant(NamedNode(_NOW)) if isinstance(part, FunctionCall) and part.name == "NOW" else None

    return map_expression(expression, change)
