"""What the kernel needs of linked data that keeps views: the solutions of a static part as a relation of ids.

Evaluators of the same part share one relation with its indexes. Only the data changes it, when it moves to another
version; evaluators that read it then compile their plans anew.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable
from weakref import WeakSet

from headwater.algebra.nodes import Node
from headwater.algebra.plan import QueryPlan
from headwater.execution.static_data import StaticData
from headwater.kernel.columns.relation import Relation
from headwater.kernel.operators.changing_view import ChangingViewOperator
from headwater.terms.model import Row

EvaluateByReference = Callable[[StaticData], list[Row]]
"""Has the reference evaluate a part over some data."""


@dataclass(frozen=True)
class View:
    """The solutions of a part, with a column for each visible variable; `always_bound` has the columns without gaps."""

    relation: Relation
    always_bound: frozenset[int]
    followers: WeakSet[ChangingViewOperator] = field(default_factory=WeakSet)
    """The operators that are given every change."""

    def follow(self, variables: tuple[str, ...]) -> ChangingViewOperator:
        """An operator that gives the rows, and from now on their deltas."""
        operator = ChangingViewOperator(variables, self.relation)
        self.followers.add(operator)
        return operator


@runtime_checkable
class ViewData(Protocol):
    """Linked data that keeps views."""

    def view(self, plan: QueryPlan, part: Node, ask: EvaluateByReference) -> View:
        """The solutions of a part in the default graph of a plan; `ask` has the reference find them."""

    def text_of(self, term_id: int) -> bytes | None:
        """The text of a hashed id of the data or of a view."""


def outside_texts_of(static: StaticData) -> Callable[[int], bytes | None]:
    """Where the texts of ids are looked up that no evaluator needs to hold."""
    return static.text_of if isinstance(static, ViewData) else lambda _: None
