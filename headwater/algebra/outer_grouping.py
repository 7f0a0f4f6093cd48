"""A query whose solutions come from one outermost grouping: the grouping, and the operators above it.

    Project( Extend( Filter( Group( … ), HAVING ), ?mean, expression of SELECT ))

Each operator above the grouping reads one group at a time, so it does not matter where the groups were computed: shards
can give partial groups, and the steps are applied after merging.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from headwater.algebra.nodes import Extend, Filter, Group, Node, Project
from headwater.algebra.presentation import Presentation
from headwater.algebra.scope import expressions_of
from headwater.language.expressions import Expression
from headwater.terms.model import Variable


@dataclass(frozen=True, slots=True)
class OuterGrouping:
    """A grouping and the operators above it, in the order of their application."""

    group: Group
    steps: tuple[Extend | Filter, ...]

    @classmethod
    def of(cls, root: Node) -> OuterGrouping | None:
        """The outermost grouping of a plan, if there is one, below ORDER BY, DISTINCT and LIMIT."""
        _, below = Presentation.extract_any(root)
        if isinstance(below, Project):
            below = below.inner
        steps: list[Extend | Filter] = []
        while isinstance(below, Extend | Filter):
            steps.append(below)
            below = below.inner
        return cls(below, tuple(reversed(steps))) if isinstance(below, Group) else None

    @property
    def variables(self) -> tuple[Variable, ...]:
        """The variables of a group: its keys, then its aggregates."""
        return tuple(variable for variable, _ in (*self.group.keys, *self.group.aggregates))

    def can_evaluate_steps(self, can_evaluate: Callable[[Expression], bool]) -> bool:
        """Whether every expression of the steps can be evaluated."""
        return all(can_evaluate(expression) for step in self.steps for expression in expressions_of(step))
