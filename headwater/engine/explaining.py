"""Explains the answers of an engine's queries, from sources that can be read again."""

from __future__ import annotations

from headwater.engine.stream_sources import StreamSources
from headwater.running.program_description import ProgramDescription
from headwater.running.tick_explaining import Explanation, RowChoice, explain_tick
from headwater.running.workload import Workload
from headwater.sources.receivers import ReceivedSource
from headwater.sources.records import RecordSource
from headwater.sources.source import Source, SourceError
from headwater.terms.names import iri_to_name


def explain_answer(
    description: ProgramDescription, streams: StreamSources, name: str, tick: int, row: RowChoice
) -> Explanation:
    """Explain the answer of a query at a tick: the elements and static triples behind it (`Query.why`)."""
    outline = description.outline()
    sources: dict[str, Source] = {}
    for stream in outline.inputs:
        source = streams[stream]
        if isinstance(source, ReceivedSource | RecordSource):
            raise SourceError(
                f"why reads the streams again, and {iri_to_name(stream)} cannot be read twice: save what it brings in "
                "files, and name those"
            )
        sources[stream] = source
    return explain_tick(Workload(description, outline, sources), name, tick, row)
