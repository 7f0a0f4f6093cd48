"""SPARQL without streams, evaluated by pyoxigraph over the store of a data set.

A query takes the way of the definition (`headwater.reference`): it is parsed and planned by us, rewritten where
pyoxigraph would not keep to the standard, and reads literals as they were written. SERVICE is asked before, by our own
client. Nothing is copied; only where FROM merges graphs that share a triple, which pyoxigraph would count twice, those
graphs are copied as far as the query reads them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import combinations
from typing import Any, cast

from pyoxigraph import DefaultGraph, Quad, QuerySolutions, Store

from headwater.algebra.build import plan_query
from headwater.algebra.nodes import Distinct, Node, Project, Slice
from headwater.algebra.plan import QueryKind, QueryPlan
from headwater.algebra.plan_depth import check_text_of_plan
from headwater.algebra.scope import map_expressions, map_plan
from headwater.algebra.to_sparql import to_sparql
from headwater.execution.remote_solutions import FetchSolutions, RemoteSolutions, has_services
from headwater.execution.static_data import select_statements
from headwater.language.errors import QueryError
from headwater.language.parser import parse
from headwater.reference import aggregate_calls, blank_nodes
from headwater.reference.description import describe
from headwater.reference.plan_rewriter import PlanRewriter
from headwater.reference.pyoxigraph_workarounds import work_around_pyoxigraph
from headwater.reference.tick_dataset import TickDataset
from headwater.server.protocol.data_service import GraphChoice
from headwater.server.protocol.store_mirror import MirroredVersion
from headwater.terms.model import NamedNode, Row, Term, Triple, Variable
from headwater.terms.stored_forms import restore_term
from headwater.values import stored_form_queries as exact
from headwater.values.checked_functions import CheckedFunctions, with_checked_functions
from headwater.values.own_function_calls import scalar_functions
from headwater.values.query_guard import QueryGuard
from headwater.values.templates import ConstructTemplate
from headwater.windows.settings import Content

_ROWS_BETWEEN_CHECKS = 4096
_MOST_COMPARED = 16
"""Of more graphs that FROM merges it is not asked whether they share triples: they are copied."""
_Functions = Mapping[NamedNode, Callable[..., Term | None]]
_FUNCTIONS: _Functions = {**exact.FUNCTIONS, **blank_nodes.FUNCTIONS}


@dataclass(frozen=True)
class PlainResult:
    """The result of a query: rows of SELECT, the truth value of ASK, or triples."""

    kind: QueryKind
    variables: tuple[str, ...] = ()
    rows: Sequence[Row] = ()
    boolean: bool = False
    triples: Sequence[Triple] = ()
    prefixes: Mapping[str, str] = field(default_factory=dict)


def plan_plain_query(text: str, base: str, graphs: GraphChoice) -> QueryPlan:
    """The plan of a query; a `QueryError` where it is wrong, or where it reads streams.

    Graphs that the request names take the place of those in the text (SPARQL 1.1 Protocol, section 2.1.4).
    """
    parsed = parse(text, base=base)
    plan = plan_query(parsed)
    if plan.windows or plan.registration is not None or plan.stream_operator is not None:
        raise QueryError("a query that reads streams is registered, not asked", text, 0)
    if graphs:
        default, named = (tuple(map(NamedNode, names)) for names in (graphs.default, graphs.named))
        return replace(plan, default_graphs=default, named_graphs=named)
    if plan.named_graphs is not None and plan.default_graphs is None:
        # FROM NAMED without FROM: the default graph is empty (SPARQL 1.1, section 13.2).
        return replace(plan, default_graphs=())
    return plan


class _SelectedGraphs:
    """The graphs of a store that a query sees, as the store of its own that it would have by the definition."""

    def __init__(self, plan: QueryPlan, version: MirroredVersion, guard: QueryGuard) -> None:
        self._guard = guard
        self._store = version.store
        default, named = plan.default_graphs, plan.named_graphs
        self.default: list[NamedNode | DefaultGraph] = [DefaultGraph()]
        if default is not None:
            self.default = [*dict.fromkeys(default)]
        self.named = version.named_graphs if named is None else tuple(dict.fromkeys(named))
        self._options: dict[str, Any] = {"default_graph": self.default}
        if named is not None:
            self._options["named_graphs"] = list(self.named)
        if len(self.default) > _MOST_COMPARED or (len(self.default) > 1 and self._share_triples()):
            self._copy_graphs(plan)

    def _share_triples(self) -> bool:
        """Whether two of the default graphs have a common triple."""
        pairs = combinations([one for one in self.default if isinstance(one, NamedNode)], 2)
        texts = (f"ASK {{ GRAPH {one} {{ ?s ?p ?o }} GRAPH {other} {{ ?s ?p ?o }} }}" for one, other in pairs)
        return any(bool(self._store.query(text)) for text in texts)

    def _copy_graphs(self, plan: QueryPlan) -> None:
        """Put what the query can read of the graphs into a store with one default graph."""
        original = cast(Any, self._store)
        self._store = Store()
        for graph in self.default:
            quads = self._in_time(select_statements(original, plan, graph))
            self._store.extend(Quad(quad.subject, quad.predicate, quad.object) for quad in quads)
        for graph in self.named:
            self._store.add_graph(graph)
            self._store.extend(self._in_time(select_statements(original, plan, graph)))
        self.default = [DefaultGraph()]
        self._options = {"default_graph": self.default}

    def _in_time(self, quads: Iterator[Quad]) -> Iterator[Quad]:
        """Statements, until the time of the query is over."""
        for number, quad in enumerate(quads):
            if number % _ROWS_BETWEEN_CHECKS == 0:
                self._guard.check_time()
            yield quad

    def query(self, text: str, **options: Any) -> QuerySolutions:
        """The solutions of a query."""
        return cast(QuerySolutions, self._store.query(text, **self._options, **options))

    def quads_for_pattern(self, subject: Any, predicate: Any, object: Any, graph: Any = None) -> list[Quad]:
        """The statements of the default graph that match."""
        return [quad for one in self.default for quad in self._store.quads_for_pattern(subject, predicate, object, one)]


@dataclass
class PlainQueries:
    """Evaluates queries over versions of a data set. `fetch` asks the endpoints of SERVICE."""

    fetch: FetchSolutions

    def evaluate(self, plan: QueryPlan, version: MirroredVersion, guard: QueryGuard) -> PlainResult:
        """The result of a query; a `LimitError` where it takes more than it may."""
        selected = guard.call(partial(_SelectedGraphs, plan, version, guard))
        rows = self._solve(plan, selected, version, guard)
        prefixes = dict(plan.prefixes)
        match plan.kind:
            case QueryKind.ASK:
                return PlainResult(plan.kind, boolean=bool(rows))
            case QueryKind.SELECT:
                return PlainResult(plan.kind, tuple(one.value for one in plan.variables), rows)
            case QueryKind.CONSTRUCT:
                # The time makes labels of blank nodes that no other answer has.
                triples = ConstructTemplate(plan).instantiate(rows, time.time_ns() // 1000)
            case QueryKind.DESCRIBE:
                dataset = TickDataset(plan, Content.SET, cast(Store, selected))
                triples = describe(plan, rows, dataset)
        guard.check_answer(len(triples))
        return PlainResult(plan.kind, triples=triples, prefixes=prefixes)

    def solve(self, plan: QueryPlan, version: MirroredVersion, guard: QueryGuard) -> list[Row]:
        """The solutions of the pattern of a query."""
        selected = guard.call(partial(_SelectedGraphs, plan, version, guard))
        return self._solve(plan, selected, version, guard)

    def _solve(
        self, plan: QueryPlan, selected: _SelectedGraphs, version: MirroredVersion, guard: QueryGuard
    ) -> list[Row]:
        root, functions = self._ask_endpoints(plan, selected, version, guard)
        rows = _solve(replace(plan, root=root), selected, version, guard, functions)
        guard.check_time()
        return rows

    def _ask_endpoints(
        self, plan: QueryPlan, selected: _SelectedGraphs, version: MirroredVersion, guard: QueryGuard
    ) -> tuple[Node, _Functions]:
        """The plan with the solutions of its SERVICE clauses, and the functions that it calls."""
        if not has_services(plan.root):
            return plan.root, _FUNCTIONS

        def find_values(root: Node, variable: Variable) -> list[Term | None]:
            values = Distinct(Project(root, (variable,)))
            asked = replace(plan, root=values, variables=(variable,), kind=QueryKind.SELECT)
            functions = {**_FUNCTIONS, **remote.functions}
            return [row[0] for row in _solve(asked, selected, version, guard, functions)]

        remote = RemoteSolutions(self.fetch, find_values)
        root = remote.replace_services(plan.root)
        return root, {**_FUNCTIONS, **remote.functions}


def _solve(
    plan: QueryPlan, selected: _SelectedGraphs, version: MirroredVersion, guard: QueryGuard, functions: _Functions
) -> list[Row]:
    """The solutions of a plan without SERVICE, as they were written."""
    rewriter = PlanRewriter(plan, Content.SET, False, selected.named)
    root = work_around_pyoxigraph(rewriter.rewrite(), rewriter.new_variable)
    root = map_plan(root, lambda node: map_expressions(node, with_checked_functions))
    if plan.kind is QueryKind.ASK:
        root = Slice(root, 0, 1)
    called = aggregate_calls.with_aggregate_calls(root)
    has_stored_forms = version.holds_stored_forms or exact.has_inexact_literals(root)
    text = check_text_of_plan(to_sparql(exact.read_originals(called) if has_stored_forms else called))
    checked = CheckedFunctions(guard)
    options = {
        "base_iri": plan.base,
        "custom_functions": {**scalar_functions(), **functions, **checked.functions},
        "custom_aggregate_functions": aggregate_calls.aggregate_functions_of(root, has_stored_forms),
    }
    rows = guard.call(partial(_take_rows, selected, text, options, plan.variables, guard))
    checked.check()
    if has_stored_forms:
        return [tuple(None if term is None else restore_term(term) for term in row) for row in rows]
    return rows


def _take_rows(
    selected: _SelectedGraphs, text: str, options: dict[str, Any], variables: Sequence[Variable], guard: QueryGuard
) -> list[Row]:
    """The rows of a query, until there are more than it may have."""
    solutions = selected.query(text, **options)
    try:
        positions = {variable.value: place for place, variable in enumerate(solutions.variables)}
        wanted = [positions[variable.value] for variable in variables]
        rows: list[Row] = []
        for solution in solutions:
            rows.append(tuple([solution[place] for place in wanted]))
            if len(rows) % _ROWS_BETWEEN_CHECKS == 0:
                guard.check_answer(len(rows))
                guard.check_time()
        guard.check_answer(len(rows))
        return rows
    finally:
        # An error keeps its frames, and another thread must not be the one that drops the solutions.
        del solutions
