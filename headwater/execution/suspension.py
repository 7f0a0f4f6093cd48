"""A query that failed or exceeded a limit is suspended: it has no answers until it is resumed, and the others go on.

Its place in the program is taken by a `SuspendedEvaluator`, which holds nothing. A stream that it produces goes on
without elements, so that the queries which read it are not held up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from headwater.algebra.plan import QueryKind
from headwater.errors import HeadwaterError
from headwater.execution.answer_batch import AnswerBatch
from headwater.execution.answers import Answer
from headwater.execution.evaluator import Evaluator, UnsupportedPlan
from headwater.execution.registered import RegisteredQuery
from headwater.execution.window_log import Size, StreamKey
from headwater.terms.ids.hash_collisions import HashCollision
from headwater.terms.packing import Plain
from headwater.values.process_memory import MemoryWatch
from headwater.values.query_guard import QueryDropped, RunStopped
from headwater.values.query_limits import LimitError
from headwater.windows.element_sequences import Elements

Suspend = Callable[[Evaluator, str | None, Exception], None]
"""Suspends one query of an evaluator, or with None all of them."""

_NEVER = 1 << 62
_LONGEST_REASON = 2_000


class QuerySuspended(HeadwaterError, RuntimeError):
    """A query that has no more answers until it is resumed; the message says why."""

    def __init__(self, query: str, reason: str) -> None:
        super().__init__(f"the query {query!r} is suspended: {reason}")
        self.query = query
        self.reason = reason

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.query, self.reason)


@dataclass(frozen=True, slots=True)
class Suspension:
    """Why a query is suspended, and how far its streams had come, in microseconds since 1970."""

    reason: str
    time: int
    error: Exception | None = None
    """What was raised; None in another process, and after a restart."""

    @classmethod
    def because_of(cls, error: Exception, time: int) -> Suspension:
        """The suspension of a query whose plan could not be made or evaluated."""
        error = _with_sentence(error)
        if isinstance(error, LimitError):
            # The frames of its traceback hold what the query held.
            error.__traceback__ = None
        return cls(reason_of(error), time, error)

    def to_plain(self) -> Plain:
        return [self.reason, self.time]

    @classmethod
    def from_plain(cls, value: Plain) -> Suspension:
        return cls(*value)

    def to_error(self, query: str) -> Exception:
        """What is raised where nothing of a run is left but this query."""
        return QuerySuspended(query, self.reason) if self.error is None else self.error


def is_caused_by_query(error: Exception) -> bool:
    """Whether an error at the making of an evaluator is of its query alone, and not of the settings of a run."""
    is_known = isinstance(error, HeadwaterError | OSError | UnsupportedPlan)
    return not is_known or isinstance(error, LimitError | HashCollision | QueryDropped)


def _with_sentence(error: Exception) -> Exception:
    """The error itself; where Python gave up, one that says so."""
    if isinstance(error, RecursionError):
        said = "the query has too many operators or conditions within each other: make several queries of it"
    elif isinstance(error, MemoryError):
        said = "there was not enough memory for the query: make it narrower, or lower its limit `state_bytes`"
    else:
        return error
    sentence = LimitError(said)
    sentence.__cause__ = error.with_traceback(None)
    return sentence


def reason_of(error: Exception) -> str:
    """What went wrong, for people: the message of an error of ours, the kind and the message of any other."""
    text = str(error).strip()
    if not isinstance(error, HeadwaterError | OSError) or not text:
        text = f"{type(error).__name__}: {text}".removesuffix(": ")
    return text if len(text) <= _LONGEST_REASON else text[:_LONGEST_REASON] + " …"


def suspension_notice(query: RegisteredQuery, suspension: Suspension) -> Answer:
    """What the takers of its answers get when a query is suspended."""
    plan = query.plan
    return Answer(
        query=plan.name,
        time=suspension.time,
        kind=plan.kind,
        operator=query.settings.emit,
        variables=tuple(v.value for v in plan.variables) if plan.kind is QueryKind.SELECT else (),
        suspended=suspension.reason,
    )


class SuspendedEvaluator(Evaluator):
    """Stands where the evaluator of a suspended query was: it takes elements, holds none and answers nothing."""

    kind = "suspended"

    def advance(self, batch: Mapping[StreamKey, Elements], watermark: int | None, **_: Any) -> AnswerBatch:
        return AnswerBatch()

    def begin(self, *_: Any) -> None:
        """It has no windows."""

    def restore(self, *_: Any) -> None:
        """It has no windows."""

    def apply_static_change(self) -> None:
        """It has no result."""

    def needed_from(self, window_index: int) -> int:
        return _NEVER

    def size(self) -> Size:
        return Size(0, 0)

    def _restore_memory(self, memory: Plain) -> None:
        """It has none."""

    def _has_content(self) -> bool:
        return False

    def _do_nothing(self, *_: Any, **__: Any) -> NoReturn:
        raise AssertionError("a suspended query is not evaluated")

    _prepare_elements = _refill = _add = _count_closings = _move = _emit = _views = _do_nothing


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
