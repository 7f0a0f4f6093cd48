"""Short names for keys, rows, views and remotes in the tests of the federation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from benchmarks.simulated_remote import SimulatedChanges
from benchmarks.virtual_time import VirtualClock
from headwater.federation.endpoint.remote import FetchResult, Rows
from headwater.federation.view.change_model import ChangeModel
from headwater.federation.view.local_view import LocalView
from headwater.terms.model import SECOND, Literal, NamedNode, Row


def key(name: str) -> Row:
    return (NamedNode(f"http://example.org/{name}"),)


def rows(name: str, *values: int) -> Rows:
    return tuple((*key(name), Literal(value)) for value in values)


def view_of(names: str, now: int = 0, unit: int = SECOND, capacity: int | None = None) -> LocalView:
    """A view that holds one row, 0, for each letter."""
    view = LocalView(ChangeModel(unit), capacity)
    for name in names:
        view.store(key(name), rows(name, 0), now)
    return view


def counting_log(names: str, every: Mapping[str, int], end: int) -> SimulatedChanges:
    """Each letter starts with 0 and counts up every so many microseconds."""
    changes = [(0, key(name), rows(name, 0)) for name in names]
    for name, period in every.items():
        changes += [
            (instant, key(name), rows(name, count)) for count, instant in enumerate(range(period, end + 1, period), 1)
        ]
    return SimulatedChanges(changes)


class ScriptedRemote:
    """Does what its functions say, and remembers what it was asked."""

    name = "scripted"

    def __init__(self, clock: VirtualClock, keys_per_request: int = 1, seconds: float = 0.0) -> None:
        self.keys_per_request = keys_per_request
        self.seconds = seconds
        self.error: str | None = None
        self.raises: Exception | None = None
        self.value = 1
        self.asked: list[list[Row]] = []
        self._clock = clock

    def fetch(self, keys: Sequence[Row]) -> FetchResult:
        self.asked.append(list(keys))
        if self.raises is not None:
            raise self.raises
        if self.error is not None:
            return FetchResult({}, self.seconds, self.error)
        return FetchResult({asked: ((*asked, Literal(self.value)),) for asked in keys}, self.seconds)

    def pages(self, limit: int):
        return iter(())

    @property
    def keys_asked(self) -> list[Row]:
        return [asked for request in self.asked for asked in request]
