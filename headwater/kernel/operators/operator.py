"""What all operators share: one life cycle, differences in and out.

An operator holds what it needs to answer the next difference. At each tick the root is asked to `advance`; it asks its
inputs, and gives the change of its own result since the tick before. Nobody is asked twice for the same tick.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable

from headwater.kernel.columns.delta import Delta
from headwater.kernel.columns.ring_index import Ints


class Operator(ABC):
    """A node of the plan at work. `variables` names the columns of its rows."""

    variables: tuple[str, ...]

    @abstractmethod
    def advance(self) -> Delta:
        """What changed since the last tick."""

    @property
    def inputs(self) -> tuple[Operator, ...]:
        """The operators it reads."""
        return ()

    def needs(self, source: Operator) -> bool:
        """Whether it has no rows while that source has none, and says all it has when rows come there again."""
        return False

    def ids(self) -> Iterable[Ints]:
        """Arrays with every id that its state holds, for the sweep of the vocabulary."""
        return ()

    @property
    def nbytes(self) -> int:
        """The memory of its own state."""
        return 0

    def column(self, variable: str) -> int:
        """Where a variable's values stand."""
        return self.variables.index(variable)
