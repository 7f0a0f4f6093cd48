"""What the page wants to know of an engine beside its counts, read from where the streams and the data are."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headwater.datasets.dataset import DataSet
from headwater.engine.query_handle import Query
from headwater.explain.notation import Notation
from headwater.server.page.embedded.completion_words import list_completions
from headwater.server.page.embedded.dead_letter_files import read_dead_letters
from headwater.server.page.embedded.query_preview import produced_stream
from headwater.server.page.embedded.recent_elements import can_read_again, element_text, read_recent
from headwater.server.page.page_access import CompletionWord, PageDataSet, PageStreamDetails, PageWindow
from headwater.terms.model import Element
from headwater.terms.names import iri_to_name

SHOWN_ELEMENTS = 100
_COUNTED_ELEMENTS = 2_000
_SHOWN_IN_WINDOW = 50


@dataclass(frozen=True, slots=True)
class WindowSpan:
    """What an answer says of a window: its label, from which instant up to which it reached, and how much it held."""

    label: str
    low: int
    high: int
    items: int


@dataclass(frozen=True, slots=True)
class EngineInspection:
    """Streams by IRI, registered queries, data sets by name, and the folder of the dead letters, as they are now."""

    sources: Mapping[str, Any]
    queries: Sequence[Query]
    datasets: Mapping[str, DataSet]
    letters: Path

    def windows(self, query: Query, spans: Iterable[WindowSpan]) -> tuple[PageWindow, ...]:
        """What the windows of a query held when they reached over these spans."""
        notation = Notation.of(query.plan)
        found: list[PageWindow] = []
        for source, span in zip(query.plan.windows, spans, strict=False):
            recent = read_recent(self.sources.get(source.stream.value), _COUNTED_ELEMENTS)
            held = [one for one in recent if span.low <= one.time < span.high]
            shown = tuple(element_text(one, query.plan.prefixes) for one in held[: -_SHOWN_IN_WINDOW - 1 : -1])
            stream, specification = iri_to_name(source.stream.value), notation.window(source.spec)
            found.append(
                PageWindow(iri_to_name(span.label), stream, specification, span.low, span.high, span.items, shown)
            )
        return tuple(found)

    def stream_details(self, iri: str) -> PageStreamDetails:
        """What a stream from outside brought last."""
        source = self.sources[iri]
        recent = read_recent(source, _COUNTED_ELEMENTS)
        counted = Counter(triple.predicate.value for one in recent for triple in one.triples)
        prefixes = self.prefixes()
        shown = tuple(element_text(one, prefixes) for one in recent[: -SHOWN_ELEMENTS - 1 : -1])
        note = "" if can_read_again(source) else "The elements of this stream pass by: they cannot be read again."
        letters = read_dead_letters(self.letters, iri_to_name(iri))
        return PageStreamDetails(shown, letters, tuple(counted.most_common()), note)

    def prefixes(self) -> list[tuple[str, str]]:
        """The prefixes that registered queries use."""
        return list(dict.fromkeys(pair for one in self.queries for pair in one.plan.prefixes))

    def completions(self) -> tuple[CompletionWord, ...]:
        """Prefixes, streams, and the predicates that were seen in streams and data."""
        elements: list[Element] = []
        for source in self.sources.values():
            elements += read_recent(source, _COUNTED_ELEMENTS)
        seen = Counter(triple.predicate.value for one in elements for triple in one.triples)
        for data in self.datasets.values():
            for counts in data.predicate_counts().values():
                seen.update({predicate.value: one.triples for predicate, one in counts.items()})
        derived = [produced_stream(one.plan) for one in self.queries]
        streams = [iri_to_name(iri) for iri in (*self.sources, *derived) if iri is not None]
        return list_completions(self.prefixes(), streams, [iri for iri, _ in seen.most_common()])

    def describe_datasets(self) -> tuple[PageDataSet, ...]:
        """The data sets at their newest versions."""
        return tuple(_describe_dataset(name, data) for name, data in self.datasets.items())


def _describe_dataset(name: str, data: DataSet) -> PageDataSet:
    data.advance()
    graphs = sum(1 for _ in data.named_graphs())
    size = sum(file.stat().st_size for file in data.folder.rglob("*") if file.is_file())
    return PageDataSet(name, data.statements, data.version, graphs, size)


def memory_bytes() -> int | None:
    """The memory that this process holds; None where the system does not say."""
    try:
        return int(Path("/proc/self/statm").read_text("ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return None
