"""Patterns of a query whose triples another query counts: copies of them are told of, too.

    REGISTER STREAM Mid AS CONSTRUCT { ?s :mid ?c } … WHERE { ?s :measured ?c }
    SELECT (COUNT(?c) AS ?n) FROM STREAM <Mid> … WHERE { ?s :mid ?c }           counts what came as ?s :measured ?c

A template makes a graph, which is a set. So a copy is lost before it is counted, and a bag would not keep it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from headwater.algebra.aggregated_patterns import aggregated_patterns, patterns_behind, variables_of
from headwater.execution.registered import RegisteredQuery, order_producers_first
from headwater.language.patterns import TriplePattern
from headwater.terms.model import Variable

Readers = Mapping[TriplePattern, str]
"""The patterns of a query whose triples another one counts, each with the name of one that does."""


def find_counting_readers(queries: Sequence[RegisteredQuery]) -> dict[str, Readers]:
    """For each query whose triples others count: the patterns behind these triples."""
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
