"""The top of a query: what ORDER BY, DISTINCT, LIMIT and OFFSET make of the solutions below it.

    Slice( Distinct( Project( OrderBy( solutions ))))          each of them where the query has it

Shards that never need each other give the solutions; the presentation is for those of all shards together. So that they
do not give more than can be needed, each presents its own as far as that is safe (`in_part`).
"""

from __future__ import annotations

from dataclasses import dataclass

from headwater.algebra.nodes import Distinct, Node, OrderBy, Project, Reduced, Slice
from headwater.algebra.scope import mentioned
from headwater.language.expressions import Expression
from headwater.terms.model import Variable


@dataclass(frozen=True)
class Presentation:
    """The top of a query or sub-query: keys with whether they descend, the variables shown, and what is cut off."""

    keys: tuple[tuple[Expression, bool], ...]
    variables: tuple[Variable, ...]
    distinct: bool
    offset: int
    limit: int | None

    @classmethod
    def of(cls, plan: Node) -> tuple[Presentation | None, Node]:
        """The presentation that a plan asks for, if any, and the plan below it. DISTINCT alone is none."""
        found, below = cls.of_all(plan)
        if found is None or not (isinstance(plan, Slice) or found.keys):
            return None, plan
        return found, below

    @classmethod
    def of_all(cls, plan: Node) -> tuple[Presentation | None, Node]:
        """The same, where DISTINCT alone is a presentation, too."""
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
    def needed(self) -> tuple[Variable, ...]:
        """What must be known of the solutions: what is shown, and what they are ordered by."""
        read = (variable for key, _ in self.keys for variable in sorted(mentioned(key), key=lambda v: v.value))
        return tuple(dict.fromkeys((*self.variables, *read)))

    def in_part(self, below: Node) -> Node:
        """What a part of the solutions must give so that the parts can be presented together.

        Of each part no more can be shown than of the whole, and equal rows of one part need not be given twice; but
        where rows are told apart by what is not shown, only the whole can say which of them comes first.
        """
        shows_all = self.needed == self.variables
        if self.limit is None or (self.distinct and not shows_all):
            found: Node = Project(below, self.needed)
            return Distinct(found) if self.distinct and shows_all else found
        found = Project(OrderBy(below, self.keys) if self.keys else below, self.needed)
        return Slice(Distinct(found) if self.distinct else found, 0, self.offset + self.limit)
