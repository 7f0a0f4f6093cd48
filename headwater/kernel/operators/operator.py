"""What all operators share: at each tick, deltas of the inputs become a delta of the output.

    ΔOp(R) = Op(R + ΔR) − Op(R)

At each tick `advance` of the root is called. It advances its inputs, and `apply` turns their deltas into the change of
its own result. Each operator is advanced exactly once per tick, and keeps only the state that its next delta needs.

Where a tick changes few rows, the work around them costs more than they do. `advance_run` then takes many ticks in one
step: the same changes, each with its tick (`columns.delta_run`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence

from headwater.kernel.columns.delta import Delta
from headwater.kernel.columns.delta_run import DeltaRun, apply_by_ticks
from headwater.kernel.columns.ring_index import Ints


class Operator(ABC):
    """A node of an evaluated plan. `variables` names the columns of its rows."""

    variables: tuple[str, ...]

    def advance(self) -> Delta:
        """Advance the inputs; gives what changed since the last tick."""
        return self.apply([one.advance() for one in self.changing_inputs])

    @abstractmethod
    def apply(self, deltas: Sequence[Delta]) -> Delta:
        """The change of the result, from those of the inputs; a leaf has no inputs, and gives its own."""

    def advance_run(self) -> DeltaRun:
        """Advance the inputs over many ticks; gives what changed at each. The first tick of all is advanced alone."""
        return self.apply_run([one.advance_run() for one in self.changing_inputs])

    def apply_run(self, runs: Sequence[DeltaRun]) -> DeltaRun:
        """The changes of the result at each tick, from those of the inputs: as `apply` gives them, tick by tick."""
        return apply_by_ticks(self.apply, runs, len(self.variables))

    @property
    def inputs(self) -> tuple[Operator, ...]:
        """The operators that it reads."""
        return ()

    @property
    def changing_inputs(self) -> Sequence[Operator]:
        """The inputs that are advanced at each tick, whose deltas `apply` takes."""
        return self.inputs

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
