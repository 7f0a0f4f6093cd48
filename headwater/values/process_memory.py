"""How much memory this process may take, so that queries end with an error before the machine does.

    machine 24 GB, or the limit of the control group      the process may have 80 % of it: 19 GB
    other processes have most of it                       what is available, down to 5 % of the whole, counts instead

What is mapped from files does not count, because the system can take it back. Where neither the machine nor a control
group says how much there is, nothing is bounded.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Hashable, Mapping
from pathlib import Path
from typing import NamedTuple, TypeVar

from headwater.values.query_limits import LimitError

SHARE = 0.8
"""The part of the memory that one process may have."""
RESERVE = 0.05
"""The part of the memory that stays free."""
LARGE = 64 << 20
"""From so many bytes on memory is asked about before it is taken."""

_NOTABLE_BYTES = 256 << 20
_NOTABLE_SHARE = 0.1
_SECONDS_APART = 0.2
_PROC = Path("/proc")
_CGROUP = Path("/sys/fs/cgroup")

Holder = TypeVar("Holder", bound=Hashable)


class MemoryReading(NamedTuple):
    """The bytes that there are, that can still be taken, and that this process has."""

    total: int
    available: int
    own: int

    @property
    def room(self) -> int:
        """How many bytes the process may still take; below zero where it has more than it may."""
        return min(int(self.total * SHARE) - self.own, self.available - int(self.total * RESERVE))


def read_memory(proc: Path = _PROC, cgroup: Path = _CGROUP) -> MemoryReading | None:
    """Read the memory of the machine, of the control groups of this process, and its own; None where nothing says."""
    try:
        machine = _numbers(proc / "meminfo")
        total, available = machine["MemTotal"] << 10, machine["MemAvailable"] << 10
        _, resident, shared = map(int, (proc / "self" / "statm").read_text().split()[:3])
    except (OSError, ValueError, LookupError):
        return None
    for limit, used in _limits_of_groups(proc, cgroup):
        total, available = min(total, limit), min(available, max(0, limit - used))
    return MemoryReading(total, available, (resident - shared) * os.sysconf("SC_PAGE_SIZE"))


def _limits_of_groups(proc: Path, cgroup: Path) -> list[tuple[int, int]]:
    """The limit of each control group around this process that has one, and the bytes that it cannot give back."""
    try:
        lines = (proc / "self" / "cgroup").read_text().splitlines()
    except OSError:
        return []
    group = next((line.removeprefix("0::/") for line in lines if line.startswith("0::/")), "")
    found: list[tuple[int, int]] = []
    for folder in (cgroup / group, *(cgroup / group).parents):
        if folder != cgroup and cgroup not in folder.parents:
            break
        try:
            limit = (folder / "memory.max").read_text().strip()
            if limit != "max":
                files = _numbers(folder / "memory.stat").get("file", 0)
                found.append((int(limit), max(0, int((folder / "memory.current").read_text()) - files)))
        except (OSError, ValueError):
            continue
    return found


def _numbers(path: Path) -> dict[str, int]:
    """The numbers of a file with a name and a number in each line."""
    parts = (line.replace(":", " ").split() for line in path.read_text().splitlines())
    return {one[0]: int(one[1]) for one in parts if len(one) > 1 and one[1].isdigit()}


def check_memory_for(size: int) -> None:
    """Raise a `LimitError` if this process may not take so many bytes more; call it before a large array is made."""
    if size < LARGE:
        return
    reading = read_memory()
    if reading is not None and size > reading.room:
        raise memory_error(f"the query needs another {size:,} bytes", reading)


def memory_error(what: str, reading: MemoryReading) -> LimitError:
    """The error of a query for which there is no memory."""
    return LimitError(
        f"{what}; the process has {reading.own:,} bytes, and may take {max(0, reading.room):,} more of the "
        f"{reading.total:,} that there are: make its windows narrower, filter what they hold, run it in more shards "
        "on other machines, or give the process more memory"
    )


class MemoryWatch:
    """Finds the largest queries of a process before its memory is all taken.

    The limit `state_bytes` is of one query; this is of all together. It looks after a batch, once queries hold much,
    and at most a few times in a second. The memory of a program that runs an engine is no fault of its queries:
    they count only where they hold a tenth of it.
    """

    def __init__(
        self, read: Callable[[], MemoryReading | None] = read_memory, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._read = read
        self._clock = clock
        self._next = -1.0

    def find_excess(self, sizes: Mapping[Holder, int]) -> dict[Holder, LimitError]:
        """Find who must give memory back, by how many bytes each holds: the largest first, each with the reason."""
        held = sum(sizes.values())
        now = self._clock()
        if held < _NOTABLE_BYTES or now < self._next:
            return {}
        self._next = now + _SECONDS_APART
        reading = self._read()
        if reading is None or reading.room >= 0 or held < _NOTABLE_SHARE * reading.own:
            return {}
        excess, found = -reading.room, dict[Holder, LimitError]()
        for holder, size in sorted(sizes.items(), key=lambda one: -one[1]):
            if excess <= 0:
                break
            found[holder] = memory_error(f"the query holds {size:,} bytes", reading)
            excess -= size
        return found
