"""The triples on the walks of a property path between two terms."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from headwater.language.patterns import (
    Alternative,
    Inverse,
    Link,
    NegatedSet,
    OneOrMore,
    Path,
    Sequence,
    ZeroOrMore,
    ZeroOrOne,
)
from headwater.terms.model import NamedNode, Term, Triple

_Ends = dict[Term, frozenset[Triple]]
"""The terms to which a path leads, each with the triples on all walks to it."""


class PathWalks:
    """Follows property paths through some triples."""

    def __init__(self, triples: Iterable[Triple]) -> None:
        self._leaving: dict[Term, list[Triple]] = {}
        self._arriving: dict[Term, list[Triple]] = {}
        for triple in dict.fromkeys(triples):
            self._leaving.setdefault(triple.subject, []).append(triple)
            self._arriving.setdefault(triple.object, []).append(triple)

    def between(self, path: Path | NamedNode, start: Term, end: Term) -> frozenset[Triple]:
        """The triples on all walks from one term to another."""
        return self._follow(path, start, is_inverse=False).get(end, frozenset())

    def _follow(self, path: Path | NamedNode, start: Term, *, is_inverse: bool) -> _Ends:
        match path:
            case NamedNode() | Link():
                predicate = path.predicate if isinstance(path, Link) else path
                steps = self._steps(start, is_inverse)
                return _merge((end, {triple}) for end, triple in steps if triple.predicate == predicate)
            case NegatedSet(forward, inverse):
                found = [
                    (end, {triple})
                    for excluded, is_back in ((forward, is_inverse), (inverse, not is_inverse))
                    if excluded
                    for end, triple in self._steps(start, is_back)
                    if triple.predicate not in excluded
                ]
                return _merge(found)
            case Inverse(inner):
                return self._follow(inner, start, is_inverse=not is_inverse)
            case Sequence(left, right):
                first, second = (right, left) if is_inverse else (left, right)
                return _merge(
                    (end, one | other)
                    for middle, one in self._follow(first, start, is_inverse=is_inverse).items()
                    for end, other in self._follow(second, middle, is_inverse=is_inverse).items()
                )
            case Alternative(left, right):
                both = (self._follow(one, start, is_inverse=is_inverse) for one in (left, right))
                return _merge(item for ends in both for item in ends.items())
            case ZeroOrOne(inner):
                return _merge([(start, frozenset()), *self._follow(inner, start, is_inverse=is_inverse).items()])
            case ZeroOrMore(inner) | OneOrMore(inner):
                return self._follow_often(inner, start, is_inverse, isinstance(path, ZeroOrMore))
        raise TypeError(f"no walks along {type(path).__name__}")

    def _steps(self, start: Term, is_inverse: bool) -> Iterator[tuple[Term, Triple]]:
        if is_inverse:
            yield from ((triple.subject, triple) for triple in self._arriving.get(start, ()))
        else:
            yield from ((triple.object, triple) for triple in self._leaving.get(start, ()))

    def _follow_often(self, inner: Path, start: Term, is_inverse: bool, from_zero: bool) -> _Ends:
        """A closure: on the walks to a term are all steps from where the term can still be reached."""
        steps: dict[Term, _Ends] = {}
        waiting = [start]
        while waiting:
            term = waiting.pop()
            if term not in steps:
                steps[term] = self._follow(inner, term, is_inverse=is_inverse)
                waiting.extend(steps[term])
        ends = {end for after in steps.values() for end in after} | ({start} if from_zero else set())
        return {end: self._on_walks(steps, end) for end in ends}

    @staticmethod
    def _on_walks(steps: dict[Term, _Ends], end: Term) -> frozenset[Triple]:
        leading, has_grown = {end}, True
        while has_grown:
            more = {term for term, after in steps.items() if leading & after.keys()} - leading
            leading |= more
            has_grown = bool(more)
        return frozenset(
            triple for after in steps.values() for other in after.keys() & leading for triple in after[other]
        )


def _merge(found: Iterable[tuple[Term, Iterable[Triple]]]) -> _Ends:
    merged: dict[Term, set[Triple]] = {}
    for end, triples in found:
        merged.setdefault(end, set()).update(triples)
    return {end: frozenset(triples) for end, triples in merged.items()}
