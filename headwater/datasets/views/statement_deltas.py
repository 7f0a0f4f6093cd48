"""How one added or removed statement changes the solutions of a conjunction.

    Δ(P₁ ⋈ … ⋈ Pₙ) = Σᵢ  P₁ ⋈ … ⋈ Pᵢ₋₁ ⋈ {t} ⋈ Pᵢ₊₁⁺ ⋈ … ⋈ Pₙ⁺        P⁺ with the statement t, P without it

Each term of the sum is found by lookups that begin with t: the cost depends on the change, not on the size of the data.
A pattern that is matched against a merge of graphs does not change where another of these graphs has the triple of t.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

import numpy as np

from headwater.datasets.change_log import IdQuad
from headwater.datasets.mapped_files import Ints
from headwater.datasets.statement_columns import GroupKey
from headwater.datasets.views.conjunctions import ColumnPattern, Conjunction, PatternTerm

Binding = dict[str, int]
IdTriple = tuple[int, int, int]


class StatementLookup(Protocol):
    """Looks up single statements of data sets."""

    def objects_of(self, key: GroupKey, s: int) -> list[int]: ...

    def subjects_of(self, key: GroupKey, o: int) -> list[int]: ...

    def id_quads(
        self, subject: int | None, predicate: int | None, object: int | None, graph: int | None
    ) -> Iterator[IdQuad]: ...


def is_incrementally_maintainable(conjunction: Conjunction) -> bool:
    """Whether its solutions can be maintained statement by statement."""
    return bool(conjunction.patterns)


def find_solutions_using(conjunction: Conjunction, statement: IdQuad, data: StatementLookup) -> Ints:
    """The solutions that there would not be without a statement of the data, without regard to conditions."""
    names = conjunction.variables
    rows: list[list[int]] = []
    needs_statement = [_needs_statement(pattern, statement, data) for pattern in conjunction.patterns]
    for index, pattern in enumerate(conjunction.patterns):
        binding = _match_triple(pattern, statement[1:], {}) if needs_statement[index] else None
        if binding is None:
            continue
        others = [
            (one, other < index and needs_statement[other])
            for other, one in enumerate(conjunction.patterns)
            if other != index
        ]
        for solution in _extend_binding(binding, others, statement, data):
            rows.append([solution[name] for name in names])
    return np.array(rows, dtype=np.int64).reshape(len(rows), len(names))


def _needs_statement(pattern: ColumnPattern, statement: IdQuad, data: StatementLookup) -> bool:
    """Whether a pattern reads the graph of a statement, and none of its other graphs has the same triple."""
    graph, s, p, o = statement
    others = (other for other in pattern.graphs if other != graph)
    return graph in pattern.graphs and not any(True for other in others for _ in data.id_quads(s, p, o, other))


def _match_triple(pattern: ColumnPattern, triple: IdTriple, binding: Binding) -> Binding | None:
    """The binding with what a pattern binds in a triple; None if they do not match."""
    extended = dict(binding)
    for wanted, term in zip((pattern.subject, pattern.predicate, pattern.object), triple, strict=True):
        if isinstance(wanted, int):
            if wanted != term:
                return None
        elif extended.setdefault(wanted, term) != term:
            return None
    return extended


def _extend_binding(
    binding: Binding, patterns: Sequence[tuple[ColumnPattern, bool]], statement: IdQuad, data: StatementLookup
) -> Iterator[Binding]:
    """All solutions of the patterns that agree with a binding; patterns with a True do not match the statement."""
    if not patterns:
        yield binding
        return
    pattern, skips_statement = min(patterns, key=lambda one: _lookup_cost(one[0], binding))
    rest = [one for one in patterns if one[0] is not pattern]
    for match in _find_matches(pattern, binding, data):
        if skips_statement and match == statement[1:]:
            continue
        extended = _match_triple(pattern, match, binding)
        if extended is not None:
            yield from _extend_binding(extended, rest, statement, data)


def _lookup_cost(pattern: ColumnPattern, binding: Binding) -> int:
    """An estimate of what it costs to look up a pattern: the less is bound, the more."""
    known = [_value_of(term, binding) is not None for term in (pattern.subject, pattern.predicate, pattern.object)]
    return 4 * (not known[1]) + 2 * (not (known[0] or known[2])) + (not (known[0] and known[2]))


def _find_matches(pattern: ColumnPattern, binding: Binding, data: StatementLookup) -> Iterable[IdTriple]:
    """The triples, in whichever of the graphs of a pattern, that may match it."""
    found = (triple for graph in pattern.graphs for triple in _find_in_graph(graph, pattern, binding, data))
    return found if len(pattern.graphs) == 1 else dict.fromkeys(found)


def _find_in_graph(graph: int, pattern: ColumnPattern, binding: Binding, data: StatementLookup) -> Iterator[IdTriple]:
    subject, predicate, object_ = (
        _value_of(term, binding) for term in (pattern.subject, pattern.predicate, pattern.object)
    )
    if predicate is None or (subject is None and object_ is None):
        yield from (quad[1:] for quad in data.id_quads(subject, predicate, object_, graph))
    elif subject is not None:
        yield from ((subject, predicate, o) for o in data.objects_of((graph, predicate), subject))
    elif object_ is not None:
        yield from ((s, predicate, object_) for s in data.subjects_of((graph, predicate), object_))


def _value_of(term: PatternTerm, binding: Binding) -> int | None:
    return term if isinstance(term, int) else binding.get(term)
