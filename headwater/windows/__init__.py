"""Windows, ticks, report policies and streaming operators: pure functions of time."""

from headwater.windows.caps import DEFAULT_CAP, WindowCapError, check_cap
from headwater.windows.model import ALL, NOW, Bounds, CountWindow, TimeWindow, Window
from headwater.windows.operators import emitted, multiset_difference
from headwater.windows.progress import StreamClock, combined
from headwater.windows.settings import Content, Options, QuerySettings, Report, settle, timestamp_predicate
from headwater.windows.ticks import Ticker

__all__ = [
    "ALL",
    "DEFAULT_CAP",
    "NOW",
    "Bounds",
    "Content",
    "CountWindow",
    "Options",
    "QuerySettings",
    "Report",
    "StreamClock",
    "Ticker",
    "TimeWindow",
    "Window",
    "WindowCapError",
    "check_cap",
    "combined",
    "emitted",
    "multiset_difference",
    "settle",
    "timestamp_predicate",
]
