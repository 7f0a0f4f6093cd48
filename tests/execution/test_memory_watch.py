"""Queries that do not fit in memory end with an error before the machine does."""

from __future__ import annotations

import gc
import subprocess
import sys
import weakref
from functools import partial
from itertools import count
from pathlib import Path

import numpy as np
import pytest

import headwater as hw
from headwater.execution import suspension
from headwater.kernel.columns import row_ids
from headwater.terms.model import Element, NamedNode, Triple
from headwater.values import process_memory
from headwater.values.process_memory import LARGE, MemoryReading, MemoryWatch, check_memory_for, read_memory
from headwater.values.query_limits import LimitError

GIGABYTE = 1 << 30
STREAM = "http://example.org/s"
QUERY = """PREFIX : <http://example.org/> SELECT ?s ?o FROM NAMED WINDOW :w ON :s [RANGE PT{width}S STEP PT1S]
WHERE {{ WINDOW :w {{ ?s :p ?o }} }}"""


def make_machine(folder: Path, *, total: int, available: int, pages: int, group: str = "0::/\n") -> tuple[Path, Path]:
    """Files as the kernel shows them, sizes in kilobytes."""
    (folder / "proc" / "self").mkdir(parents=True)
    (folder / "proc" / "meminfo").write_text(f"MemTotal: {total} kB\nMemFree: 7 kB\nMemAvailable: {available} kB\n")
    (folder / "proc" / "self" / "statm").write_text(f"99999999 {pages + 10} 10 1 0 1 0\n")
    (folder / "proc" / "self" / "cgroup").write_text(group)
    (folder / "groups" / "a" / "b").mkdir(parents=True)
    return folder / "proc", folder / "groups"


def test_the_machine_says_how_much_there_is(tmp_path: Path) -> None:
    reading = read_memory(*make_machine(tmp_path, total=1000, available=900, pages=0))
    assert reading == MemoryReading(1000 << 10, 900 << 10, 0)
    assert reading.room == (800 << 10)


def test_others_have_taken_most_of_it(tmp_path: Path) -> None:
    reading = read_memory(*make_machine(tmp_path, total=1000, available=60, pages=0))
    assert reading is not None and reading.room == (60 << 10) - (50 << 10)


def test_the_smallest_control_group_around_the_process_counts(tmp_path: Path) -> None:
    proc, groups = make_machine(tmp_path, total=10_000, available=9_000, pages=0, group="0::/a/b\n")
    (groups / "a" / "memory.max").write_text("1000000\n")
    (groups / "a" / "memory.current").write_text("500000\n")
    (groups / "a" / "memory.stat").write_text("anon 1\nfile 200000\n")
    (groups / "a" / "b" / "memory.max").write_text("max\n")
    assert read_memory(proc, groups) == MemoryReading(1_000_000, 700_000, 0)


def test_a_system_that_does_not_say_bounds_nothing(tmp_path: Path) -> None:
    assert read_memory(tmp_path / "proc", tmp_path / "groups") is None


def test_large_tables_ask_before_they_grow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_memory, "read_memory", lambda: MemoryReading(GIGABYTE, GIGABYTE, GIGABYTE // 2))
    check_memory_for(LARGE)
    with pytest.raises(LimitError, match=r"another 536,870,912 bytes.*make its windows narrower"):
        check_memory_for(GIGABYTE // 2)
    with pytest.raises(LimitError):
        row_ids.enlarge(np.zeros((4, 2), np.int64), GIGABYTE // 32)


def run_two_queries(reading: MemoryReading, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> hw.RunSummary:
    """A wide and a narrow window over the same stream, on a machine with such memory."""
    monkeypatch.setattr("headwater.values.process_memory._NOTABLE_BYTES", 1)
    roomy, looks, seconds = MemoryReading(1 << 40, 1 << 40, 0), count(), count()
    # At the fifth look the wide window has much more than the narrow one.
    watch = partial(MemoryWatch, read=lambda: reading if next(looks) == 4 else roomy, clock=lambda: next(seconds))
    monkeypatch.setattr(suspension, "MemoryWatch", watch)
    stream = tmp_path / "s.tnq"
    lines = (f"{100 * n}\t<urn:{n}> <http://example.org/p> <urn:o> .\n" for n in range(3_000))
    stream.write_text("".join(lines))
    engine = hw.Engine(in_process=True, batch_bytes=15_000)
    engine.stream(STREAM, hw.files(stream))
    engine.register(QUERY.format(width=1000), name="wide")
    engine.register(QUERY.format(width=1), name="narrow")
    return engine.run()


def test_the_query_that_holds_the_most_is_suspended(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    summary = run_two_queries(MemoryReading(1_000, 1_000, 801), monkeypatch, tmp_path)
    assert list(summary.suspended) == ["wide"]
    assert "the process has 801 bytes, and may take 0 more of the 1,000" in summary.suspended["wide"]


def test_nothing_is_suspended_where_there_is_room(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    summary = run_two_queries(MemoryReading(1_000, 1_000, 799), monkeypatch, tmp_path)
    assert not summary.suspended


def test_memory_that_queries_do_not_hold_is_no_fault_of_theirs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    summary = run_two_queries(MemoryReading(1 << 50, 1 << 50, 1 << 50), monkeypatch, tmp_path)
    assert not summary.suspended


def test_a_suspended_query_gives_its_memory_back(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(table: object, capacity: int) -> object:
        raise LimitError("no memory")

    monkeypatch.setattr("headwater.kernel.columns.window_buffers.enlarge", refuse)
    engine = hw.Engine(in_process=True)
    engine.stream(STREAM, hw.files("none.tnq"))
    engine.register(QUERY.format(width=1000), name="wide")
    program = engine._description().program()
    before = weakref.ref(program.evaluators["wide"])
    triple = Triple(NamedNode("urn:s"), NamedNode("http://example.org/p"), NamedNode("urn:o"))
    program.advance({STREAM: [Element(second, (triple,), position=(second,)) for second in range(9)]})
    gc.collect()
    assert program.suspensions["wide"].reason == "no memory"
    assert before() is None


SMALL_MACHINE = """
import gc, resource
import numpy as np
from headwater.values import process_memory
real = process_memory.read_memory
begun = 1 << 40
def read():
    own = real().own
    total = int((begun + (400 << 20)) / process_memory.SHARE)
    return process_memory.MemoryReading(total, 1 << 50, own)
process_memory.read_memory = read
watch = process_memory.MemoryWatch.__init__
watch.__defaults__ = (read, *watch.__defaults__[1:])
import headwater as hw
from headwater.terms.element_columns import ElementColumns
from headwater.terms.ids.term_ids import encode
from headwater.terms.model import NamedNode
engine = hw.Engine(in_process=True)
engine.stream("http://example.org/s", hw.files("none.tnq"))
engine.register('''{query}''', name="wide")
program = engine._description().program()
count, predicate = 200_000, encode(NamedNode("http://example.org/p"))
for batch in range(200):
    rows = np.empty((count, 3), dtype=np.int64)
    rows[:, 0] = rows[:, 2] = (1 << 40) + np.arange(count) + batch * count
    rows[:, 1] = predicate
    times = np.arange(count) + batch * count
    columns = ElementColumns(times, np.arange(count + 1), rows, times.reshape(-1, 1), is_whole=False)
    program.advance({"http://example.org/s": columns})
    if not batch:
        begun = real().own
    if program.suspensions:
        break
print(batch, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - begun) >> 20)
print(program.suspensions["wide"].reason)
"""


@pytest.mark.slow
def test_a_window_that_does_not_fit_ends_before_the_machine_does() -> None:
    query = QUERY.format(width=100_000).replace("?s ?o FROM", "(COUNT(*) AS ?n) FROM")
    text = SMALL_MACHINE.replace("{query}", query)
    found = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True, timeout=300)
    counts, reason = found.stdout.splitlines()
    batch, peak = map(int, counts.split())
    assert 2 < batch < 199
    assert peak < 600
    assert "make its windows narrower" in reason
