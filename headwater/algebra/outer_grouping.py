"""A query whose answer is made of one grouping: the grouping, and what is made of each of its groups.

    Project( Extend( Filter( Group( … ), HAVING ), ?mean, expression of SELECT ))

Each step above the grouping looks at one group at a time, so it does not matter where the groups came from: shards can
give parts of the groups, and whoever puts the groups together takes the steps.
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
    """A grouping, and the steps from its groups to the solutions of the query, first step first."""

    group: Group
    steps: tuple[Extend | Filter, ...]

    @classmethod
    def of(cls, root: Node) -> OuterGrouping | None:
        """The grouping of which all solutions of a plan are made, if there is one; LIMIT and the like are not steps."""
        _, below = Presentation.of_all(root)
        if isinstance(below, Project):
            below = below.inner
        steps: list[Extend | Filter] = []
        while isinstance(below, Extend | Filter):
            steps.append(below)
            below = below.inner
        return cls(below, tuple(reversed(steps))) if isinstance(below, Group) else None

    @property
    def variables(self) -> tuple[Variable, ...]:
        """What a group binds: its keys, then its aggregates."""
        return tuple(variable for variable, _ in (*self.group.keys, *self.group.aggregates))

    def steps_are(self, evaluable: Callable[[Expression], bool]) -> bool:
        """Whether something holds for every expression of the steps."""
        return all(evaluable(expression) for step in self.steps for expression in expressions_of(step))
