"""What the kernel asks of linked data that keeps views: the solutions of a static part as a relation of ids.

A view is shared: whoever asks for the same part gets the same relation, with the indexes that others have asked for.
Nobody changes it but the data itself, when it moves to another version; who reads it begins anew then.
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

AskByDefinition = Callable[[StaticData], list[Row]]
"""Has the solutions of a part found by definition, over some data."""


@dataclass(frozen=True)
class View:
    """The solutions of a part, a column for each of its visible variables; `sure` has those that are always bound."""

    relation: Relation
    sure: frozenset[int]
    followers: WeakSet[ChangingViewOperator] = field(default_factory=WeakSet)
    """Who hears of every change."""

    def followed(self, variables: tuple[str, ...]) -> ChangingViewOperator:
        """The rows, and from now on their differences."""
        found = ChangingViewOperator(variables, self.relation)
        self.followers.add(found)
        return found


@runtime_checkable
class ViewData(Protocol):
    """Linked data that keeps views."""

    def view(self, plan: QueryPlan, part: Node, ask: AskByDefinition) -> View:
        """The solutions of a part in the default graph of a plan; `ask` has them found by definition."""

    def text_of(self, number: int) -> bytes | None:
        """The text of a hashed id of the data or of a view."""


def texts_outside(static: StaticData) -> Callable[[int], bytes | None]:
    """Where the texts are that no evaluator needs to hold."""
    return static.text_of if isinstance(static, ViewData) else lambda _: None
