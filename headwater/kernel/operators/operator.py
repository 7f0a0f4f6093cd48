"""What all operators share: at each tick, deltas of the inputs become a delta of the output.

    ΔOp(R) = Op(R + ΔR) − Op(R)

At each tick `advance` of the root is called. It advances its inputs and returns what changed in its own result since
the tick before. Each operator is advanced exactly once per tick, and keeps only the state that its next delta needs.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable

from headwater.kernel.columns.delta import Delta
from headwater.kernel.columns.ring_index import Ints


class Operator(ABC):
    """A node of an evaluated plan. `variables` names the columns of its rows."""

    variables: tuple[str, ...]

    @abstractmethod
    def advance(self) -> Delta:
        """What changed since the last tick."""

    @property
    def inputs(self) -> tuple[Operator, ...]:
        """The operators that it reads."""
        return ()

    def needs_rows_of(self, source: Operator) -> bool:
        """Whether the result is empty while that source is empty, and its delta is complete when rows come again.

        An evaluator need not advance it in between.
        """
        return False

    def ids(self) -> Iterable[Ints]:
        """Arrays with every id that its state holds: the vocabulary keeps their terms."""
        return ()

    @property
    def nbytes(self) -> int:
        """The memory of its own state."""
        return 0

    def column_of(self, variable: str) -> int:
        """The column that holds the values of a variable."""
        return self.variables.index(variable)
