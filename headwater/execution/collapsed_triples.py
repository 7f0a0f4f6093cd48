"""Counts of equal triples that collapsed: those that entered the windows of a set while an equal one was in them.

    in the window: :s1 :value 20      enters: :s1 :value 20      `?s :value ?v` has one solution, and 1 has collapsed

They are told of where an aggregate counts them, in the same query, or in one that reads the graphs that this one makes:

    REGISTER STREAM Mid AS CONSTRUCT { ?s :mid ?c } … WHERE { ?s :measured ?c }
    SELECT (COUNT(?c) AS ?n) FROM STREAM <Mid> … WHERE { ?s :mid ?c }           counts what came as ?s :measured ?c

The law: at a tick at which n copies of a triple enter, n collapse if another copy stays in view, else n - 1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from headwater.algebra.aggregated_patterns import aggregated_patterns, patterns_behind, variables_of
from headwater.algebra.placed_patterns import EACH, PlacedPattern
from headwater.algebra.plan import QueryPlan
from headwater.algebra.window_graphs import windows_of
from headwater.execution.registered import RegisteredQuery, order_producers_first
from headwater.explain.notation import Notation
from headwater.language.patterns import TriplePattern
from headwater.terms.model import Variable
from headwater.terms.names import iri_to_name

Readers = Mapping[TriplePattern, str]
"""The patterns of a query whose triples another one counts, each with the name of one that does."""


@dataclass(frozen=True, slots=True)
class CollapsedTriples:
    """How many triples of a pattern were not counted, because a set window held an equal one already.

    `is_aggregated` says that an aggregate would have counted them. `window` names the windows, by their labels.
    `reader` names the query with the aggregate, where that reads the triples that this query makes of them.
    """

    window: str
    pattern: str
    count: int
    is_aggregated: bool
    reader: str | None = None


class CollapseCounts:
    """Follows counters that may be exchanged for others, and gives what they counted since it was last taken."""

    def __init__(self) -> None:
        self._counters: Mapping[PlacedPattern, Callable[[], int]] = {}
        self._before: dict[PlacedPattern, int] = {}
        self._counts: dict[PlacedPattern, int] = {}

    def follow(self, counters: Mapping[PlacedPattern, Callable[[], int]]) -> None:
        """Follow these counters; what they have counted before does not matter."""
        if counters is not self._counters:
            self._read()
            self._counters = counters
        self._before = {pattern: counter() for pattern, counter in counters.items()}

    def _read(self) -> None:
        for pattern, counter in self._counters.items():
            now = counter()
            if now != self._before[pattern]:
                self._counts[pattern] = self._counts.get(pattern, 0) + now - self._before[pattern]
                self._before[pattern] = now

    def take(self) -> dict[PlacedPattern, int]:
        """How many triples collapsed since this was last called."""
        self._read()
        counts, self._counts = self._counts, {}
        return counts


def describe_collapsed(
    plan: QueryPlan, counts: Mapping[PlacedPattern, int], readers: Readers
) -> Iterator[CollapsedTriples]:
    """The counts of a plan's patterns, in words; without those that are 0.

    `readers` names for some patterns another query that counts what is made of them.
    """
    if not any(counts.values()):
        return
    notation, aggregated = Notation.of(plan), aggregated_patterns(plan.root)
    for (graph, triple, name), count in counts.items():
        if count:
            labels = ", ".join(iri_to_name(plan.windows[number].label) for number in windows_of(plan, graph))
            where = "" if name is None else " in one graph" if name == EACH else f" in the graph {notation.term(name)}"
            is_own, reader = triple in aggregated, readers.get(triple)
            text = notation.triple(triple) + where
            yield CollapsedTriples(labels, text, count, is_own or reader is not None, None if is_own else reader)


def add_collapsed(one: Iterable[CollapsedTriples], other: Iterable[CollapsedTriples]) -> tuple[CollapsedTriples, ...]:
    """Two lists of counts as one, each pattern of a window once."""
    found: dict[tuple[str, str], CollapsedTriples] = {}
    for part in (*one, *other):
        key = part.window, part.pattern
        known = found.get(key)
        found[key] = part if known is None else replace(known, count=known.count + part.count)
    return tuple(found.values())


def collapse_warning(collapsed: CollapsedTriples) -> str:
    """What a person should know of triples that an aggregate did not count, and do."""
    some = "1 triple" if collapsed.count == 1 else f"{collapsed.count:,} triples"
    came = f"{some} of {collapsed.pattern} came while the window {collapsed.window} held an equal one"
    own = "give every reading a subject of its own, such as one observation per reading"
    if collapsed.reader is not None:
        return (
            f"{came}, and equal triples of a graph are one: the aggregate of {collapsed.reader}, which reads what this "
            f"query makes, counts them once. To count each, {own}, that the template passes on"
        )
    return (
        f"{came}, and equal triples of a set are one: aggregates count them once. Run it with --content bag "
        f'(content="bag") to count each, or {own}'
    )


def find_counting_readers(queries: Sequence[RegisteredQuery]) -> dict[str, Readers]:
    """For each query whose triples others count: the patterns behind these triples.

    A template makes a graph, which is a set. So a copy is lost before it is counted, and a bag would not keep it.
    """
    produced = {query.produces: query for query in queries if query.produces is not None}
    found: dict[str, Readers] = {}
    if not produced:
        return found
    for reader in reversed(order_producers_first(queries)):
        counted = {**found.get(reader.plan.name, {}), **dict.fromkeys(aggregated_patterns(reader.plan.root), "")}
        for stream in dict.fromkeys(source.stream.value for source in reader.plan.windows):
            feeder = produced.get(stream)
            if feeder is not None:
                behind = _patterns_behind_template(feeder, counted)
                names = {pattern: name or reader.plan.name for pattern, name in behind.items()}
                found[feeder.plan.name] = {**names, **found.get(feeder.plan.name, {})}
    return found


def _patterns_behind_template(feeder: RegisteredQuery, counted: Readers) -> Readers:
    """The patterns behind those triples of a query's template that match some patterns, with the names of these."""
    return {
        pattern: name
        for triple in feeder.plan.template
        for other, name in counted.items()
        if _can_match(other, triple)
        for pattern in patterns_behind(feeder.plan.root, variables_of(triple))
    }


def _can_match(pattern: TriplePattern, made: TriplePattern) -> bool:
    """Whether a pattern matches some triple that a triple of a template makes."""
    pairs = (
        (pattern.subject, made.subject),
        (pattern.predicate, made.predicate),
        (pattern.object, made.object),
    )
    return all(one == other or isinstance(one, Variable) or isinstance(other, Variable) for one, other in pairs)
