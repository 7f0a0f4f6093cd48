"""`headwater explain`: how a query was understood, as text or as a drawing."""

from __future__ import annotations

from collections.abc import Sequence

from headwater.commands.query_files import QueryFile
from headwater.explain.drawing_model import PlanFormat, PlanGraph
from headwater.explain.plan_text import explain as explain_plan
from headwater.language.stream_clauses import Dialect
from headwater.windows.settings import resolve_settings


def explain(
    path: str,
    graph: PlanGraph | None,
    output: PlanFormat,
    dialect: Dialect | None,
    data: Sequence[str] = (),
) -> None:
    """Print the plan of a query file, or one of its two graphs; `data` are data sets over which it would run."""
    from headwater.datasets.dataset import DataSet
    from headwater.datasets.linked_data import LinkedData
    from headwater.execution.registered import RegisteredQuery
    from headwater.federation.service_evaluator import choose_evaluator
    from headwater.sharding.shard_planning import describe_sharding

    plan = QueryFile.read(path).plan(dialect)
    settings = resolve_settings(plan)
    choice = choose_evaluator(plan, settings, LinkedData([DataSet.open(folder) for folder in data]))
    evaluator = "kernel (incremental)" if choice.is_kernel else f"reference, because of {choice.reason}"
    text = explain_plan(
        choice.plan,
        graph=graph,
        format=output,
        settings=settings,
        evaluator=evaluator,
        static_parts=choice.static_parts,
        shards=describe_sharding(RegisteredQuery(plan, settings)),
        views=choice.view_locations if data else (),
    )
    print(text.rstrip("\n"))
