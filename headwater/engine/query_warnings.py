"""The warnings of an engine: what the lint finds in its queries when they are registered, run and have run."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import replace

from headwater.algebra.nodes import Group
from headwater.algebra.plan import QueryKind, QueryPlan
from headwater.algebra.scope import nodes_of
from headwater.engine.engine_data import EngineData
from headwater.execution.registered import RegisteredQuery
from headwater.linting.implausible_times import (
    implausible_time_text,
    is_implausible,
    is_in_seconds,
    seconds_text,
    topic_of,
)
from headwater.linting.lint_rules import lint_query
from headwater.linting.lint_subject import LintSubject
from headwater.linting.observed_data import NOTHING_OBSERVED, ObservedData, StreamSample
from headwater.linting.start_times import find_early_starts, late_start_text
from headwater.linting.unfitting_values import find_unfitting_values
from headwater.linting.unknown_functions import refuse_unknown_functions
from headwater.running.progress import RunSummary
from headwater.running.workload import Workload
from headwater.sources.files import FileSource, MemorySource
from headwater.sources.stream_samples import sample_stream
from headwater.terms.model import NamedNode
from headwater.terms.names import iri_to_name, name_to_iri
from headwater.windows.settings import QuerySettings

logger = logging.getLogger(__name__)

_SAMPLED_ELEMENTS = 1_000
"""How many elements of each stream are looked at again after a run."""


_SAMPLED_ROWS = 100
"""How many rows are looked at for values with which nothing can be computed."""


class QueryWarnings:
    """Tells each warning once, through the log, and keeps it for the summary of the run."""

    def __init__(self) -> None:
        self._told: dict[str, None] = {}
        self._topics: set[str] = set()

    def tell(self, query: str, sentences: Iterable[str]) -> None:
        """Log what is new of some sentences about a query, or with an empty name about a stream."""
        for sentence in sentences:
            warning = f"{query}: {sentence}" if query else sentence
            topic = topic_of(sentence)
            # A stream with wrong times needs no word more for each query that reads it.
            if warning not in self._told and (topic is None or topic not in self._topics):
                self._told[warning] = None
                self._topics.add(topic or "")
                logger.warning("%s", warning)

    def check_query(self, plan: QueryPlan, settings: QuerySettings) -> None:
        """Refuse functions that do not exist, and tell what is wrong with a query whatever its data is."""
        refuse_unknown_functions(plan)
        self.tell(plan.name, lint_query(LintSubject(plan, settings)))

    def check_data(self, queries: Iterable[RegisteredQuery], observed: ObservedData) -> None:
        """Tell what is wrong with queries over their static data."""
        for query in queries:
            self.tell(query.plan.name, lint_query(LintSubject(query.plan, query.settings, observed)))

    def check_start(self, workload: Workload) -> None:
        """Tell which queries begin long before the data of a run, and take minutes for empty answers.

        Times that a program gives in seconds are told, too.
        """
        for stream, source in workload.sources.items():
            if isinstance(source, MemorySource):
                sample = sample_stream(source, _SAMPLED_ROWS)
                if sample is not None and sample.first_time is not None and is_in_seconds(sample.first_time):
                    self.tell("", [seconds_text(f"the stream {iri_to_name(stream)}", sample.first_time)])
        begun = [query for query in workload.description.queries if query.settings.t0 is not None]
        samples = {
            name_to_iri(stream): sample
            for stream, source in workload.sources.items()
            if begun and (sample := sample_stream(source, _SAMPLED_ROWS)) is not None
        }
        for query in begun:
            subject = LintSubject(query.plan, query.settings, ObservedData(samples=samples))
            self.tell(query.plan.name, find_early_starts(subject))

    def conclude(self, summary: RunSummary, workload: Workload, data: EngineData) -> RunSummary:
        """Tell what is wrong with the queries of a run over what was read, and add all warnings to its summary."""
        unclear = {
            source.stream
            for query in workload.description.queries
            if not _is_clear(query.plan, summary)
            for source in query.plan.windows
        }
        samples = {
            iri: sample
            for stream, source in workload.sources.items()
            if (iri := name_to_iri(stream)) in unclear
            and (sample := sample_stream(source, _SAMPLED_ELEMENTS)) is not None
            and (sample.elements or not (sample.bad or (sample.is_empty and summary.stopped)))
        }
        observed = data.observe() if samples else NOTHING_OBSERVED
        self.tell("", summary.warnings)
        for query in workload.description.queries:
            own = _conclusive_samples(samples, query.plan, summary)
            self.check_data([query], replace(observed, samples=own))
            self._check_rows(query, workload, data)
            self._check_answered(query, summary)
            for source in query.plan.windows:
                time = summary.watermarks.get(source.stream.value)
                if source.stream not in samples and time is not None and is_implausible(time):
                    self.tell(query.plan.name, [implausible_time_text(source.stream.value, time)])
        return replace(summary, warnings=tuple(self._told))

    def _check_answered(self, query: RegisteredQuery, summary: RunSummary) -> None:
        """Tell where a query has no answer because it begins behind all data."""
        progress, t0 = summary.queries.get(query.plan.name), query.settings.t0
        streams = [iri_to_name(source.stream.value) for source in query.plan.windows]
        newest = max((mark for one in streams if (mark := summary.watermarks.get(one)) is not None), default=None)
        if progress is not None and not progress.ticks and t0 is not None and newest is not None and newest < t0:
            self.tell(query.plan.name, [late_start_text(t0, newest)])

    def _check_rows(self, query: RegisteredQuery, workload: Workload, data: EngineData) -> None:
        """Tell which values of rows nothing can be computed with: the first rows are as good as any."""
        streams = {source.stream for source in query.plan.windows}
        rows = {
            iri: sample
            for stream, source in workload.sources.items()
            if (iri := name_to_iri(stream)) in streams
            and isinstance(source, FileSource)
            and source.template is not None
            and (sample := sample_stream(source, _SAMPLED_ROWS)) is not None
        }
        if rows:
            observed = replace(data.observe(), samples=rows)
            self.tell(query.plan.name, find_unfitting_values(LintSubject(query.plan, query.settings, observed)))


def _conclusive_samples(
    samples: Mapping[NamedNode, StreamSample], plan: QueryPlan, summary: RunSummary
) -> dict[NamedNode, StreamSample]:
    """The samples from which something follows: those of whole streams or, for a query without any row, all."""
    # The counts of the run say what could not be read, and what came late.
    has_rows = _has_rows(plan, summary)
    return {
        stream: replace(one, bad=0, first_late=None) for stream, one in samples.items() if one.is_whole or not has_rows
    }


def _is_clear(plan: QueryPlan, summary: RunSummary) -> bool:
    """Whether a query has rows, over so many elements that no sample would be its whole streams."""
    progress = summary.queries.get(plan.name)
    if progress is None or not _has_rows(plan, summary):
        return False
    return progress.elements > _SAMPLED_ELEMENTS * len(plan.windows)


def _has_rows(plan: QueryPlan, summary: RunSummary) -> bool:
    """Whether the answers of a query have rows that come of its patterns."""
    progress = summary.queries.get(plan.name)
    return progress is not None and progress.rows > 0 and not _always_has_rows(plan)


def _always_has_rows(plan: QueryPlan) -> bool:
    """Whether answers have a row even where no pattern matches."""
    has_one_group = any(isinstance(node, Group) and not node.keys for node in nodes_of(plan.root))
    return plan.kind is QueryKind.ASK or has_one_group
