"""How a query is understood and evaluated over the data of an engine, as text or as a drawing."""

from __future__ import annotations

from typing import get_args

from headwater.algebra.plan import QueryPlan
from headwater.engine.engine_data import EngineData
from headwater.errors import SettingError
from headwater.execution.registered import RegisteredQuery
from headwater.explain.drawing_model import PlanFormat, PlanGraph, PlanStage
from headwater.explain.paper_plan import push_to_sources
from headwater.explain.plan_text import explain
from headwater.explain.separate_sources import SourceVocabularies, separate_sources
from headwater.federation.service_evaluator import choose_evaluator
from headwater.sharding.shard_planning import describe_sharding
from headwater.windows.settings import QuerySettings


def explain_query(
    plan: QueryPlan,
    settings: QuerySettings,
    data: EngineData,
    *,
    graph: PlanGraph | None = None,
    format: PlanFormat = "text",
    stage: PlanStage = "evaluated",
    vocabularies: SourceVocabularies | None = None,
) -> str:
    """The explanation of a query over data.

    `stage` is which plan: as `written`, after the rules of the `paper` alone, or as `evaluated`. With `vocabularies`
    patterns stand at the one source that has their predicates.
    """
    if stage not in get_args(PlanStage):
        raise SettingError(f"stage {stage!r} is not known; choose {', '.join(get_args(PlanStage))}")
    shards = describe_sharding(RegisteredQuery(plan, settings))
    if vocabularies is not None:
        plan = separate_sources(plan, vocabularies)
    choice = choose_evaluator(plan, settings, data.open_all())
    is_evaluated = stage == "evaluated"
    if not is_evaluated:
        plan = push_to_sources(plan) if stage == "paper" else plan
    return explain(
        choice.plan if is_evaluated else plan,
        graph=graph,
        format=format,
        settings=settings,
        evaluator="kernel (incremental)" if choice.is_kernel else f"reference, because of {choice.reason}",
        static_parts=choice.static_parts if is_evaluated else (),
        shards=shards,
        views=choice.view_locations if is_evaluated and data.folders else (),
        is_merged=stage != "written",
    )
