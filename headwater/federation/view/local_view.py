"""The local view R: what the SERVICE clause answered, kept near, with what is known about its age.

An entry holds the rows of one key (many, one or none) and when they were fetched, how often a refresh found them
changed, until when they are thought to be good, and when the query last used them. A view may be filled at
registration, page by page, or as keys turn up; it may be bounded, and then forgets what was not used for longest.

    >>> view = LocalView(ChangeModel(unit=60_000_000), capacity=1000)
    >>> view.store((user,), ((user, count),), now)
    >>> view.staleness([view.get((user,))], later)
    array([0.07])

A view that was filled completely knows the keys that are *not* there as well: they have an entry with no rows, as old
as the filling. The first eviction ends that knowledge.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from headwater.errors import SettingError
from headwater.federation.endpoint.remote import Page, Rows
from headwater.federation.view.change_model import ChangeModel, Floats
from headwater.terms.model import Row

CAPACITY = 1_000_000
"""The entries of a view where nothing else is said: a stream of ever new keys must not fill the memory."""

EXTENT_MEMORY = 0.3
"""How much the latest change tells about the share of rows that a change touches."""

PRESENCE_MEMORY = 0.03
"""How much a tick tells about how often an entry is used: some thirty ticks are remembered."""


@dataclass(slots=True)
class Entry:
    """What the view knows of one key. Instants are microseconds.

    `extent` is the share of its rows that a change touches: 1 for a functional property, less for long lists.
    `uses` counts the ticks that used it, older ones less; `last_tick` is the latest of them. `failing` says since when
    refreshes fail.
    """

    key: Row
    rows: Rows
    refreshed: int
    best_before: int
    used: int
    refreshes: int = 0
    changes: int = 0
    extent: float = 1.0
    uses: float = 0.0
    last_tick: int = 0
    failing: int | None = None
    belief: Floats | None = None


@dataclass(frozen=True, slots=True)
class Filling:
    """What filling a view from a remote's pages came to; an `error` means that it stopped half-way."""

    pages: int
    rows: int
    keys: int
    complete: bool
    seconds: float
    error: str | None = None


class LocalView:
    """Entries by key, in the order of their last use.

    `capacity` bounds the number of entries whenever `trim` is called: before a tick, so that what a tick uses stays
    for it.
    """

    def __init__(self, model: ChangeModel, capacity: int | None = CAPACITY) -> None:
        if capacity is not None and capacity < 1:
            raise SettingError(f"a view needs room for one entry at least, not {capacity}")
        self.model = model
        self.capacity = capacity
        self.complete_since: int | None = None
        self.evictions = 0
        self.ticks = 0
        self._entries: OrderedDict[Row, Entry] = OrderedDict()
        self._touched: set[Row] = set()
        self._forgotten: set[Row] = set()

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._entries.values())

    def get(self, key: Row) -> Entry | None:
        return self._entries.get(key)

    def rows(self, key: Row) -> Rows | None:
        """What the join takes; None where nothing is known."""
        entry = self._entries.get(key)
        return None if entry is None else entry.rows

    def fill(self, pages: Iterable[Page], now: int) -> Filling:
        """Take everything that the remote has, or as much as there is room for, as of now.

        Pages cut from data that changes meanwhile may overlap: a row that an earlier page had is taken once.
        """
        number = rows = 0
        seconds, error, room = 0.0, None, True
        found: dict[Row, Counter[Row]] = {}
        for page in pages:
            number += 1
            seconds += page.seconds
            error = page.error
            earlier = {key: set(of_key) for key in {key for key, _ in page.pairs} if (of_key := found.get(key))}
            for key, row in page.pairs:
                if key not in found and self.capacity is not None and len(found) >= self.capacity:
                    room = False
                    continue
                if row not in earlier.get(key, ()):
                    found.setdefault(key, Counter())[row] += 1
                    rows += 1
            if error is not None or not room:
                break
        for key, counted in found.items():
            self.store(key, tuple(counted.elements()), now)
        complete = error is None and room
        self.complete_since = now if complete else None
        return Filling(number, rows, len(found), complete, seconds, error)

    def begin(self, now: int) -> None:
        """The first evaluation: what was filled before counts as possibly stale from here on, not from longer ago."""
        for entry in self:
            entry.best_before = max(entry.best_before, now)
        self._touched.update(self._entries)

    def use(self, keys: Iterable[Row], now: int) -> list[Row]:
        """Note that a tick uses these keys; the ones that nothing is known of."""
        if self.ticks == 0:
            self.begin(now)
        self.ticks += 1
        missing = []
        for key in keys:
            entry = self._entries.get(key)
            if entry is None and self.complete_since is not None:
                entry = self._entries[key] = Entry(key, (), self.complete_since, self.complete_since, now)
            if entry is None:
                missing.append(key)
            else:
                self._note_use(entry, now)
        return missing

    def _note_use(self, entry: Entry, now: int) -> None:
        entry.uses = 1.0 + self._remembered_uses(entry)
        entry.last_tick = self.ticks
        entry.used = now
        self._entries.move_to_end(entry.key)
        self._touched.add(entry.key)

    def _remembered_uses(self, entry: Entry) -> float:
        return entry.uses * (1.0 - PRESENCE_MEMORY) ** (self.ticks - entry.last_tick)

    def presence(self, entry: Entry) -> float:
        """The share of ticks that used an entry, those of late counting most."""
        most = (1.0 - (1.0 - PRESENCE_MEMORY) ** self.ticks) / PRESENCE_MEMORY
        return self._remembered_uses(entry) / most if self.ticks else 0.0

    def store(self, key: Row, rows: Rows, now: int, best_before: int | None = None) -> bool:
        """Keep what a fetch at `now` brought; whether it differs from what was known before."""
        entry = self._entries.get(key)
        due = now if best_before is None else best_before
        self._touched.add(key)
        if entry is None:
            self._entries[key] = Entry(key, rows, now, due, now, last_tick=self.ticks)
            return False
        if now < entry.refreshed:
            return False
        wrong = share_of_difference(entry.rows, rows)
        changed = wrong > 0.0
        entry.belief = self.model.observed(key, entry.belief, self.model.elapsed(entry.refreshed, now), changed)
        entry.refreshes += 1
        if changed:
            entry.extent += (wrong - entry.extent) * (1.0 if entry.changes == 0 else EXTENT_MEMORY)
            entry.changes += 1
            entry.rows = rows
        entry.refreshed, entry.best_before, entry.failing = now, due, None
        return changed

    def fail(self, key: Row, now: int) -> None:
        """Note that a refresh failed: the old rows stay, marked."""
        entry = self._entries.get(key)
        if entry is not None and entry.failing is None:
            entry.failing = now
            self._touched.add(key)

    def trim(self) -> int:
        """Forget what was not used for longest, down to the capacity; how many were forgotten."""
        surplus = 0 if self.capacity is None else max(0, len(self._entries) - self.capacity)
        for _ in range(surplus):
            self._forgotten.add(self._entries.popitem(last=False)[0])
        if surplus:
            self.complete_since = None
            self.evictions += surplus
        return surplus

    def staleness(self, entries: Sequence[Entry], now: int) -> Floats:
        """The probability of each entry to differ from the remote by now."""
        elapsed = np.array([self.model.elapsed(entry.refreshed, now) for entry in entries])
        return 1.0 - self.model.unchanged([entry.belief for entry in entries], elapsed)

    def change_rate(self, entry: Entry) -> float:
        """The expected changes of an entry in a second."""
        return self.model.rate(entry.belief)

    def state(self) -> dict[str, Any]:
        """Everything that a restart needs, as plain values that can be pickled."""
        self._touched.clear()
        self._forgotten.clear()
        return {**self._header(), "entries": [replace(entry) for entry in self]}

    def changes(self) -> dict[str, Any]:
        """What is different since `state` or `changes` was called last: less to write where a view is large."""
        entries = [replace(entry) for entry in self if entry.key in self._touched]
        # What was forgotten and came back stands behind what was there all the time.
        forgotten = list(self._forgotten)
        self._touched.clear()
        self._forgotten.clear()
        return {**self._header(), "entries": entries, "forgotten": forgotten}

    def _header(self) -> dict[str, Any]:
        return {
            "model": self.model.state(),
            "complete_since": self.complete_since,
            "evictions": self.evictions,
            "ticks": self.ticks,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Be what a `state` described; the capacity stays as it was set."""
        self._entries.clear()
        self.apply(state)
        self.trim()

    def apply(self, changes: dict[str, Any]) -> None:
        """Follow the `changes` of another view."""
        self.model.restore(changes["model"])
        self.complete_since, self.evictions = changes["complete_since"], changes["evictions"]
        self.ticks = changes["ticks"]
        for key in changes.get("forgotten", ()):
            self._entries.pop(key, None)
        for entry in changes["entries"]:
            known = self._entries.get(entry.key)
            self._entries[entry.key] = replace(entry)
            if known is not None and known.last_tick != entry.last_tick:
                self._entries.move_to_end(entry.key)


def share_of_difference(old: Rows, new: Rows) -> float:
    """How much of the larger bag has no equal in the other: 0 for equal bags, 1 where nothing is the same."""
    if old == new:
        return 0.0
    common = (Counter(old) & Counter(new)).total()
    return 1.0 - common / max(len(old), len(new))
