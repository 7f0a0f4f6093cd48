"""What is known of the data that a query reads: samples of its streams, and the static data that is loaded."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from pyoxigraph import DefaultGraph

from headwater.terms.model import Literal, NamedNode, Term, Triple

HasStatement: TypeAlias = Callable[[Term | None, Term | None, Term | None, NamedNode | DefaultGraph | None], bool]
"""Whether some static statement matches a subject, a predicate, an object and a graph; None stands for any."""

ListTerms: TypeAlias = Callable[[Term, bool, NamedNode | DefaultGraph | None], frozenset[Term] | None]
"""The different objects (or with False, subjects) that a predicate has in a static graph; None where they are many."""


@dataclass(frozen=True)
class LoadedGraphs:
    """What is loaded: the names of graphs, and whether there are triples without one."""

    named: frozenset[NamedNode]
    has_default: bool


@dataclass(frozen=True)
class PredicateTerms:
    """The different subjects and objects of the sampled triples that have one predicate."""

    subjects: set[Term] = field(default_factory=set)
    objects: set[Term] = field(default_factory=set)


@dataclass(frozen=True)
class StreamSample:
    """The first elements of a stream. With `is_whole` there are no others.

    `first_time` and `last_time` are the lowest and the highest timestamp, in microseconds; `bad` counts what could not
    be read, and `first_bad` is where and why the first of it could not.
    """

    elements: int
    is_whole: bool
    predicates: Mapping[Term, PredicateTerms] = field(default_factory=dict)
    first_time: int | None = None
    last_time: int | None = None
    bad: int = 0
    first_bad: str = ""
    graphs: frozenset[Term] = frozenset()
    """The names of the graphs of elements."""
    columns: frozenset[str] = frozenset()
    """The columns of JSON rows."""
    absent_columns: frozenset[str] = frozenset()
    """The columns that the template reads and no JSON row has."""
    late: int = 0
    """How many elements are older than one before them."""
    late_by: int = 0
    """By how much they are, at most, in microseconds."""
    first_late: tuple[int, int] | None = None
    """The time of the first of them, and the highest time before it."""
    is_empty: bool = False
    """Whether there is nothing to read yet, not a byte."""

    def has(self, subject: Term | None, predicate: Term | None, object_: Term | None) -> bool:
        """Whether triples have these terms at their places, each for itself; None stands for any."""
        found = self.predicates.values() if predicate is None else [self.predicates.get(predicate, _NONE)]
        return any(
            bool(one.subjects) and (subject is None or subject in one.subjects) and _has_object(one, object_)
            for one in found
        )

    @property
    def literals(self) -> Iterable[Literal]:
        """The literals of the elements."""
        return (term for one in self.predicates.values() for term in one.objects if isinstance(term, Literal))


_NONE = PredicateTerms()


def _has_object(terms: PredicateTerms, object_: Term | None) -> bool:
    return object_ is None or object_ in terms.objects


def index_triples(triples: Iterable[Triple]) -> dict[Term, PredicateTerms]:
    """The terms of some triples by predicate."""
    found: dict[Term, PredicateTerms] = {}
    for triple in triples:
        terms = found.setdefault(triple.predicate, PredicateTerms())
        terms.subjects.add(triple.subject)
        terms.objects.add(triple.object)
    return found


@dataclass(frozen=True)
class ObservedData:
    """What is known. A stream without a sample may have any triple, and so may the static data where `loaded` is None.

    `has_statement` and `list_terms` look into the static data; without them, loaded graphs may have any triple.
    """

    loaded: LoadedGraphs | None = None
    has_statement: HasStatement | None = None
    samples: Mapping[NamedNode, StreamSample] = field(default_factory=dict)
    list_terms: ListTerms | None = None


NOTHING_OBSERVED = ObservedData()
