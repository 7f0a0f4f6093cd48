"""Where a pattern of a query is matched, as far as it is known: samples of its streams, and static graphs."""

from __future__ import annotations

from pyoxigraph import DefaultGraph

from headwater.algebra.active_graphs import ActiveGraph
from headwater.linting.lint_subject import LintSubject
from headwater.linting.observed_data import StreamSample
from headwater.terms.model import NamedNode, Term
from headwater.terms.names import iri_to_name

Place = tuple[Term | None, Term | None, Term | None]
"""What a triple must have as subject, predicate and object; None stands for any."""


class PatternSources:
    """The windows and static graphs that a pattern reads."""

    def __init__(self, subject: LintSubject, graph: ActiveGraph) -> None:
        self._observed = subject.observed
        streams = dict.fromkeys(subject.plan.windows[number].stream for number in graph.windows)
        self.samples: dict[NamedNode, StreamSample | None] = {
            stream: subject.observed.samples.get(stream) for stream in streams
        }
        self._graphs: list[NamedNode | DefaultGraph | None] = []
        self._is_remote = graph.is_remote
        loaded = subject.observed.loaded
        self._has_loaded = loaded is None
        for one in graph.static_graphs:
            match one.name:
                case NamedNode() as name:
                    self._graphs.append(name)
                    self._has_loaded |= loaded is not None and name in loaded.named
                case None if one.clause == "default graph":
                    self._graphs.append(DefaultGraph())
                    self._has_loaded |= loaded is not None and loaded.has_default
                case _:
                    # Any named graph.
                    self._graphs.append(None)
                    self._has_loaded |= loaded is not None and bool(loaded.named)

    @property
    def are_known(self) -> bool:
        """Whether it is known what these sources have, and they have something (else see `unmatchable_patterns`)."""
        if not self.samples and not self._has_loaded:
            return False
        samples = [sample for sample in self.samples.values() if sample is not None and sample.elements]
        is_data_known = not self._graphs or self._observed.has_statement is not None
        return not self._is_remote and len(samples) == len(self.samples) and is_data_known

    def have(self, place: Place) -> bool:
        """Whether some triple of a source has terms at their places."""
        if any(sample is not None and sample.has(*place) for sample in self.samples.values()):
            return True
        has_statement = self._observed.has_statement
        return has_statement is not None and any(has_statement(*place, graph) for graph in self._graphs)

    def terms_of(self, predicate: Term, *, are_objects: bool) -> frozenset[Term] | None:
        """The sampled and loaded objects, or subjects, of a predicate; None where there may be others."""
        list_terms = self._observed.list_terms
        if not self.are_known:
            return None
        terms: set[Term] = set()
        for graph in self._graphs:
            found = None if list_terms is None else list_terms(predicate, are_objects, graph)
            if found is None:
                return None
            terms |= found
        sampled = [sample.predicates.get(predicate) for sample in self.samples.values() if sample is not None]
        for one in sampled:
            terms |= set() if one is None else one.objects if are_objects else one.subjects
        return frozenset(terms)

    @property
    def are_whole(self) -> bool:
        """Whether the samples have all elements of their streams."""
        return all(sample is not None and sample.is_whole for sample in self.samples.values())

    @property
    def absence(self) -> str:
        """That a term is in none of the sources, in words."""
        texts = [sample_text(stream, sample) for stream, sample in self.samples.items() if sample is not None]
        if self._graphs:
            texts.append("in the static data (--data)")
        return "occurs neither " + " nor ".join(texts) if len(texts) > 1 else f"does not occur {texts[0]}"

    def place_elsewhere(self, place: Place) -> str | None:
        """Where else in the data there are such terms, in words; None where they are nowhere."""
        for stream, sample in self._observed.samples.items():
            if stream not in self.samples and sample.has(*place):
                return f"the stream {iri_to_name(stream.value)} has it: match it in the clause of a window over it"
        has_statement = self._observed.has_statement
        if has_statement is not None and not self._graphs and has_statement(*place, DefaultGraph()):
            return "the static data has it: match it outside of the clause of the window"
        return None


def sample_text(stream: NamedNode, sample: StreamSample) -> str:
    """The sample of a stream, in words."""
    name = iri_to_name(stream.value)
    if sample.is_whole:
        return f"in the stream {name}"
    return f"in the first {sample.elements:,} elements of the stream {name}"
