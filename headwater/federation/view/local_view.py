"""The local view R: a cache of the rows of a SERVICE clause, with what is known of their age (VM2).

An entry holds the rows of one key (many, one or none), when they were fetched, how often a refresh found them changed,
their best-before time, and when the query last used them. A view is filled at registration, page by page, or as keys
turn up; it has a capacity, and evicts the least recently used entries.

    >>> view = LocalView(ChangeModel(unit=60_000_000), capacity=1000)
    >>> view.store((user,), ((user, count),), now)
    >>> view.staleness([view.get((user,))], later)
    array([0.07])

A view that was filled completely also knows the keys that the remote does *not* have: they get an entry with no rows,
as old as the filling. This ends with the first eviction.
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
from headwater.federation.view.given_rates import KeyRates
from headwater.terms.model import Row

CAPACITY = 1_000_000
"""The default capacity in entries: a stream of ever new keys must not fill the memory."""

EXTENT_WEIGHT = 0.3
"""The weight of the latest change in the mean share of rows that a change touches."""

PRESENCE_WEIGHT = 0.03
"""The weight of the latest tick in the mean use of an entry: about thirty ticks count."""


@dataclass(slots=True)
class Entry:
    """The rows of one key, and what is known of their age. Instants are microseconds.

    `extent` is the share of its rows that a change touches: 1 for a functional property, less for long lists.
    `uses` counts the ticks that used it, older ones with less weight; `last_tick` is the latest of them.
    `failing_since` is the first failure since the last good refresh.
    """

    key: Row
    rows: Rows
    refreshed_at: int
    best_before: int
    refreshes: int = 0
    changes: int = 0
    extent: float = 1.0
    uses: float = 0.0
    last_tick: int = 0
    failing_since: int | None = None
    belief: Floats | None = None


@dataclass(frozen=True, slots=True)
class FillResult:
    """The result of filling a view from a remote's pages; an `error` means that it stopped half-way."""

    pages: int
    rows: int
    keys: int
    is_complete: bool
    seconds: float
    error: str | None = None


class LocalView:
    """Entries by key, in the order of their last use.

    `capacity` is enforced only by `evict`, which is called before a tick, so that no entry is lost that a tick uses.
    With `given_rates` nothing is learnt about change rates.
    """

    def __init__(
        self, model: ChangeModel, capacity: int | None = CAPACITY, given_rates: KeyRates | None = None
    ) -> None:
        if capacity is not None and capacity < 1:
            raise SettingError(f"a view needs room for one entry at least, not {capacity}")
        self.model = model
        self.capacity = capacity
        self.given_rates = given_rates
        self.complete_since: int | None = None
        self.evictions = 0
        self.ticks = 0
        self._entries: OrderedDict[Row, Entry] = OrderedDict()
        self._changed_keys: set[Row] = set()
        self._evicted_keys: set[Row] = set()

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._entries.values())

    def get(self, key: Row) -> Entry | None:
        return self._entries.get(key)

    def rows(self, key: Row) -> Rows | None:
        """The rows of a key; None if the view does not know the key."""
        entry = self._entries.get(key)
        return None if entry is None else entry.rows

    def fill(self, pages: Iterable[Page], now: int) -> FillResult:
        """Store all rows of the remote, or as many as there is room for, as of `now`.

        The data may change between two pages, so that pages overlap: a row of an earlier page is stored once.
        """
        page_count = row_count = 0
        seconds, error, has_room = 0.0, None, True
        rows_by_key: dict[Row, Counter[Row]] = {}
        for page in pages:
            page_count += 1
            seconds += page.seconds
            error = page.error
            earlier = {key: set(of_key) for key in {key for key, _ in page.pairs} if (of_key := rows_by_key.get(key))}
            for key, row in page.pairs:
                if key not in rows_by_key and self.capacity is not None and len(rows_by_key) >= self.capacity:
                    has_room = False
                    continue
                if row not in earlier.get(key, ()):
                    rows_by_key.setdefault(key, Counter())[row] += 1
                    row_count += 1
            if error is not None or not has_room:
                break
        for key, rows in rows_by_key.items():
            self.store(key, tuple(rows.elements()), now)
        is_complete = error is None and has_room
        self.complete_since = now if is_complete else None
        return FillResult(page_count, row_count, len(rows_by_key), is_complete, seconds, error)

    def begin_evaluation(self, now: int) -> None:
        """Start best-before times at the first evaluation, for entries that were filled earlier."""
        for entry in self:
            entry.best_before = max(entry.best_before, now)
        self._changed_keys.update(self._entries)

    def record_use(self, keys: Iterable[Row], now: int) -> list[Row]:
        """Record that a tick uses these keys; returns the keys that the view does not know."""
        if self.ticks == 0:
            self.begin_evaluation(now)
        self.ticks += 1
        missing = []
        for key in keys:
            entry = self._entries.get(key)
            if entry is None and self.complete_since is not None:
                entry = self._entries[key] = Entry(key, (), self.complete_since, self.complete_since)
            if entry is None:
                missing.append(key)
            else:
                self._record_entry_use(entry)
        return missing

    def _record_entry_use(self, entry: Entry) -> None:
        entry.uses = 1.0 + self._weighted_uses(entry)
        entry.last_tick = self.ticks
        self._entries.move_to_end(entry.key)
        self._changed_keys.add(entry.key)

    def _weighted_uses(self, entry: Entry) -> float:
        return entry.uses * (1.0 - PRESENCE_WEIGHT) ** (self.ticks - entry.last_tick)

    def presence(self, entry: Entry) -> float:
        """The share of ticks that used an entry; recent ticks have the largest weight."""
        total = (1.0 - (1.0 - PRESENCE_WEIGHT) ** self.ticks) / PRESENCE_WEIGHT
        return self._weighted_uses(entry) / total if self.ticks else 0.0

    def store(self, key: Row, rows: Rows, now: int, best_before: int | None = None) -> bool:
        """Store the rows that were fetched at `now`; returns whether they differ from the rows before."""
        entry = self._entries.get(key)
        due = now if best_before is None else best_before
        self._changed_keys.add(key)
        if entry is None:
            self._entries[key] = Entry(key, rows, now, due, last_tick=self.ticks)
            return False
        if now < entry.refreshed_at:
            return False
        difference = share_of_difference(entry.rows, rows)
        has_changed = difference > 0.0
        if self.given_rates is None:
            entry.belief = self.model.update_belief(
                key, entry.belief, self.model.elapsed(entry.refreshed_at, now), has_changed
            )
        entry.refreshes += 1
        if has_changed:
            entry.extent += (difference - entry.extent) * (1.0 if entry.changes == 0 else EXTENT_WEIGHT)
            entry.changes += 1
            entry.rows = rows
        entry.refreshed_at, entry.best_before, entry.failing_since = now, due, None
        return has_changed

    def record_failure(self, key: Row, now: int) -> None:
        """Record that a refresh failed: the old rows stay, marked."""
        entry = self._entries.get(key)
        if entry is not None and entry.failing_since is None:
            entry.failing_since = now
            self._changed_keys.add(key)

    def evict(self) -> int:
        """Remove the least recently used entries down to the capacity; returns how many were removed."""
        surplus = 0 if self.capacity is None else max(0, len(self._entries) - self.capacity)
        for _ in range(surplus):
            self._evicted_keys.add(self._entries.popitem(last=False)[0])
        if surplus:
            self.complete_since = None
            self.evictions += surplus
        return surplus

    def staleness(self, entries: Sequence[Entry], now: int) -> Floats:
        """The probability of each entry to differ from the remote at `now`."""
        if self.given_rates is not None:
            ages = [max(0, now - entry.refreshed_at) for entry in entries]
            return 1.0 - self.given_rates.probability_unchanged([entry.key for entry in entries], ages)
        elapsed = np.array([self.model.elapsed(entry.refreshed_at, now) for entry in entries])
        return 1.0 - self.model.probability_unchanged([entry.belief for entry in entries], elapsed)

    def change_rate(self, entry: Entry) -> float:
        """The expected changes of an entry in a second."""
        return self.model.rate(entry.belief) if self.given_rates is None else self.given_rates.rate(entry.key)

    def state(self) -> dict[str, Any]:
        """The whole state: plain values, and copies of the entries."""
        self._changed_keys.clear()
        self._evicted_keys.clear()
        return {**self._header(), "entries": [replace(entry) for entry in self]}

    def changes(self) -> dict[str, Any]:
        """The changes since `state` or `changes` was called last: less to write if the view is large."""
        entries = [replace(entry) for entry in self if entry.key in self._changed_keys]
        # An entry that was evicted and came back is behind those that were there all the time.
        evicted = list(self._evicted_keys)
        self._changed_keys.clear()
        self._evicted_keys.clear()
        return {**self._header(), "entries": entries, "evicted": evicted}

    def _header(self) -> dict[str, Any]:
        return {
            "model": self.model.state(),
            "complete_since": self.complete_since,
            "evictions": self.evictions,
            "ticks": self.ticks,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Replace the entries by those of a `state`; the capacity stays as it was set."""
        self._entries.clear()
        self.apply_changes(state)
        self.evict()

    def apply_changes(self, changes: dict[str, Any]) -> None:
        """Apply the `changes` of another view."""
        self.model.restore(changes["model"])
        self.complete_since, self.evictions = changes["complete_since"], changes["evictions"]
        self.ticks = changes["ticks"]
        for key in changes.get("evicted", ()):
            self._entries.pop(key, None)
        for entry in changes["entries"]:
            known = self._entries.get(entry.key)
            self._entries[entry.key] = replace(entry)
            if known is not None and known.last_tick != entry.last_tick:
                self._entries.move_to_end(entry.key)


def share_of_difference(old: Rows, new: Rows) -> float:
    """The share of the larger bag that is not in the other: 0 for equal bags, 1 for disjoint ones."""
    if old == new:
        return 0.0
    common = (Counter(old) & Counter(new)).total()
    return 1.0 - common / max(len(old), len(new))
