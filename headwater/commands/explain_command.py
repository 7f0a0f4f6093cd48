"""`headwater explain`: how a query was understood, as text or as a drawing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headwater.commands.option_values import group_sources, parse_data_option, sample_of_files
from headwater.commands.query_files import QueryFile
from headwater.explain.drawing_model import PlanFormat, PlanGraph, PlanStage
from headwater.explain.paper_plan import push_to_sources
from headwater.explain.plan_text import explain as explain_plan
from headwater.explain.separate_sources import SourceVocabularies, separate_sources
from headwater.language.stream_clauses import Dialect
from headwater.terms.model import NamedNode
from headwater.terms.names import name_to_iri
from headwater.windows.settings import resolve_settings

if TYPE_CHECKING:
    from headwater.engine.engine_data import EngineData


@dataclass(frozen=True)
class ExplainOptions:
    """What was typed: the plan that is shown and how, and the data over which it would run."""

    graph: PlanGraph | None = None
    format: PlanFormat = "text"
    stage: PlanStage = "evaluated"
    dialect: Dialect | None = None
    data: Sequence[str] = ()
    streams: Sequence[str] = ()


def explain(path: str, options: ExplainOptions) -> None:
    """Print the plan of a query file, or one of its two graphs."""
    from headwater.commands.settings_file import read_settings
    from headwater.datasets.remote_updates import RemoteAccess
    from headwater.engine.engine_data import EngineData
    from headwater.execution.registered import RegisteredQuery
    from headwater.federation.service_evaluator import choose_evaluator
    from headwater.sharding.shard_planning import describe_sharding

    plan = QueryFile.read(path).plan(options.dialect)
    settings = resolve_settings(plan)
    data = EngineData(RemoteAccess(egress=read_settings().egress))
    for text in options.data:
        file, graph = parse_data_option(text)
        data.add(file, graph, None)
    shards = describe_sharding(RegisteredQuery(plan, settings))
    if options.streams:
        plan = separate_sources(plan, _read_vocabularies(options, data))
    choice = choose_evaluator(plan, settings, data.open_all())
    evaluator = "kernel (incremental)" if choice.is_kernel else f"reference, because of {choice.reason}"
    is_evaluated = options.stage == "evaluated"
    if not is_evaluated:
        plan = push_to_sources(plan) if options.stage == "paper" else plan
    text = explain_plan(
        choice.plan if is_evaluated else plan,
        graph=options.graph,
        format=options.format,
        settings=settings,
        evaluator=evaluator,
        static_parts=choice.static_parts if is_evaluated else (),
        shards=shards,
        views=choice.view_locations if is_evaluated and options.data else (),
        is_merged=options.stage != "written",
    )
    print(text.rstrip("\n"))


def _read_vocabularies(options: ExplainOptions, data: EngineData) -> SourceVocabularies:
    """The predicates of each source: of samples of the streams, and of the static data where there is some."""
    streams = {
        name_to_iri(stream): frozenset(
            predicate for predicate in sample_of_files(named).predicates if isinstance(predicate, NamedNode)
        )
        for stream, named in group_sources(options.streams).items()
    }
    graphs: dict[NamedNode | None, frozenset[NamedNode]] = {}
    for dataset in data.open_all().datasets:
        for graph, counts in dataset.predicate_counts().items():
            graphs[graph] = graphs.get(graph, frozenset()) | frozenset(counts)
    return SourceVocabularies(streams, graphs if options.data else None)
