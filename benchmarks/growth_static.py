"""How cost grows with static data: 10^4 to 10^8 triples in a data set on disk, and what loading them takes.

The generator (`benchmarks.dblp`) writes into a pipe from which `headwater load -` reads: no file has the whole. The
queries are those of the CQELS paper (`benchmarks.linked_data`), whose answers are the same over all sizes.
"""

from __future__ import annotations

import gc
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from pyoxigraph import RdfFormat, serialize

from benchmarks.growth_points import Axis, GrowthPoint
from benchmarks.kernel_conference import QUERIES, floor_plan
from benchmarks.linked_data import Sizes, StaticFiles, make_evaluators, measure_latencies
from benchmarks.reporting import progress

_LOOK_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class StreamedLoad:
    """A data set that was loaded from a pipe.

    `processor_seconds` are those of the loading process, `own_mb` the most that it had of its own, `resident_mb` with
    the pages of mapped files, which the system can take back.
    """

    files: StaticFiles
    seconds: float
    processor_seconds: float
    own_mb: float
    resident_mb: float


def load_from_generator(triples: int, folder: Path) -> StreamedLoad:
    """Load so many triples of a bibliography, and the floor plan, from a generator that runs meanwhile."""
    rooms, into = folder / "floorplan.nq", folder / f"dataset-{triples}"
    rooms.write_bytes(serialize(floor_plan(), format=RdfFormat.N_QUADS) or b"")
    begun = time.perf_counter()
    generator = subprocess.Popen([sys.executable, "-m", "benchmarks.dblp", str(triples)], stdout=subprocess.PIPE)
    command = [sys.executable, "-m", "headwater", "load", str(rooms), "-", "--into", str(into)]
    loader = subprocess.Popen(command, stdin=generator.stdout, stdout=sys.stderr, stderr=subprocess.DEVNULL)
    assert generator.stdout is not None
    generator.stdout.close()
    own = resident = 0.0
    while True:
        found, status, usage = os.wait4(loader.pid, os.WNOHANG)
        if found:
            break
        now = _memory_of(loader.pid)
        own, resident = max(own, now[0]), max(resident, now[1])
        time.sleep(_LOOK_SECONDS)
    loader.returncode = os.waitstatus_to_exitcode(status)
    if generator.wait() or loader.returncode:
        raise AssertionError("the load has failed")
    taken = time.perf_counter() - begun
    spent = usage.ru_utime + usage.ru_stime
    progress(
        f"static, {triples:,} triples loaded in {taken:,.0f} s: {triples / taken:,.0f}/s on the clock, "
        f"{triples / spent:,.0f}/s of its processor; {own:,.0f} MB of its own, {resident:,.0f} MB with mapped files"
    )
    return StreamedLoad(StaticFiles(triples, (), into), taken, spent, own, resident)


def _memory_of(process: int) -> tuple[float, float]:
    """The megabytes of a process: its own, and with mapped files; nothing where it has just ended."""
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:
        return 0.0, 0.0
    kilobytes = {line.split(":")[0]: line.split()[1] for line in lines if line.startswith(("RssAnon", "VmRSS"))}
    return float(kilobytes.get("RssAnon", 0)) / 1024, float(kilobytes.get("VmRSS", 0)) / 1024


def measure_static(quick: bool) -> Axis:
    """Static triples: the cost of an element for each query, and the memory of loading."""
    return _measure_static(quick, 10**5 if quick else 10**7)


def measure_large_static(quick: bool) -> Axis:
    """The same with ten times as many triples: 10^8 take 13 GB on the disk, and minutes to load."""
    return _measure_static(quick, 10**6 if quick else 10**8)


def _measure_static(quick: bool, largest: int) -> Axis:
    sizes = [10**power for power in range(4, 9) if 10**power <= largest]
    folder = Path(tempfile.mkdtemp(prefix="headwater-growth-"))
    try:
        loads = [load_from_generator(size, folder) for size in sizes]
        by_size = {load.files.triples: make_evaluators(load.files) for load in loads}
        # All sizes are in one process: what the collector walks through for one of them is not the cost of another.
        gc.collect()
        gc.freeze()
        elements = Sizes(warm_up=100, elements=300 if quick else 1_000)
        workloads: dict[str, list[GrowthPoint]] = {}
        for name in QUERIES:
            times = measure_latencies(name, {size: of_size[name] for size, of_size in by_size.items()}, elements)
            workloads[name] = [_point_of(load, times[load.files.triples]) for load in loads]
            progress(f"static, {name}: " + ", ".join(f"{size:,} {taken * 1e3:.3f} ms" for size, taken in times.items()))
    finally:
        shutil.rmtree(folder)
    return Axis("static", "static triples", "an element; memory of the load", workloads, 0.05)


def _point_of(load: StreamedLoad, seconds: float) -> GrowthPoint:
    size = load.files.triples
    more = {
        "load_triples_per_s": size / load.seconds,
        "load_triples_per_processor_s": size / load.processor_seconds,
        "load_resident_mb": load.resident_mb,
    }
    return GrowthPoint(size, seconds, load.own_mb, more)
