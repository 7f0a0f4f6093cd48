"""What one statement more, or one less, changes in the solutions of a conjunction.

    Δ(P₁ ⋈ … ⋈ Pₙ) = Σᵢ  P₁ ⋈ … ⋈ Pᵢ₋₁ ⋈ {t} ⋈ Pᵢ₊₁⁺ ⋈ … ⋈ Pₙ⁺        P⁺ with the statement t, P without it

Only what t leads to is looked at, so the cost follows the change and not the data.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np

from headwater.datasets.change_log import IdQuad
from headwater.datasets.mapped_files import Ints
from headwater.datasets.statement_columns import Place
from headwater.datasets.views.conjunctions import Conjunction, Part, Pattern

Binding = dict[str, int]


class Lookups(Protocol):
    """What is asked of data sets, statement by statement."""

    def objects(self, place: Place, s: int) -> list[int]: ...

    def subjects(self, place: Place, o: int) -> list[int]: ...

    def id_quads(
        self, subject: int | None, predicate: int | None, object: int | None, graph: int | None
    ) -> Iterator[IdQuad]: ...


def can_follow(conjunction: Conjunction) -> bool:
    """Whether differences can be found statement by statement: a merge of graphs may have it from another one."""
    return bool(conjunction.patterns) and all(len(pattern.graphs) <= 1 for pattern in conjunction.patterns)


def rows_with(conjunction: Conjunction, statement: IdQuad, data: Lookups) -> Ints:
    """The solutions that rest on a statement, which the data has; conditions are not looked at."""
    names = conjunction.variables
    found: list[list[int]] = []
    for number, pattern in enumerate(conjunction.patterns):
        binding = _matched(pattern, statement, {})
        if binding is None:
            continue
        others = [(one, place < number) for place, one in enumerate(conjunction.patterns) if place != number]
        for solution in _extended(binding, others, statement, data):
            found.append([solution[name] for name in names])
    return np.array(found, dtype=np.int64).reshape(len(found), len(names))


def _matched(pattern: Pattern, statement: IdQuad, binding: Binding) -> Binding | None:
    graph, *terms = statement
    if graph not in pattern.graphs:
        return None
    longer = dict(binding)
    for part, term in zip((pattern.subject, pattern.predicate, pattern.object), terms, strict=True):
        if isinstance(part, int):
            if part != term:
                return None
        elif longer.setdefault(part, term) != term:
            return None
    return longer


def _extended(
    binding: Binding, patterns: Sequence[tuple[Pattern, bool]], statement: IdQuad, data: Lookups
) -> Iterator[Binding]:
    """All solutions of the patterns that go with a binding; those that are marked do without the statement."""
    if not patterns:
        yield binding
        return
    pattern, is_without = min(patterns, key=lambda one: _freedom(one[0], binding))
    rest = [one for one in patterns if one[0] is not pattern]
    for found in _matches(pattern, binding, data):
        if is_without and found == statement:
            continue
        longer = _matched(pattern, found, binding)
        if longer is not None:
            yield from _extended(longer, rest, statement, data)


def _freedom(pattern: Pattern, binding: Binding) -> int:
    """How much a pattern leaves open, weighed by how hard it is to look up."""
    known = [_value(part, binding) is not None for part in (pattern.subject, pattern.predicate, pattern.object)]
    return 4 * (not known[1]) + 2 * (not (known[0] or known[2])) + (not (known[0] and known[2]))


def _matches(pattern: Pattern, binding: Binding, data: Lookups) -> Iterator[IdQuad]:
    subject, predicate, object_ = (
        _value(part, binding) for part in (pattern.subject, pattern.predicate, pattern.object)
    )
    for graph in pattern.graphs:
        if predicate is None or (subject is None and object_ is None):
            yield from data.id_quads(subject, predicate, object_, graph)
        elif subject is not None:
            for o in data.objects((graph, predicate), subject):
                yield graph, subject, predicate, o
        elif object_ is not None:
            for s in data.subjects((graph, predicate), object_):
                yield graph, s, predicate, object_


def _value(part: Part, binding: Binding) -> int | None:
    return part if isinstance(part, int) else binding.get(part)
