"""`headwater explain`: how a query was understood, as text or as a drawing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headwater.commands.option_values import group_sources, parse_data_option, sample_of_files
from headwater.commands.query_files import QueryFile
from headwater.explain.drawing_model import PlanFormat, PlanGraph, PlanStage
from headwater.explain.separate_sources import SourceVocabularies
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
    from headwater.engine.query_explanation import explain_query

    plan = QueryFile.read(path).plan(options.dialect)
    settings = resolve_settings(plan)
    data = EngineData(RemoteAccess(egress=read_settings().egress))
    for text in options.data:
        file, graph = parse_data_option(text)
        data.add(file, graph, None)
    text = explain_query(
        plan,
        settings,
        data,
        graph=options.graph,
        format=options.format,
        stage=options.stage,
        vocabularies=_read_vocabularies(options, data) if options.streams else None,
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
