"""Many queries in one pipeline on Spark: the part of `parallel_queries` that goes from files to delivered answers.

An evaluation is one element until every instance has been evaluated: the seconds that the stateful step spends on
evaluating (`Progress.steps`), by element, once the first batch has made the evaluators and filled the windows. The time
of a whole batch, from its files to its delivered answers, is told beside it, by element too; a good part of it is
Spark's, and the same for one element and for a thousand.

Memory is that of the driver's Python process and of all Python workers together, pages that several share counted
once: how much it grows from two instances of each query to the most, all in one pipeline.
"""

from __future__ import annotations

import gc
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path

import headwater as hw
from benchmarks.kernel_conference import STREAM, Conference, conference
from benchmarks.parallel_instances import INSTANTIATED, PAPER, Sizes, points, texts, worst
from benchmarks.reporting import Figure, Findings, Points, progress, rounded
from headwater.terms.model import MILLISECOND, Element

_MASTER = "local[2]"
_WORKING = ("pyspark.worker", "python_streaming_source_runner", "plan_data_source_read")


@dataclass(frozen=True, slots=True)
class Taken:
    """Seconds per element: of evaluating alone, and of everything."""

    evaluating: float
    batch: float


def measure_in_pipeline(sizes: Sizes) -> Findings:
    """Seconds per evaluation and kilobytes per query."""
    evaluating: dict[str, dict[str, float]] = {}
    batch: dict[str, dict[str, float]] = {}
    scene = conference(sizes.static_triples)
    with tempfile.TemporaryDirectory(prefix="headwater-benchmark-") as folder:
        path = _written(scene, sizes, Path(folder))
        for name in INSTANTIATED:
            evaluating[name], batch[name] = {}, {}
            for count in sizes.in_pipeline:
                taken = _run(scene, sizes, path, {name: count})
                evaluating[name][str(count)] = rounded(taken.evaluating)
                batch[name][str(count)] = rounded(taken.batch)
                words = (
                    f"{taken.evaluating * 1e3:.3f} ms per evaluation, {taken.batch * 1e3:.3f} ms with all of the batch"
                )
                progress(f"{name}: {count} queries in a pipeline, {words}")
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
        kilobytes = process.submit(_kilobytes, sizes).result()
    progress(f"{kilobytes:.1f} kB per query in a pipeline of {len(INSTANTIATED) * sizes.remembered}")
    lines: dict[str, Points] = {name: points(evaluating[name]) for name in INSTANTIATED}
    lines |= {f"{name}, all of the batch": points(batch[name]) for name in INSTANTIATED}
    lines["the paper, at the most"] = [PAPER]
    title = "Queries that differ in a name, on Spark"
    return Findings(
        {
            "mean_s": worst(evaluating),
            "mean_s_of": evaluating,
            "batch_s": worst(batch),
            "batch_s_of": batch,
            "kb_per_query": rounded(kilobytes),
        },
        [Figure("parallel-queries-pipeline", title, "queries", "seconds per evaluation", lines)],
    )


def _written(scene: Conference, sizes: Sizes, folder: Path) -> Path:
    path = folder / "rfid.tnq"
    path.write_text("".join(map(_line, scene.elements(sizes.batch_elements * sizes.batches))))
    return path


def _line(element: Element) -> str:
    return "".join(f"{element.time // MILLISECOND}\t{triple} .\n" for triple in element.triples)


def _run(
    scene: Conference,
    sizes: Sizes,
    path: Path,
    counts: Mapping[str, int],
    at_the_end: Callable[[], None] = lambda: None,
) -> Taken:
    """So many instances of some queries in one pipeline. `at_the_end` is called while the workers still hold it all."""
    engine = hw.Engine(master=_MASTER, shards=1, batch_bytes=path.stat().st_size // sizes.batches)
    engine.stream(STREAM, hw.files(path))
    engine.dataset(scene.store)
    for name, count in counts.items():
        for called, text in texts(name, count):
            engine.register(text, name=called)
    marks: list[tuple[float, float, int]] = []

    def mark(now: hw.Progress) -> None:
        marks.append((time.perf_counter(), now.steps["evaluate"], now.elements))
        if now.elements == sizes.batch_elements * sizes.batches:
            at_the_end()

    engine.run(on_progress=mark)
    (begun, before, first), (ended, after, last) = marks[0], marks[-1]
    return Taken((after - before) / (last - first), (ended - begun) / (last - first))


def _kilobytes(sizes: Sizes) -> float:
    """How much the Python processes of a pipeline grow per query, from two instances of each to the most."""
    scene = conference(sizes.static_triples)
    sizes = replace(sizes, batches=2, batch_elements=sizes.batch_elements // 2)
    found: list[float] = []
    most = sizes.remembered

    def measure() -> None:
        found[-1] = _memory()

    with tempfile.TemporaryDirectory(prefix="headwater-benchmark-") as folder:
        path = _written(scene, sizes, Path(folder))
        # The first pipeline of a session leaves behind what every later one has as well.
        for count in (2, 2, most):
            found.append(0.0)
            _run(scene, sizes, path, dict.fromkeys(INSTANTIATED, count), measure)
    return (found[-1] - found[-2]) / (len(INSTANTIATED) * (most - 2))


def _memory() -> float:
    """The memory of this process and of all Python processes below it, in kilobytes."""
    gc.collect()
    return sum(map(_share, _family(os.getpid())))


def _family(process: int) -> Iterator[int]:
    """A process and those that work in its pipeline; Spark has others in Python that only plan, and come and go."""
    children: dict[int, list[int]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        parent = _word(folder / "status", "PPid:")
        if parent is not None:
            children.setdefault(parent, []).append(int(folder.name))
    waiting = [process]
    while waiting:
        one = waiting.pop()
        waiting.extend(children.get(one, ()))
        if one == process or _works(one):
            yield one


def _works(process: int) -> bool:
    try:
        command = Path(f"/proc/{process}/cmdline").read_text()
    except OSError:
        # It has just ended.
        return False
    return any(name in command for name in _WORKING)


def _share(process: int) -> float:
    """The pages of a process, those that others use too in part."""
    return float(_word(Path(f"/proc/{process}/smaps_rollup"), "Pss:") or 0)


def _word(path: Path, name: str) -> int | None:
    """The number behind a name in a file of the system; None where the process has just ended."""
    try:
        lines = path.read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) for line in lines if line.startswith(name)), None)
