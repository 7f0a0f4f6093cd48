"""Streams with linked data of any size: `python -m benchmarks.linked_data [--quick] [--max-triples N]`.

Table 2 and figure 4 of the CQELS paper: the queries Q1 to Q5 of the conference scenario over bibliographies of 10^4 to
10^7 triples that follow SP2Bench's DBLP schema (`benchmarks.dblp`). Each is written as N-Triples, loaded into a data
set on disk by `headwater load`, and opened.

An evaluation takes one element from the evaluator's input to its answer as terms. `evaluation_ms` is the mean CPU time
of the evaluating thread over all elements once the windows are full; the sizes take turns. Prints one JSON object last:

- `growth`: by query, the time with the most triples over that with the fewest
- `load_triples_per_s`: of the largest load, the start of its process included; `load_peak_mb` is its peak memory
- `ready_s`: from the start of a new process over the largest data set, already loaded, until every query has answered;
  with `--spark`, `ready_spark_s`: the same on embedded Spark from the start of its first pipeline, and
  `ready_spark_with_session_s`: from the start of the process

`--in-memory` reads the files at the start instead of loading them into a data set; loading is then not measured.
"""

from __future__ import annotations

import argparse
import gc
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pyoxigraph import NamedNode, RdfFormat, serialize

import headwater as hw
from benchmarks.dblp import ATTENDEES, person, write_file
from benchmarks.kernel_conference import APART, QUERIES, STREAM, Attendance, floor_plan
from benchmarks.reporting import (
    PLOTS,
    Figure,
    Findings,
    Points,
    demand,
    draw,
    machine,
    print_result,
    progress,
    rounded,
    seconds,
)
from headwater.execution.evaluator import Evaluator
from headwater.terms.model import MILLISECOND, Element
from headwater.windows.model import TimeWindow

_PAPER_MS = {"Q1": 0.47, "Q2": 3.90, "Q3": 0.51, "Q4": 0.53, "Q5": 21.83}
"""Table 2 of the paper, with 10^5 triples."""
_READY = "ready"


@dataclass(frozen=True, slots=True)
class Sizes:
    """`elements` are measured after those that fill the longest window, and `warm_up` more."""

    triples: tuple[int, ...] = (10_000, 100_000, 1_000_000, 10_000_000)
    warm_up: int = 300
    elements: int = 2_000

    def up_to(self, most: int) -> Sizes:
        """The same sizes, with at most `most` triples."""
        kept = tuple(size for size in self.triples if size < most)
        return replace(self, triples=self.triples if kept == self.triples else (*kept, most))


FULL = Sizes()
QUICK = Sizes(triples=(10_000, 100_000), warm_up=100, elements=500)


@dataclass(frozen=True, slots=True)
class StaticFiles:
    """Files of static data, and the data set into which they were loaded, if they were."""

    triples: int
    files: tuple[Path, ...]
    dataset: Path | None = None

    @property
    def paths(self) -> tuple[Path, ...]:
        """What an engine takes as its static data."""
        return self.files if self.dataset is None else (self.dataset,)


def write_files(triples: int, folder: Path) -> StaticFiles:
    """Write the bibliography and the floor plan as files."""
    bibliography, rooms = folder / f"dblp-{triples}.nt", folder / "floorplan.nq"
    taken = seconds(lambda: write_file(triples, bibliography))
    rooms.write_bytes(serialize(floor_plan(), format=RdfFormat.N_QUADS) or b"")
    progress(f"{triples} triples written, {triples / taken:,.0f}/s")
    return StaticFiles(triples, (bibliography, rooms))


def load_files(files: StaticFiles, folder: Path) -> tuple[StaticFiles, float, float]:
    """Load files into a data set; gives them, the seconds that it took, and the peak megabytes of child processes."""
    into = folder / f"dataset-{files.triples}"
    command = [sys.executable, "-m", "headwater", "load", *map(str, files.files), "--into", str(into)]
    taken = seconds(lambda: subprocess.run(command, check=True, stdout=sys.stderr, stderr=subprocess.DEVNULL))
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    progress(f"{files.triples} triples loaded, {files.triples / taken:,.0f}/s, {peak:,.0f} MB")
    return replace(files, dataset=into), taken, peak


def make_engine(data: Sequence[Path], stream: Path | None = None, *, on_spark: bool = False) -> hw.Engine:
    """Make an engine with all queries over some static data."""
    engine = hw.Engine(in_process=not on_spark)
    for path in data:
        engine.dataset(path)
    engine.stream(STREAM, hw.files(stream or Path("no.tnq")))
    for name, text in QUERIES.items():
        engine.register(text, name=name)
    return engine


def make_evaluators(files: StaticFiles) -> dict[str, Evaluator]:
    """The evaluator of each query over some static data."""
    program = make_engine(files.paths)._description().program()
    return dict(program.evaluators)


def make_attendance() -> Attendance:
    return Attendance([NamedNode(person(number)) for number in range(ATTENDEES)])


def measure_latencies(name: str, evaluators: dict[int, Evaluator], sizes: Sizes) -> dict[int, float]:
    """The mean seconds of an evaluation by size of the data; the sizes take turns and must give the same answers."""
    windows = next(iter(evaluators.values())).settings.windows
    warm_up = sizes.warm_up + max((w.width or 0) // APART for w in windows if isinstance(w, TimeWindow))
    taken = dict.fromkeys(evaluators, 0.0)
    turns = deque(evaluators.items())
    answered = 0
    for index, element in enumerate(make_attendance().elements(warm_up + sizes.elements)):
        answers_by_size = []
        turns.rotate()
        for size, evaluator in turns:
            batch = {key: [element] for key in evaluator.keys}
            begun = time.thread_time()
            answers = evaluator.advance(batch, element.time + 1)
            spent = time.thread_time() - begun
            taken[size] += spent if index >= warm_up else 0.0
            answers_by_size.append([(answer.time, answer.rows, answer.triples) for answer in answers])
        if any(one != answers_by_size[0] for one in answers_by_size):
            raise AssertionError(f"{name}: what is asked of the first years must not depend on the later ones")
        answered += bool(answers_by_size[0])
    if not answered:
        raise AssertionError(f"{name} never answered")
    return {size: total / sizes.elements for size, total in taken.items()}


def measure_readiness(files: StaticFiles, folder: Path, *, on_spark: bool = False) -> tuple[float, float]:
    """The seconds from the start of a process, and from that of its run, until each query has answered."""
    stream = folder / "rfid.tnq"
    stream.write_text("".join(map(element_to_line, make_attendance().elements(400))))
    paths = map(str, (stream, *files.paths))
    command = [sys.executable, "-m", "benchmarks.linked_data", *(["--spark"] * on_spark), "--until-ready", *paths]
    begun = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith(_READY):
                taken, of_run = time.perf_counter() - begun, float(line.removeprefix(_READY))
                progress(f"all queries answered after {taken:.1f} s{' on Spark' * on_spark}, {of_run:.1f} s of the run")
                return taken, of_run
    raise AssertionError("the queries did not all answer")


def run_until_ready(stream: Path, data: Sequence[Path], *, on_spark: bool = False) -> None:
    """Run until every query has answered, and print the seconds that it took."""
    engine = make_engine(data, stream, on_spark=on_spark)
    waiting = set(QUERIES)

    def on_answer(answer: hw.Answer) -> None:
        if waiting and not answer.is_empty:
            waiting.discard(answer.query)
            if not waiting:
                print(_READY, time.perf_counter() - begun, flush=True)
                engine.stop()

    if on_spark:
        engine.session()
    begun = time.perf_counter()
    engine.run(on_answer=on_answer)


def element_to_line(element: Element) -> str:
    return "".join(f"{element.time // MILLISECOND}\t{triple} .\n" for triple in element.triples)


def measure(sizes: Sizes, folder: Path, *, in_memory: bool, on_spark: bool) -> Findings:
    findings = Findings()
    all_files: list[StaticFiles] = []
    for triples in sizes.triples:
        files = write_files(triples, folder)
        if not in_memory:
            files, taken, peak = load_files(files, folder)
            findings.values |= {"load_triples_per_s": rounded(triples / taken), "load_peak_mb": rounded(peak)}
            files.files[0].unlink()
        all_files.append(files)
    findings.values["ready_s"] = rounded(measure_readiness(all_files[-1], folder)[0])
    if on_spark:
        with_session, pipeline = measure_readiness(all_files[-1], folder, on_spark=True)
        # A session serves any number of pipelines; the first one that it has is the slowest.
        findings.values |= {"ready_spark_s": rounded(pipeline), "ready_spark_with_session_s": rounded(with_session)}
    by_size = {files.triples: make_evaluators(files) for files in all_files}
    # All sizes are in one process: what the collector walks through for one of them is not the cost of another.
    gc.collect()
    gc.freeze()
    times: dict[str, dict[int, float]] = {}
    for name in QUERIES:
        times[name] = measure_latencies(name, {size: of_size[name] for size, of_size in by_size.items()}, sizes)
        progress(f"{name}: " + ", ".join(f"{size} triples {taken * 1e3:.3f} ms" for size, taken in times[name].items()))
    fewest, most = min(sizes.triples), max(sizes.triples)
    findings.values |= {
        "triples": list(sizes.triples),
        "evaluation_ms": {n: {str(s): rounded(t * 1e3) for s, t in by.items()} for n, by in times.items()},
        "growth": {name: rounded(by[most] / by[fewest]) for name, by in times.items()},
    }
    lines: dict[str, Points] = {n: [(float(s), t * 1e3) for s, t in by.items()] for n, by in times.items()}
    table: dict[str, Points] = {
        "Headwater": [(float(q[1]), by[most] * 1e3) for q, by in times.items()],
        "the paper, 10^5 triples": [(float(q[1]), ms) for q, ms in _PAPER_MS.items()],
    }
    findings.figures += [
        Figure("linked-data", "By size of the data set", "static triples", "milliseconds per evaluation", lines),
        Figure("linked-data-queries", f"{most:.0e} static triples", "query Q1 to Q5", "milliseconds", table),
    ]
    return findings


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.linked_data", description="Streams with linked data.")
    parser.add_argument("--quick", action="store_true", help="up to 10^5 triples, fewer elements")
    parser.add_argument("--max-triples", type=int, help="the size of the largest data set")
    parser.add_argument("--in-memory", action="store_true", help="read the files at the start, load no data set")
    parser.add_argument("--spark", action="store_true", help="say when a pipeline on Spark is ready, too")
    parser.add_argument("--folder", type=Path, help="where files and data sets go; a temporary one otherwise")
    parser.add_argument("--plots", type=Path, help=f"where the figures go; of the full form: {PLOTS.name} in docs")
    parser.add_argument("--until-ready", nargs="+", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.until_ready:
        run_until_ready(arguments.until_ready[0], arguments.until_ready[1:], on_spark=arguments.spark)
        return
    demand("matplotlib")
    facts = machine()
    sizes = QUICK if arguments.quick else FULL
    if arguments.max_triples is not None:
        sizes = sizes.up_to(arguments.max_triples)
    folder = arguments.folder or Path(tempfile.mkdtemp(prefix="headwater-linked-data-"))
    folder.mkdir(parents=True, exist_ok=True)
    try:
        findings = measure(sizes, folder, in_memory=arguments.in_memory, on_spark=arguments.spark)
    finally:
        if arguments.folder is None:
            shutil.rmtree(folder)
    is_short = arguments.quick or arguments.max_triples is not None
    plots = arguments.plots or (None if is_short else PLOTS)
    if plots is not None:
        draw(findings.figures, plots)
    print_result({**findings.values, "quick": arguments.quick, "machine": facts})


if __name__ == "__main__":
    main()
