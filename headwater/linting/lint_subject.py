"""What the rules of the lint look at: a query, the settings under which it runs, and what is known of its data."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from headwater.algebra.nodes import Node
from headwater.algebra.plan import QueryPlan
from headwater.algebra.scope import expressions_of, nodes_of, sub_expressions
from headwater.explain.notation import Notation
from headwater.language.expressions import Expression
from headwater.linting.observed_data import NOTHING_OBSERVED, ObservedData
from headwater.windows.settings import QuerySettings


@dataclass(frozen=True)
class LintSubject:
    """A query as the rules see it."""

    plan: QueryPlan
    settings: QuerySettings
    observed: ObservedData = NOTHING_OBSERVED

    @cached_property
    def notation(self) -> Notation:
        """How the author of the query writes its terms."""
        return Notation.of(self.plan)

    @cached_property
    def nodes(self) -> tuple[Node, ...]:
        """All nodes of the plan, those inside EXISTS included, parents first."""
        return tuple(nodes_of(self.plan.root))

    def expressions(self) -> Iterator[Expression]:
        """All expressions of the query with their parts."""
        for node in self.nodes:
            for expression in expressions_of(node):
                yield from sub_expressions(expression)
