"""Which queries are evaluated together: families first, of the others those that read the same windows."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace

from headwater.algebra.active_graphs import default_active_graph
from headwater.algebra.nodes import Service, Window
from headwater.algebra.plan import QueryKind, QueryPlan
from headwater.algebra.scope import nodes_of
from headwater.algebra.triple_timestamps import has_timestamps
from headwater.execution.evaluator import Evaluator
from headwater.execution.registered import RegisteredQuery
from headwater.execution.static_data import StaticData
from headwater.kernel.compiling.unsupported import UnsupportedByKernel
from headwater.kernel.families.family_evaluator import find_families
from headwater.kernel.sharing.shared_evaluator import FEWEST_QUERIES, SharedEvaluator
from headwater.language.stream_clauses import StreamOperator
from headwater.optimizer.dependencies import patterns_with_graphs
from headwater.optimizer.optimise import optimise
from headwater.windows.model import TimeWindow
from headwater.windows.settings import QuerySettings, Report


def find_shared_evaluators(queries: Sequence[RegisteredQuery], static: StaticData) -> list[Evaluator]:
    """Make evaluators that answer several of the queries each: `Program(…, families=find_shared_evaluators)`."""
    families = find_families(queries, static)
    members = {name for family in families for name in family.names}
    others = [query for query in queries if query.plan.name not in members]
    return [*families, *find_common_windows(others, static)]


def find_common_windows(queries: Sequence[RegisteredQuery], static: StaticData) -> list[SharedEvaluator]:
    """Make evaluators for queries of any shapes that have equal windows and settings."""
    groups: dict[Hashable, list[RegisteredQuery]] = {}
    for query in queries:
        if can_share_windows(query.plan, query.settings):
            groups.setdefault(_common_key(query), []).append(query)
    found: list[SharedEvaluator] = []
    for alike in groups.values():
        if len(alike) >= FEWEST_QUERIES:
            plans = [optimise(query.plan).plan for query in alike]
            try:
                found.append(SharedEvaluator(alike, plans, static))
            except UnsupportedByKernel:
                continue
    return found


def _common_key(query: RegisteredQuery) -> Hashable:
    """What queries have in common that share windows: what they are called only where WINDOW ?g gives their names."""
    reads_names = any(isinstance(node, Window) and node.name is not None for node in nodes_of(query.plan.root))
    windows = tuple(source if reads_names else replace(source, label="") for source in query.plan.windows)
    return windows, query.settings, query.settings.cap, query.plan.base


def can_share_windows(plan: QueryPlan, settings: QuerySettings) -> bool:
    """Whether a query can share its windows: one that reads streams alone, at ticks that time decides.

    A query with other data follows the versions of that; one that reads times or names of graphs has more columns in
    its windows. Windows that count begin where their query began. Where a result is asked for at each element, and only
    what is new in it, ticks without one are skipped, each query by itself.
    """
    is_alone = settings.report is Report.EAGER and settings.emit is StreamOperator.ISTREAM
    reports_each_tick = settings.report in (Report.CLOSE, Report.PERIODIC, Report.EAGER) and not is_alone
    is_plain = plan.kind is not QueryKind.DESCRIBE and not (plan.reads_window_graphs or plan.reads_graph_times)
    return (
        bool(plan.windows)
        and reports_each_tick
        and is_plain
        and all(isinstance(window, TimeWindow) for window in settings.windows)
        and not has_timestamps(plan.root)
        and not any(isinstance(node, Service) for node in nodes_of(plan.root))
        and not _reads_static_data(plan)
    )


def _reads_static_data(plan: QueryPlan) -> bool:
    """Whether some pattern is matched in other graphs than those of windows."""
    read = patterns_with_graphs(plan, plan.root, default_active_graph(plan))
    return any(active_graph.static_graphs for _, active_graph in read)
