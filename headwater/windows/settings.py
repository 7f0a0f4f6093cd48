"""The settings of a query: the defaults of its dialect, and the options that override them.

| point          | C-SPARQL                                | CQELS-QL                      | RSP-QL            |
|----------------|-----------------------------------------|-------------------------------|-------------------|
| window content | set                                     | bag                           | set               |
| bounds         | `(o, c]`                                | `(o, c]`                      | `(o, c]`          |
| evaluates      | each step, or each COMPUTED EVERY       | each instant of change; each  | window close      |
|                |                                         | slide where SLIDE is given    |                   |
| emits          | RSTREAM                                 | ISTREAM                       | RSTREAM           |
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from headwater.algebra.plan import QueryPlan
from headwater.language.stream_clauses import (
    AllSpec,
    CountSpec,
    Dialect,
    IntervalSpec,
    LandmarkSpec,
    NowSpec,
    RangeSpec,
    StreamOperator,
    WindowSpec,
)
from headwater.terms.model import NamedNode
from headwater.windows.caps import DEFAULT_CAP
from headwater.windows.model import ALL, NOW, Bounds, CountWindow, TimeWindow, Window


class Report(Enum):
    """When a query is evaluated (RSP-QL's report policies)."""

    CLOSE = "close"
    CHANGE = "change"
    NONEMPTY = "nonempty"
    PERIODIC = "periodic"
    EAGER = "eager"


class Content(Enum):
    """Whether a window is a set or a bag of triples."""

    SET = "set"
    BAG = "bag"


@dataclass(frozen=True, slots=True)
class Options:
    """Options of the command line and the API; None: the default of the dialect."""

    bounds: Bounds | None = None
    report: Report | None = None
    emit: StreamOperator | None = None
    content: Content | None = None
    t0: int | None = None
    cap: int | None = None
    """How many triples a window may hold."""


NO_OPTIONS = Options()


@dataclass(frozen=True, slots=True)
class QuerySettings:
    """The windows and policies of a plan, all of them decided. `period` belongs to the periodic report."""

    windows: tuple[Window, ...]
    report: Report
    emit: StreamOperator
    content: Content
    bounds: Bounds
    period: int | None = None
    t0: int | None = None
    cap: int = field(default=DEFAULT_CAP, repr=False, compare=False)
    """How many triples a window may hold. It does not change the meaning: a run may go on with a higher cap."""


def resolve_settings(plan: QueryPlan, options: Options = NO_OPTIONS) -> QuerySettings:
    """The settings under which a plan runs: its own clauses and the options, then the defaults of its dialect."""
    bounds = options.bounds or Bounds.LEFT_OPEN
    windows = tuple(_window_of_spec(source.spec, bounds, options.t0) for source in plan.windows)
    every = plan.registration.every if plan.registration else None
    is_cqels = plan.dialect is Dialect.CQELS
    has_step = any((w.slide if isinstance(w, TimeWindow) else w.step) is not None for w in windows)
    if options.report is not None:
        report = options.report
    elif every is not None:
        report = Report.PERIODIC
    else:
        report = Report.EAGER if is_cqels and not has_step else Report.CLOSE
    steps = [w.slide for w in windows if isinstance(w, TimeWindow) and w.slide is not None]
    widths = [w.width for w in windows if isinstance(w, TimeWindow) and w.width is not None]
    return QuerySettings(
        windows=windows,
        report=report,
        emit=options.emit or plan.stream_operator or (StreamOperator.ISTREAM if is_cqels else StreamOperator.RSTREAM),
        content=options.content or (Content.BAG if is_cqels else Content.SET),
        bounds=bounds,
        period=(every or min(steps or widths or [1_000_000])) if report is Report.PERIODIC else None,
        t0=options.t0,
        cap=DEFAULT_CAP if options.cap is None else options.cap,
    )


def _window_of_spec(spec: WindowSpec, bounds: Bounds, t0: int | None) -> Window:
    """The window that the query text specifies; `t0` is the instant at which the first one opens."""
    match spec:
        case RangeSpec(width, slide):
            return TimeWindow(width, slide, 0, t0, bounds)
        case IntervalSpec(start, end, slide):
            return TimeWindow(start - end, slide, end, t0, bounds)
        case LandmarkSpec(start, slide):
            return TimeWindow(None, slide, 0, t0, bounds, landmark=start)
        case CountSpec(size, step, unit):
            return CountWindow(size, step, unit)
        case NowSpec():
            return NOW
        case AllSpec():
            return ALL
    raise TypeError(f"no window for {type(spec).__name__}")


def timestamp_predicate_of(spec: WindowSpec) -> NamedNode | None:
    """The property that holds the time of an element for this window; None: the timestamp of the source."""
    predicate = getattr(spec, "timestamp_predicate", None)
    return predicate if isinstance(predicate, NamedNode) else None
