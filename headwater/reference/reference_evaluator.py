"""The definition of a continuous query, executable: at each tick it builds the window graphs and queries pyoxigraph.

It is slow and obvious. The one shortcut is that a tick at which no window changed repeats the result of the tick
before, unless the query reads something that changes by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, cast

from pyoxigraph import QuerySolutions, Store

from headwater.algebra.nodes import Distinct, Node, Project
from headwater.algebra.placed_patterns import placed_patterns
from headwater.algebra.plan import QueryKind, QueryPlan
from headwater.algebra.plan_depth import check_text_of_plan
from headwater.algebra.scope import expressions_of, map_expression, map_expressions, map_plan, nodes_of, sub_expressions
from headwater.algebra.to_sparql import to_sparql
from headwater.algebra.triple_timestamps import has_timestamps
from headwater.execution.answers import WindowView
from headwater.execution.collapsed_triples import CollapsedTriples, describe_collapsed
from headwater.execution.evaluator import Evaluator
from headwater.execution.remote_solutions import FetchSolutions, RemoteSolutions, has_services, refuse_services
from headwater.execution.static_data import StaticData
from headwater.execution.window_log import Size
from headwater.language.expressions import Constant, Expression, FunctionCall
from headwater.language.patterns import TriplePattern
from headwater.language.stream_clauses import StreamOperator
from headwater.reference import aggregate_calls, blank_nodes
from headwater.reference.description import describe
from headwater.reference.plan_rewriter import PlanRewriter
from headwater.reference.pyoxigraph_workarounds import work_around_pyoxigraph
from headwater.reference.tick_dataset import TickDataset
from headwater.reference.window_content import WindowBuffer
from headwater.terms.model import XSD, Element, Literal, NamedNode, Row, Term, Triple, Variable
from headwater.terms.stored_forms import restore_term
from headwater.terms.timestamps import format_time
from headwater.values import stored_form_queries as exact
from headwater.values.checked_functions import CheckedFunctions, with_checked_functions
from headwater.values.own_function_calls import scalar_functions
from headwater.values.query_guard import current_guard
from headwater.values.row_order import is_ordered, row_text, with_total_order
from headwater.windows.element_sequences import Elements, elements_of
from headwater.windows.settings import Content, QuerySettings
from headwater.windows.stream_operators import apply_stream_operator

if TYPE_CHECKING:
    from pyoxigraph import AggregateFunctionAccumulator

_NOW = "urn:headwater:now-placeholder"
_UNSTEADY = frozenset({"NOW", "RAND", "UUID", "STRUUID", "BNODE"})
_RESOLVING = frozenset({"IRI", "URI"})
Functions = Mapping[NamedNode, Callable[..., Term | None]]
"""Functions of ours that a query calls."""
_FUNCTIONS: Functions = {**exact.FUNCTIONS, **blank_nodes.FUNCTIONS}


@dataclass(frozen=True)
class TickQuery:
    """The SPARQL text of a tick, and the aggregate functions that it calls."""

    text: str
    aggregates: dict[NamedNode, Callable[[], AggregateFunctionAccumulator]]


class ReferenceEvaluator(Evaluator):
    """Evaluates one plan, at each tick anew. `dataset` shares the graphs of another evaluator.

    `fetch` asks the endpoints of SERVICE. pyoxigraph never does: it gets the plan with their solutions in it.
    """

    kind = "reference"
    needs_all_texts = True

    def __init__(
        self,
        plan: QueryPlan,
        settings: QuerySettings,
        static: StaticData,
        dataset: TickDataset | None = None,
        fetch: FetchSolutions = refuse_services,
    ) -> None:
        super().__init__(plan, settings)
        self._fetch = fetch
        self._has_services = has_services(plan.root)
        self._static = static
        self._dataset = TickDataset.of(plan, settings.content, static) if dataset is None else dataset
        self._uses_timestamps = has_timestamps(plan.root)
        self._is_ordered = is_ordered(plan.root)
        self._has_inexact_literals = exact.has_inexact_literals(plan.root)
        self._tick_queries: dict[tuple[bool, bool], TickQuery] = {}
        self._graphs_of_queries: Mapping[NamedNode, tuple[Term, ...]] = {}
        """The graphs in the windows for which the queries of ticks were made."""
        called = {
            part.name
            for node in nodes_of(plan.root)
            for expression in expressions_of(node)
            for part in sub_expressions(expression)
            if isinstance(part, FunctionCall) and isinstance(part.name, str)
        }
        self._base = plan.base if called & _RESOLVING else None
        self._is_unsteady = bool(called & _UNSTEADY) or self._has_services
        windows = zip(settings.windows, (source.label for source in plan.windows), strict=True)
        reads = (plan.reads_window_graphs, plan.reads_graph_times)
        self._buffers = [WindowBuffer(window, label, settings.cap, *reads) for window, label in windows]
        self._result: list[object] | None = None
        self._last_result: list[object] = []
        self._is_stale = True

    def _tick_query(self, occurrences: bool, has_stored_forms: bool) -> TickQuery:
        """The query of a tick, made when it is first needed for the graphs that are in the windows."""
        graphs = {window: tuple(inside) for window, inside in self._dataset.graphs_in_windows.items()}
        if graphs != self._graphs_of_queries:
            self._tick_queries.clear()
            self._graphs_of_queries = graphs
        known = self._tick_queries.get((occurrences, has_stored_forms))
        if known is None:
            known = self._make_tick_query(self.plan, occurrences, has_stored_forms)
            self._tick_queries[occurrences, has_stored_forms] = known
        return known

    def _make_tick_query(self, plan: QueryPlan, occurrences: bool, has_stored_forms: bool) -> TickQuery:
        rewriter = PlanRewriter(
            plan, self.settings.content, occurrences, self._dataset.named, self._dataset.graphs_in_windows
        )
        root = work_around_pyoxigraph(rewriter.rewrite(), rewriter.new_variable)
        root = with_total_order(map_plan(root, lambda node: map_expressions(node, _replace_now)))
        root = map_plan(root, lambda node: map_expressions(node, with_checked_functions))
        called = aggregate_calls.with_aggregate_calls(root)
        text = check_text_of_plan(to_sparql(exact.read_originals(called) if has_stored_forms else called))
        return TickQuery(text, aggregate_calls.aggregate_functions_of(root, has_stored_forms))

    def _ask_endpoints(self, tick: int) -> tuple[QueryPlan, Functions]:
        """The plan with the solutions of its SERVICE clauses at this tick, and the functions that it calls."""
        if not self._has_services:
            return self.plan, _FUNCTIONS

        def find_values(root: Node, variable: Variable) -> list[Term | None]:
            values = Distinct(Project(root, (variable,)))
            plan = replace(self.plan, root=values, variables=(variable,), kind=QueryKind.SELECT)
            evaluator = ReferenceEvaluator(plan, self.settings, Store(), self._dataset)
            evaluator.guard = self.guard
            evaluator._buffers = self._buffers
            functions = {**_FUNCTIONS, **remote.functions}
            return [row[0] for row in cast("list[Row]", evaluator._evaluate_plan(plan, functions, tick))]

        remote = RemoteSolutions(self._fetch, find_values)
        root = remote.replace_services(self.plan.root)
        return replace(self.plan, root=root), {**_FUNCTIONS, **remote.functions}

    def apply_static_change(self) -> None:
        collapsed = self._dataset.collapsed
        self._dataset = TickDataset.of(self.plan, self.settings.content, self._static)
        self._dataset.collapsed = collapsed
        for window_index, buffer in enumerate(self._buffers):
            self._dataset.change(window_index, buffer.shown, [])
        self._tick_queries.clear()
        self._is_stale = True

    def _save_memory(self) -> list[object]:
        return self._last_result if self._result is None else self._result

    def _restore_memory(self, memory: list[object] | None) -> None:
        tick = self.ticker.last_tick
        if memory is None:
            memory = [] if tick is None or self.settings.emit is StreamOperator.RSTREAM else self._evaluate(tick)
        self._last_result = memory

    def _prepare_elements(self, elements: Elements) -> list[Element]:
        return elements_of(elements)

    def _refill(self, window_index: int, elements: list[Element]) -> None:
        buffer = self._buffers[window_index]
        buffer.refill(elements, self.ticker.item_count(window_index), self.ticker.last_tick)
        self._dataset.change(window_index, buffer.shown, [])

    def needed_from(self, window_index: int) -> int | None:
        return self._buffers[window_index].needed_from(self.ticker.last_tick)

    def take_collapsed(self) -> tuple[CollapsedTriples, ...]:
        collapsed, self._dataset.collapsed = self._dataset.collapsed, {}
        if not any(triples.total() for triples in collapsed.values()):
            return ()
        counts = {
            placed: sum(
                count
                for graph, triples in collapsed.items()
                if placed.is_matched_in(graph)
                for triple, count in triples.items()
                if _matches(placed.triple, triple)
            )
            for placed in placed_patterns(self.plan)
        }
        return tuple(describe_collapsed(self.plan, counts, self.counting_readers))

    def size(self) -> Size:
        # The store is not ours to measure.
        return Size(sum(buffer.triples for buffer in self._buffers), None)

    def _add(self, window_index: int, elements: list[Element]) -> Sequence[int]:
        return self._buffers[window_index].add(elements)

    def _count_closings(self, tick: int) -> int:
        return max(buffer.closings(tick) for buffer in self._buffers)

    def _move(self, tick: int, closing: int) -> bool:
        changed = False
        moves = [buffer.move(tick, closing) for buffer in self._buffers]
        if self.settings.content is Content.SET:
            self._dataset.count_collapsed(moves)
        for window_index, (entered, left) in enumerate(moves):
            changed |= self._dataset.change(window_index, entered, left)
        self._is_stale |= changed
        return changed

    def _has_content(self) -> bool:
        return any(buffer.shown for buffer in self._buffers)

    def _views(self, tick: int) -> tuple[WindowView, ...]:
        pairs = zip(self._buffers, self.plan.windows, strict=True)
        return tuple(buffer.view(source.label, tick) for buffer, source in pairs)

    def _emit(self, tick: int) -> list[object]:
        before = self._last_result if self._result is None else self._result
        if self._result is None or self._is_stale or self._is_unsteady or self._uses_timestamps:
            self._result = self._evaluate(tick)
            self._is_stale = False
        return apply_stream_operator(self.settings.emit, self._result, before)

    def evaluate_static_part(self, root: Node, variables: tuple[Variable, ...]) -> list[Row]:
        """The solutions of a static part: another plan over the data of this one, while its windows are empty."""
        plan = replace(self.plan, root=root, variables=variables, kind=QueryKind.SELECT)
        evaluator = ReferenceEvaluator(plan, self.settings, Store(), self._dataset)
        evaluator.guard = current_guard()
        return cast("list[Row]", evaluator._evaluate(0))

    def evaluate_beside(self, buffers: list[WindowBuffer], tick: int) -> list[object]:
        """The result at a tick over the windows of another evaluator, whose data set this one shares."""
        self._buffers = buffers
        return self._evaluate(tick)

    def _evaluate(self, tick: int) -> list[object]:
        """The result at a tick: rows, or for DESCRIBE triples, or for ASK a verdict."""
        plan, functions = self._ask_endpoints(tick)
        return self._evaluate_plan(plan, functions, tick)

    def _evaluate_plan(self, plan: QueryPlan, functions: Functions, tick: int) -> list[object]:
        """The result of a plan without SERVICE, which is that of this evaluator but for the solutions of endpoints."""
        occurrences = self._uses_timestamps or self._dataset.has_duplicates
        if occurrences:
            self._dataset.describe_occurrences(self._buffers)
        has_stored_forms = self._dataset.holds_stored_forms or self._has_inexact_literals
        if plan is self.plan:
            query = self._tick_query(occurrences, has_stored_forms)
        else:
            has_stored_forms |= exact.has_inexact_literals(plan.root)
            query = self._make_tick_query(plan, occurrences, has_stored_forms)
        text = query.text
        if _NOW in text:
            moment = Literal(format_time(tick), datatype=NamedNode(XSD + "dateTime"))
            text = text.replace(f"<{_NOW}>", str(moment))
        rows = self.guard.call(partial(self._query_store, text, query, functions))
        if has_stored_forms:
            rows = [tuple(None if term is None else restore_term(term) for term in row) for row in rows]
        match self.plan.kind:
            case QueryKind.ASK:
                return [bool(rows)]
            case QueryKind.DESCRIBE:
                return list(describe(self.plan, rows, self._dataset))
        if not self._is_ordered:
            rows.sort(key=row_text)
        return list(rows)

    def _query_store(self, text: str, query: TickQuery, functions: Functions) -> list[Row]:
        """The solutions of the query of a tick, held to the limits of the query."""
        checked = CheckedFunctions(self.guard)
        answered = self._dataset.store.query(
            text,
            base_iri=self._base,
            custom_functions={**scalar_functions(), **functions, **checked.functions},
            custom_aggregate_functions=query.aggregates,
        )
        try:
            return self._take_rows(cast(QuerySolutions, answered), checked)
        finally:
            # An error keeps its frames, and another thread must not be the one that drops the solutions.
            del answered

    def _take_rows(self, solutions: QuerySolutions, checked: CheckedFunctions) -> list[Row]:
        try:
            positions = {variable.value: i for i, variable in enumerate(solutions.variables)}
            wanted = [positions[variable.value] for variable in self.plan.variables]
            rows: list[Row] = []
            for solution in solutions:
                rows.append(tuple([solution[i] for i in wanted]))
                self.guard.check_answer(len(rows))
            checked.check()
            return rows
        finally:
            del solutions


def _matches(pattern: TriplePattern, triple: Triple) -> bool:
    """Whether a triple of the store matches a triple pattern."""
    bound: dict[Variable, Term] = {}
    for wanted, stored in zip((pattern.subject, pattern.predicate, pattern.object), triple, strict=True):
        found = restore_term(stored)
        if isinstance(wanted, Variable):
            if bound.setdefault(wanted, found) != found:
                return False
        elif wanted != found:
            return False
    return True


def _replace_now(expression: Expression) -> Expression:
    """NOW() is the tick: a placeholder here, replaced in the text of each tick."""

    def change(part: Expression) -> Expression | None:
        return Constant(NamedNode(_NOW)) if isinstance(part, FunctionCall) and part.name == "NOW" else None

    return map_expression(expression, change)
