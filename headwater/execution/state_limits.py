"""How much the evaluators of a program hold, and which queries hold more than they or the machine may."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from headwater.execution.evaluator import Evaluator
from headwater.execution.window_log import Size
from headwater.values.process_memory import MemoryWatch
from headwater.values.query_guard import RunStopped

Suspend = Callable[[Evaluator, str | None, Exception], None]
"""Suspends one query of an evaluator, or with None all of them."""


class StateLimits:
    """Measures evaluators after each batch; `sizes` is what they held after the last one."""

    def __init__(self) -> None:
        self.sizes: dict[Evaluator, Size] = {}
        self._memory = MemoryWatch()

    def check(self, evaluators: Iterable[Evaluator], suspend: Suspend) -> None:
        """Suspend the queries that hold too much."""
        self.sizes = {}
        for evaluator in evaluators:
            try:
                with evaluator.guard:
                    self.sizes[evaluator] = evaluator.size()
                    evaluator.check_state(self.sizes[evaluator])
            except RunStopped:
                raise
            except Exception as error:
                del self.sizes[evaluator]
                suspend(evaluator, None, error)
                continue
            for name, failure in evaluator.take_failures().items():
                suspend(evaluator, name, failure)
        held = {evaluator: size.bytes or 0 for evaluator, size in self.sizes.items()}
        for evaluator, excess in self._memory.find_excess(held).items():
            del self.sizes[evaluator]
            for one in _largest_queries(evaluator):
                suspend(evaluator, one, excess)


def _largest_queries(evaluator: Evaluator) -> Sequence[str | None]:
    """The largest queries that hold half of what an evaluator holds; None for all, where none can go by itself."""
    held = evaluator.bytes_by_query()
    found: list[str] = []
    wanted = sum(held.values()) / 2
    for name, size in sorted(held.items(), key=lambda one: -one[1]):
        if wanted <= 0:
            break
        found.append(name)
        wanted -= size
    return found or [None]
