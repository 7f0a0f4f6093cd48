"""How one added or removed statement changes the solutions of a conjunction.

    Δ(P₁ ⋈ … ⋈ Pₙ) = Σᵢ  P₁ ⋈ … ⋈ Pᵢ₋₁ ⋈ {t} ⋈ Pᵢ₊₁⁺ ⋈ … ⋈ Pₙ⁺        P⁺ with the statement t, P without it

Each term of the sum is found by lookups that begin with t: the cost depends on the change, not on the size of the data.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np

from headwater.datasets.change_log import IdQuad
from headwater.datasets.mapped_files import Ints
from headwater.datasets.statement_columns import GroupKey
from headwater.datasets.views.conjunctions import ColumnPattern, Conjunction, PatternTerm

Binding = dict[str, int]


class StatementLookup(Protocol):
    """Looks up single statements of data sets."""

    def objects_of(self, key: GroupKey, s: int) -> list[int]: ...

    def subjects_of(self, key: GroupKey, o: int) -> list[int]: ...

    def id_quads(
        self, subject: int | None, predicate: int | None, object: int | None, graph: int | None
    ) -> Iterator[IdQuad]: ...


def is_incrementally_maintainable(conjunction: Conjunction) -> bool:
    """Whether its solutions can be maintained statement by statement.

    They cannot where a pattern is matched against a merge of graphs: another graph may have the same triple.
    """
    return bool(conjunction.patterns) and all(len(pattern.graphs) <= 1 for pattern in conjunction.patterns)


def find_solutions_using(conjunction: Conjunction, statement: IdQuad, data: StatementLookup) -> Ints:
    """The solutions that use a statement of the data, without regard to conditions."""
    names = conjunction.variables
    rows: list[list[int]] = []
    for index, pattern in enumerate(conjunction.patterns):
        binding = _match_statement(pattern, statement, {})
        if binding is None:
            continue
        others = [(one, other < index) for other, one in enumerate(conjunction.patterns) if other != index]
        for solution in _extend_binding(binding, others, statement, data):
            rows.append([solution[name] for name in names])
    return np.array(rows, dtype=np.int64).reshape(len(rows), len(names))


def _match_statement(pattern: ColumnPattern, statement: IdQuad, binding: Binding) -> Binding | None:
    """The binding with what a pattern binds in a statement; None if they do not match."""
    graph, *terms = statement
    if graph not in pattern.graphs:
        return None
    extended = dict(binding)
    for wanted, term in zip((pattern.subject, pattern.predicate, pattern.object), terms, strict=True):
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
        if skips_statement and match == statement:
            continue
        extended = _match_statement(pattern, match, binding)
        if extended is not None:
            yield from _extend_binding(extended, rest, statement, data)


def _lookup_cost(pattern: ColumnPattern, binding: Binding) -> int:
    """An estimate of what it costs to look up a pattern: the less is bound, the more."""
    known = [_value_of(term, binding) is not None for term in (pattern.subject, pattern.predicate, pattern.object)]
    return 4 * (not known[1]) + 2 * (not (known[0] or known[2])) + (not (known[0] and known[2]))


def _find_matches(pattern: ColumnPattern, binding: Binding, data: StatementLookup) -> Iterator[IdQuad]:
    subject, predicate, object_ = (
        _value_of(term, binding) for term in (pattern.subject, pattern.predicate, pattern.object)
    )
    for graph in pattern.graphs:
        if predicate is None or (subject is None and object_ is None):
            yield from data.id_quads(subject, predicate, object_, graph)
        elif subject is not None:
            for o in data.objects_of((graph, predicate), subject):
                yield graph, subject, predicate, o
        elif object_ is not None:
            for s in data.subjects_of((graph, predicate), object_):
                yield graph, s, predicate, object_


def _value_of(term: PatternTerm, binding: Binding) -> int | None:
    return term if isinstance(term, int) else binding.get(term)
