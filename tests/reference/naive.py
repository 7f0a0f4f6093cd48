"""The definitions once more, by brute force: windows by looking at every instant, patterns by trying every triple.

Nothing here is shared with the engine: intervals are written as the papers write them, ticks are found by walking
through time one microsecond after the other, and patterns are matched against a plain list of triples.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass

Fact = tuple[str, str, str]
Solution = frozenset[tuple[str, str]]
Timed = tuple[int, tuple[Fact, ...]]


@dataclass(frozen=True)
class NaiveWindow:
    """A window as its definition says; `slide` None advances at every instant, `count` makes it a count window."""

    width: int
    slide: int | None = None
    t0: int | None = None
    closed_right: bool = True
    count: int | None = None

    def is_advance(self, instant: int) -> bool:
        if self.slide is None:
            return True
        opened = instant - self.width - (self.t0 or 0)
        return opened % self.slide == 0 and (self.t0 is None or opened >= 0)

    def content(self, elements: list[Timed], instant: int) -> list[Timed]:
        if self.count is not None:
            arrived = sorted((t, fact) for t, facts in elements for fact in facts if t <= instant)
            return [(t, (fact,)) for t, fact in arrived[-self.count :]]
        closed = instant
        while not self.is_advance(closed):
            closed -= 1
            if closed < -200:
                return []
        opened = closed - self.width
        if self.closed_right:
            return [(t, facts) for t, facts in elements if opened < t <= closed and self._after_t0(t)]
        return [(t, facts) for t, facts in elements if opened <= t < closed and self._after_t0(t)]

    def _after_t0(self, time: int) -> bool:
        if self.t0 is None:
            return True
        return time > self.t0 if self.closed_right else time >= self.t0

    def covers(self, first: int, last: int, closed: int) -> bool:
        """Whether the window that closes here reaches the first element and has not passed the last one."""
        opened = closed - self.width
        if self.closed_right:
            return (self.t0 is not None or first <= closed) and opened < last
        return (self.t0 is not None or first < closed) and opened <= last


def close_ticks(window: NaiveWindow, elements: list[Timed], instants: range) -> list[int]:
    """Every advance from the first window that can hold the first element to the last that holds the last one."""
    times = [t for t, _ in elements]
    if not times:
        return []
    return [t for t in instants if window.is_advance(t) and window.covers(min(times), max(times), t)]


def change_ticks(windows: list[tuple[NaiveWindow, list[Timed]]], instants: range) -> list[int]:
    """Every instant at which something enters or leaves one of the windows."""
    found = []
    for instant in instants:
        for window, elements in windows:
            if sorted(window.content(elements, instant)) != sorted(window.content(elements, instant - 1)):
                found.append(instant)
                break
            if window.count is not None and any(t == instant and facts for t, facts in elements):
                found.append(instant)
                break
    return found


def facts_of(content: Iterable[Timed], *, as_set: bool) -> list[Fact]:
    facts = [fact for _, graph in content for fact in graph]
    return sorted(set(facts)) if as_set else facts


def match(facts: list[Fact], *patterns: tuple[str, str, str]) -> list[Solution]:
    """A basic graph pattern: every way to choose a fact for each pattern."""
    solutions: list[dict[str, str]] = [{}]
    for pattern in patterns:
        extended = []
        for solution in solutions:
            for fact in facts:
                candidate = dict(solution)
                if all(_bind(candidate, wanted, found) for wanted, found in zip(pattern, fact, strict=True)):
                    extended.append(candidate)
        solutions = extended
    return [frozenset(solution.items()) for solution in solutions]


def _bind(solution: dict[str, str], wanted: str, found: str) -> bool:
    if not wanted.startswith("?"):
        return wanted == found
    return solution.setdefault(wanted[1:], found) == found


def compatible(left: Solution, right: Solution) -> bool:
    known = dict(left)
    return all(known.get(variable, value) == value for variable, value in right)


def join(left: list[Solution], right: list[Solution]) -> list[Solution]:
    return [a | b for a in left for b in right if compatible(a, b)]


def left_join(left: list[Solution], right: list[Solution]) -> list[Solution]:
    return join(left, right) + [a for a in left if not any(compatible(a, b) for b in right)]


def minus(left: list[Solution], right: list[Solution]) -> list[Solution]:
    def removes(a: Solution, b: Solution) -> bool:
        return compatible(a, b) and bool({v for v, _ in a} & {v for v, _ in b})

    return [a for a in left if not any(removes(a, b) for b in right)]


def project(solutions: list[Solution], *variables: str) -> list[Solution]:
    return [frozenset((v, t) for v, t in solution if v in variables) for solution in solutions]


def counted(solutions: list[Solution], key: str, name: str) -> list[Solution]:
    groups = Counter(dict(solution)[key] for solution in solutions)
    return [frozenset({(key, group), (name, str(n))}) for group, n in groups.items()]


Evaluate = Callable[[list[list[Fact]]], list[Solution]]
"""A query as a function of what its windows hold."""
