"""The solution modifiers at the top of a query: ORDER BY, DISTINCT, LIMIT and OFFSET.

    Slice( Distinct( Project( OrderBy( solutions ))))          each of them where the query has it

With independent shards the modifiers apply to the solutions of all shards together. Each shard applies them to its own
solutions as far as that is safe (`partial_plan`), so that it does not send more than can be needed.
"""

from __future__ import annotations

from dataclasses import dataclass

from headwater.algebra.nodes import Distinct, Node, OrderBy, Project, Reduced, Slice
from headwater.algebra.scope import expression_variables
from headwater.language.expressions import Expression
from headwater.terms.model import Variable


@dataclass(frozen=True)
class Presentation:
    """The modifiers of a query or sub-query: sort keys (with whether they descend), projection, DISTINCT and slice."""

    keys: tuple[tuple[Expression, bool], ...]
    variables: tuple[Variable, ...]
    is_distinct: bool
    offset: int
    limit: int | None

    @classmethod
    def extract(cls, plan: Node) -> tuple[Presentation | None, Node]:
        """The presentation of a plan and the plan below it; None if it neither sorts nor slices."""
        presentation, below = cls.extract_any(plan)
        if presentation is None or not (isinstance(plan, Slice) or presentation.keys):
            return None, plan
        return presentation, below

    @classmethod
    def extract_any(cls, plan: Node) -> tuple[Presentation | None, Node]:
        """The same, but DISTINCT alone is a presentation, too."""
        top: Node = plan
        offset, limit, distinct = 0, None, False
        if isinstance(top, Slice):
            offset, limit, top = top.offset, top.limit, top.inner
        if isinstance(top, Distinct | Reduced):
            distinct, top = True, top.inner
        if not isinstance(top, Project) or not (top is not plan or isinstance(top.inner, OrderBy)):
            return None, plan
        keys = top.inner.keys if isinstance(top.inner, OrderBy) else ()
        below = top.inner.inner if isinstance(top.inner, OrderBy) else top.inner
        return cls(keys, top.variables, distinct, offset, limit), below

    @property
    def needed_variables(self) -> tuple[Variable, ...]:
        """The variables that are projected or sorted by."""
        read = (
            variable for key, _ in self.keys for variable in sorted(expression_variables(key), key=lambda v: v.value)
        )
        return tuple(dict.fromkeys((*self.variables, *read)))

    def partial_plan(self, below: Node) -> Node:
        """The plan of one shard, such that the presentation can be applied to the union of all shards.

        A shard needs to give no more rows than the limit, and equal rows once. But DISTINCT with sort keys that are not
        projected can only be applied to the whole.
        """
        shows_all = self.needed_variables == self.variables
        if self.limit is None or (self.is_distinct and not shows_all):
            shard_plan: Node = Project(below, self.needed_variables)
            return Distinct(shard_plan) if self.is_distinct and shows_all else shard_plan
        shard_plan = Project(OrderBy(below, self.keys) if self.keys else below, self.needed_variables)
        return Slice(Distinct(shard_plan) if self.is_distinct else shard_plan, 0, self.offset + self.limit)
